//! What people ask a trace as a whole: who had each CPU when, who how much of it, and all that is known of a time or a thread.

use std::fmt::Write;

use super::sql::literal;
use crate::store::catalogue::{Origin, Table};
use crate::tables::Unit;

/// Who had each CPU, from the table `sched_switch`.
const CPUS: &str = "
CREATE OR REPLACE VIEW cpu_slices AS
SELECT ts, lead(ts) OVER on_cpu - ts AS dur, cpu, next_tid AS tid, next_pid AS pid,
    CASE next_tid WHEN 0 THEN 'idle' ELSE next_comm END AS comm, process, next_prio AS prio,
    lead(prev_tid) OVER on_cpu = next_tid AS seen
FROM part_rows('sched_switch') LEFT JOIN known.process ON known.process.pid = next_pid
WINDOW on_cpu AS (PARTITION BY cpu ORDER BY ts)
QUALIFY dur IS NOT NULL;
COMMENT ON VIEW cpu_slices IS 'From each switch to the next one of its CPU: who had the CPU, for how long, ns. Where it is not seen, another thread left the CPU, and a switch in between is missing. What no switch ended is not here.';
CREATE OR REPLACE MACRO cpu_share(bucket) AS TABLE
SELECT part * bucket AS ts, cpu, tid, any_value(pid) AS pid, comm, any_value(process) AS process,
    sum(least(ends, (part + 1) * bucket) - greatest(begins, part * bucket)) / bucket AS share
FROM (SELECT ts AS begins, ts + dur AS ends, cpu, tid, pid, comm, process,
        unnest(range(ts // bucket, (ts + greatest(dur, 1) - 1) // bucket + 1)) AS part FROM cpu_slices WHERE seen)
GROUP BY ALL ORDER BY ALL;
";

/// Appends them, of the tables of a trace that are there.
pub(super) fn write<'a>(tables: impl Iterator<Item = &'a Table>, out: &mut String) {
    let tables: Vec<&Table> = tables.collect();
    if tables.iter().any(|table| table.name == "sched_switch") {
        out.push_str(CPUS);
    }
    out.push_str("\nCREATE OR REPLACE MACRO between_times(since_ns, until_ns) AS TABLE");
    let mut or = "";
    for (table, threads) in tables.iter().filter_map(|table| Some((table, threads(table)?))) {
        let (dur, ends) =
            if lasts(table) { ("dur", "t.ts + coalesce(t.dur, 0)") } else { ("NULL", "t.ts") };
        let (name, kind) = (table.name, literal(table.name));
        let _ = write!(
            out,
            "{or}\nSELECT t.ts, {dur}::BIGINT AS dur, {kind} AS kind, [{threads}]::INTEGER[] AS tids, to_json(t) AS fields\n\
             FROM main.{name} AS t WHERE t.ts <= until_ns AND {ends} >= since_ns",
        );
        or = "\nUNION ALL";
    }
    out.push_str(
        "
ORDER BY ts;
CREATE OR REPLACE MACRO everything(thread, since_ns, until_ns) AS TABLE
FROM between_times(since_ns, until_ns) WHERE list_contains(tids, thread)
-- What is missing of a whole process, or of all.
OR kind IN ('doubts', 'loss') AND coalesce(tids[1], -1) < 0 AND coalesce(nullif((fields->>'pid')::INTEGER, -1) IN
    (SELECT pid FROM part_rows('threads') WHERE tid = thread), true)
ORDER BY ts;
CREATE OR REPLACE MACRO around(moment, margin) AS TABLE
FROM between_times(moment - margin, moment + margin) ORDER BY ts;
",
    );
}

/// Each of its rows has a length.
fn lasts(table: &Table) -> bool {
    table.columns.iter().any(|column| column.name == "dur")
}

/// The columns of a table that say of whom a row is; `None` of one whose rows are neither events nor intervals.
fn threads(table: &Table) -> Option<String> {
    let is_event = table.origin == Origin::Events;
    let is_result = table.origin == Origin::Analyses && lasts(table);
    let first = table.columns.first().filter(|column| column.name == "ts");
    first.filter(|_| is_event || is_result)?;
    let of_thread = |unit: &Option<String>| unit.as_deref() == Some(Unit::Tid.word());
    let threads = table.columns.iter().filter(|column| of_thread(&column.unit));
    let own = threads.filter(|column| is_event || column.name == "tid");
    Some(own.map(|column| format!("t.{}", column.name)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::catalogue::tables;

    #[test]
    fn all_that_happened_and_lasted_is_asked_for_and_no_sum() {
        let mut out = String::new();
        write(tables().iter(), &mut out);
        for asked in ["[t.prev_tid, t.next_tid]", "[t.waker_tid, t.tid]", "main.lock_waits AS t"] {
            assert!(out.contains(asked), "{asked}: {out}");
        }
        for sum in ["main.blame", "main.histograms", "main.threads", "t.holder_tid"] {
            assert!(!out.contains(sum), "{sum}: {out}");
        }
        out.clear();
        write(tables().iter().filter(|table| table.name == "user_events"), &mut out);
        assert!(!out.contains("cpu_slices") && out.contains("[t.tid]"), "{out}");
    }
}
