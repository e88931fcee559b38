//! In the poll of which async task a thread was when something happened: views of the recorded events in a schema of their own,
//! with `in_task` and `in_task_name` beside each thread. Every row of such a view is joined with the polls, which takes
//! many times what reading the row does, so the views under the tables' own names do without.
//!
//! The polls are rows of `async_switches`, so an event costs nothing more for it, and a poll of which records were lost, which
//! is no row, is the task of none of its events. A thread's polls lie within each other, as its calls do: so their begins and ends,
//! in order, say how deep in polls the thread is, and where a poll ends, the thread is back in the one that began last at that depth.

use std::fmt::Write;

use crate::tables::SiteKind;

/// Where the views are.
const SCHEMA: &str = "with_task";

/// The task of each thread, from when on. Of a kernel's record next to the begin or end of a poll this is as right as the clock.
const KNOWN: &str = "
-- In the poll of which async task each thread is, from when on: the innermost; null in none of which all is known.
CREATE OR REPLACE VIEW known.in_task AS
WITH poll AS (
    SELECT pid, tid, ts, ts + dur AS ends, depth,
        {'task': task, 'name': CASE name WHEN '' THEN place ELSE name END} AS task
    FROM part_rows('async_switches') WHERE dur > 0),
edge AS (
    SELECT pid, tid, ts, 1 AS step, depth AS turn, task FROM poll
    UNION ALL SELECT pid, tid, ends, -1, -depth, NULL FROM poll),
deep AS (
    SELECT *, sum(step) OVER edges AS deep, row_number() OVER edges AS number FROM edge
    WINDOW edges AS (PARTITION BY pid, tid ORDER BY ts, step, turn ROWS UNBOUNDED PRECEDING)),
back AS (
    SELECT pid, tid, ts, number, last_value(task IGNORE NULLS) OVER (
        PARTITION BY pid, tid, deep ORDER BY number ROWS UNBOUNDED PRECEDING) AS task
    FROM deep)
SELECT pid, tid, ts, task.task AS task, task.name AS name FROM back
QUALIFY row_number() OVER (PARTITION BY pid, tid, ts ORDER BY number DESC) = 1;
";

/// What can be said of tasks in the views of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct InTask {
    /// Its programs could record polls, and the analyses have found them.
    is_known: bool,
}

impl InTask {
    /// Of a trace with sites of these kinds, whose table of polls is there or not.
    pub(super) fn of(mut kinds: impl Iterator<Item = SiteKind>, has_polls: bool) -> InTask {
        InTask { is_known: has_polls && kinds.any(SiteKind::is_of_task) }
    }

    /// What comes before the views.
    pub(super) fn begin(self, out: &mut String) {
        let known = if self.is_known { KNOWN } else { "" };
        let _ = write!(out, "{known}\nCREATE SCHEMA IF NOT EXISTS {SCHEMA};\n");
    }

    /// Appends the view of a table whose threads are those in its columns `OWNERpid` and `OWNERtid`.
    pub(super) fn view(self, table: &str, owners: &[&str], out: &mut String) {
        let (mut columns, mut joins) = (String::new(), String::new());
        for owner in owners {
            self.join(table, owner, &mut columns, &mut joins);
        }
        let _ = writeln!(
            out,
            "\nCREATE OR REPLACE VIEW {SCHEMA}.{table} AS\nSELECT t.*{columns}\nFROM main.{table} AS t{joins};"
        );
    }

    fn join(self, table: &str, owner: &str, columns: &mut String, joins: &mut String) {
        if !self.is_known {
            let _ = write!(
                columns,
                ", NULL::BIGINT AS {owner}in_task, NULL::VARCHAR AS {owner}in_task_name"
            );
            return;
        }
        // The event that ends a poll is the last one in it.
        let ts = match table {
            "user_events" => "t.ts - (t.kind = 'task_polled')::BIGINT",
            _ => "t.ts",
        };
        let _ = write!(
            columns,
            ", {owner}a.task AS {owner}in_task, {owner}a.name AS {owner}in_task_name"
        );
        let _ = write!(
            joins,
            "\nASOF LEFT JOIN known.in_task AS {owner}a \
             ON {owner}a.pid = t.{owner}pid AND {owner}a.tid = t.{owner}tid AND {owner}a.ts <= {ts}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trace_with_polls_joins_with_them() {
        let joins = |kind, has_polls| {
            let mut out = String::new();
            let in_task = InTask::of([SiteKind::Event, kind].into_iter(), has_polls);
            in_task.begin(&mut out);
            let begins = out.contains("VIEW known.in_task");
            in_task.view("sched_switch", &["prev_", "next_"], &mut out);
            let named =
                ["prev_", "next_"].map(|owner| out.contains(&format!(" AS {owner}in_task, ")));
            assert_eq!(named, [true; 2], "{out}");
            (begins, out.contains("= t.prev_pid"))
        };
        assert_eq!(joins(SiteKind::TaskPoll, true), (true, true));
        assert_eq!(joins(SiteKind::TaskPoll, false), (false, false));
        assert_eq!(joins(SiteKind::ScopeBegin, true), (false, false));
    }
}
