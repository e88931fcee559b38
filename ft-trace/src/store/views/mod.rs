//! `views.sql`: the tables of a trace under their names, for DuckDB.
//!
//! - Each table is a view of its name, with what its numbers refer to beside them: the names of threads and processes, the
//!   event of a site. Addresses are unsigned.
//! - Each name of an event is a view in the schema `event`, with its arguments as columns of their own (`events.rs`).
//! - Each table of recorded events is a view in the schema `with_task`, too: there the async task in whose poll it was then
//!   stands beside each thread (`in_task.rs`).
//! - Each table of results that marks its rows is a view in the schema `trusted`, too: of the rows that no missing record touches.
//! - `doubted(since, until)` says whether records of a time are missing.
//! - A table of results that is not there yet is a view that says so when it is read.
//! - Who had each CPU, and all that is known of a time or a thread, can be asked for (`asked.rs`).
//! - Times of the trace become those of the day and back: `wall`, `mono`, `rel`.
//! - A trace of which a part is not what was written is refused (`whole.rs`).
//! - What was recorded is refused in one sentence if its columns are others: the trace is damaged, or somebody has made it to do harm.
//!
//! The file is made at the end of a conversion, and again when the analyses have written their tables. It finds the trace
//! from wherever it is read, by the words with which it knows itself: in the working directory, where the trace was when it
//! was written, or where the variable `trace` says. Names are whatever programs say: see `sql.rs`.

mod asked;
mod events;
mod in_task;
mod sql;
mod whole;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::error::{Result, io_error};
use super::{Meta, Results, catalogue, file};
use crate::store::catalogue::{Column, Origin, Table};
use crate::tables::{SiteRow, Unit};
use in_task::InTask;
use sql::{literal, pattern};

/// Name of the file.
pub const VIEWS_FILE: &str = "views.sql";

/// What is known of the numbers in the tables, and of the addresses. As tables, which are read once: each view that joins
/// with a file opens it when it is made, and there are as many as a program has events.
const KNOWN: &str = "
CREATE SCHEMA IF NOT EXISTS known;
CREATE OR REPLACE TABLE known.thread AS
SELECT pid, tid, CASE tid WHEN 0 THEN 'idle' ELSE name END AS comm FROM part_rows('threads');
-- The kernel's records name some threads by their number alone: of those that had it, the newest that the kernel told of.
CREATE OR REPLACE TABLE known.newest AS
SELECT tid, CASE tid WHEN 0 THEN 'idle' ELSE arg_max(name, ts) END AS comm
FROM part_rows('threads') WHERE prio IS NOT NULL GROUP BY tid;
CREATE OR REPLACE TABLE known.process AS
SELECT pid, max(process) AS process FROM part_rows('threads') GROUP BY pid;
CREATE OR REPLACE TABLE known.site AS
SELECT site, source, event, file || ':' || line AS place FROM part_rows('sites');
-- A program that gives one number two names must not double its events.
CREATE OR REPLACE TABLE known.lock AS
SELECT source, id::BIGINT & 4294967295 AS id, min(text) AS text
FROM part_rows('names') WHERE kind = 'name' GROUP BY ALL;
CREATE OR REPLACE TABLE known.place AS
SELECT source, id::BIGINT & 4294967295 AS id, min(text || ':' || line) AS text
FROM part_rows('names') WHERE kind = 'place' GROUP BY ALL;
CREATE OR REPLACE TABLE known.variable AS
SELECT pid, address, min(symbol) AS symbol FROM part_rows('symbols') WHERE kind = 'lock' GROUP BY ALL;
CREATE OR REPLACE TABLE known.call AS
SELECT pid, address, min(CASE
    WHEN symbol = '' THEN object
    WHEN file = '' THEN symbol || ' (' || object || ')'
    ELSE symbol || ' (' || regexp_extract(file, '[^/]*$') || ':' || line || ')' END) AS place
FROM (SELECT * REPLACE (regexp_extract(object, '[^/]*$') || '+' || hex_address(\"offset\") AS object)
      FROM part_rows('symbols') WHERE kind = 'call')
GROUP BY ALL;
";

/// Writes the file into the directory of a trace with these sites, whole or not at all.
///
/// # Errors
///
/// An I/O error, [`StoreError::Refused`](super::StoreError::Refused) when others can write to the trace.
pub fn write(trace: &Path, meta: &Meta, results: &Results, sites: &[SiteRow]) -> Result<()> {
    let is_there = |table: &str| trace.join(table).is_dir();
    let place = std::path::absolute(trace).ok();
    let text = text(place, meta, results, sites, is_there);
    let dir = file::open(trace)?;
    dir.write(VIEWS_FILE, text.as_bytes()).map_err(io_error("write", &trace.join(VIEWS_FILE)))
}

/// The file of a trace at `place` that has some of the tables.
fn text(
    place: Option<PathBuf>,
    meta: &Meta,
    results: &Results,
    sites: &[SiteRow],
    is_there: impl Fn(&str) -> bool,
) -> String {
    let mut out = head(place.as_deref().and_then(Path::to_str), meta);
    whole::write(meta, results, &mut out);
    let tables = catalogue::tables();
    let there = || tables.iter().filter(|table| is_there(table.name));
    must_be(there(), &mut out);
    out.push_str(KNOWN);
    let in_task = InTask::of(sites.iter().map(|site| site.kind), is_there("async_switches"));
    in_task.begin(&mut out);
    for table in &tables {
        if is_there(table.name) {
            view(table, &mut out);
            let owners = owners(table);
            if !owners.is_empty() {
                in_task.view(table.name, &owners, &mut out);
            }
        } else {
            missing(table, &mut out);
        }
    }
    trusted(there(), &mut out);
    asked::write(there(), &mut out);
    out.push_str("\nCREATE SCHEMA IF NOT EXISTS event;\n");
    events::write(sites, &mut out);
    out
}

fn head(place: Option<&str>, meta: &Meta) -> String {
    // What is at the end of a path is the pattern of one name, since one that is missing is an error, and no match is none.
    let mut places = vec!["coalesce(getvariable('trace'), '.') || '/views.sq[l]'".to_owned()];
    // The variable is a pattern, or a path.
    places.push("escaped(coalesce(getvariable('trace'), '.')) || '/views.sq[l]'".into());
    places.push("'./views.sq[l]'".into());
    // A path with a control character cannot be written here.
    if let Some(place) = place.filter(|place| !place.contains(char::is_control)) {
        places.push(literal(&format!("{}/views.sq[l]", pattern(place))));
    }
    format!(
        "\
-- The tables of this trace under their names, for DuckDB:
--
--     cd TRACE && duckdb -init views.sql          or, from anywhere: .read TRACE/views.sql
--     D SELECT * FROM critical_sections;          a table of TABLES.md, with names beside its numbers
--     D SELECT * FROM event.\"CATEGORY.NAME\";      an event, with its arguments as columns
--     D SELECT * FROM with_task.sched_waking;     what was recorded, with the async task of each thread
--     D SELECT * FROM trusted.critical_sections;   what no missing record touches; the table `doubts` says what is missing
--     D FROM everything(TID, TS, TS + 1_000_000);  all of a thread in a millisecond; around(TS, NS): all of all threads
--     D FROM cpu_slices;                           who had each CPU; cpu_share(1_000_000): how much of each millisecond
--     D SELECT wall(ts), * FROM sched_switch;     the time of day (UTC); rel(ts): ns since the start, as `ft-agent events` counts
--     D FROM sched_switch WHERE ts BETWEEN mono('2026-11-28 14:00:00.5') AND mono('2026-11-28 14:00:01');    from the time of day
--
-- Read from elsewhere after the trace was moved, it asks for SET VARIABLE trace = 'TRACE'.

CREATE OR REPLACE MACRO escaped(path) AS regexp_replace(path, '([*?\\[])', '[\\1]', 'g');
SET VARIABLE trace_dir = coalesce(
    (SELECT escaped(coalesce(nullif(parse_dirpath(filename), ''), '.'))
     FROM read_text([{places}])
     WHERE contains(content, {identity}) LIMIT 1),
    error('the trace of this views.sql is not where it was, or its path has a backslash, with which DuckDB finds nothing: \
SET VARIABLE trace = ''DIR'', and read it again'));
CREATE OR REPLACE MACRO part_rows(name) AS TABLE
SELECT * FROM read_parquet(coalesce(getvariable('parts_left')[name], [getvariable('trace_dir') || '/' || name || '/part-*.parquet']),
                           hive_partitioning = false);
CREATE OR REPLACE MACRO u64(x) AS (x::HUGEINT & 18446744073709551615)::UBIGINT;
CREATE OR REPLACE MACRO hex_address(x) AS format('0x{{:x}}', u64(x));
CREATE OR REPLACE MACRO wall(ts) AS make_timestamp_ns(ts + {offset});
CREATE OR REPLACE MACRO mono(utc) AS epoch_ns(utc::TIMESTAMP_NS) - {offset};
CREATE OR REPLACE MACRO rel(ts) AS ts - {start};
",
        places = places.join(", "),
        identity = identity(meta),
        // Between brackets: an offset can be negative.
        offset = format_args!("({})", meta.clock.realtime_offset_ns),
        start = format_args!("({})", meta.start.start_ns),
    )
}

/// Asks the tables that were recorded for their columns. (Those of results may be of an earlier version: `ft-agent analyze` makes them anew.)
fn must_be<'a>(tables: impl Iterator<Item = &'a Table>, out: &mut String) {
    out.push_str(
        "
SET VARIABLE is_recorded = (
    SELECT bool_and(CASE found WHEN expected THEN true ELSE error('the table ' || name ||
        ' of this trace has other columns than a recording: bring the trace again from where it was recorded') END)
    FROM (SELECT '' AS name, '' AS found, '' AS expected",
    );
    for table in tables.filter(|table| table.origin != Origin::Analyses) {
        let column = |column: &Column| format!("{} {}", column.name, sql_type(column.kind));
        let columns: Vec<String> = table.columns.iter().map(column).collect();
        // Not in a macro: DuckDB 1.5 describes none with an argument.
        let _ = write!(
            out,
            "
    UNION ALL SELECT '{name}', string_agg(column_name || ' ' || column_type, ', '), {expected}
    FROM (DESCRIBE FROM part_rows('{name}'))",
            name = table.name,
            expected = literal(&columns.join(", ")),
        );
    }
    out.push_str("));\n");
}

/// The type that DuckDB gives a column.
fn sql_type(kind: &str) -> &'static str {
    match kind {
        "int64" => "BIGINT",
        "int32" => "INTEGER",
        "double" => "DOUBLE",
        "bool" => "BOOLEAN",
        _ => "VARCHAR",
    }
}

/// What no other trace says of itself.
fn identity(meta: &Meta) -> String {
    let boot: String = meta.start.boot_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let end = meta.end.as_ref().map_or(0, |end| end.ts);
    literal(&format!("trace {boot} {} {end}", meta.start.start_ns))
}

/// The prefixes of the columns `tid` and `pid` of those threads that a table of recorded events is about.
fn owners(table: &Table) -> Vec<&str> {
    if table.origin != Origin::Events {
        return Vec::new();
    }
    let has = |name: &str| table.columns.iter().any(|column| column.name == name);
    let columns = table.columns.iter();
    let threads = columns.filter(|column| column.unit.as_deref() == Some(Unit::Tid.word()));
    let owners = threads.filter_map(|column| column.name.strip_suffix("tid"));
    owners.filter(|owner| has(&format!("{owner}pid"))).collect()
}

/// A table that is there.
fn view(table: &Table, out: &mut String) {
    let has = |name: &str| table.columns.iter().any(|column| column.name == name);
    let is = |column: &Column, unit: Unit| column.unit.as_deref() == Some(unit.word());
    let (mut names, mut joins, mut addresses) = (String::new(), String::new(), Vec::new());
    for (i, column) in table.columns.iter().enumerate() {
        let name = &column.name;
        if is(column, Unit::Address) {
            addresses.push(format!("u64(t.\"{name}\") AS \"{name}\""));
        }
        let Some(owner) = name.strip_suffix("tid").filter(|_| is(column, Unit::Tid)) else {
            continue;
        };
        // Where the name of this thread is not there yet.
        let said = [&format!("{owner}comm"), owner.trim_end_matches('_'), "name"].map(has);
        let said = if owner.is_empty() { [said[0], false, table.name == "threads"] } else { said };
        if said.contains(&true) {
            continue;
        }
        let _ = write!(names, ", n{i}.comm AS {owner}comm");
        let pid = format!("{owner}pid");
        let _ = if has(&pid) {
            write!(
                joins,
                "\nLEFT JOIN known.thread AS n{i} ON n{i}.pid = t.{pid} AND n{i}.tid = t.{name}"
            )
        } else {
            write!(joins, "\nLEFT JOIN known.newest AS n{i} ON n{i}.tid = t.{name}")
        };
    }
    if has("pid") && !has("process") {
        names.push_str(", process");
        joins.push_str("\nLEFT JOIN known.process AS p ON p.pid = t.pid");
    }
    if has("site") && table.name != "sites" {
        let event = if has("event") { "" } else { "s.event, " };
        let place = if has("place") { "" } else { "s.place, " };
        let more = format!("{event}{place}");
        if !more.is_empty() {
            let _ = write!(names, ", {}", more.trim_end_matches(", "));
            joins.push_str("\nLEFT JOIN known.site AS s ON s.site = t.site");
        }
    }
    let replaced = if addresses.is_empty() {
        String::new()
    } else {
        format!(" REPLACE ({})", addresses.join(", "))
    };
    let (name, about) = (table.name, literal(&table.about));
    let _ = writeln!(
        out,
        "\nCREATE OR REPLACE VIEW {name} AS\nSELECT t.*{replaced}{names}\n\
         FROM part_rows('{name}') AS t{joins};\nCOMMENT ON VIEW {name} IS {about};"
    );
}

/// What no missing record touches, of the tables that say so; and whether records of a time are missing.
fn trusted<'a>(mut tables: impl Iterator<Item = &'a Table> + Clone, out: &mut String) {
    out.push_str("\nCREATE SCHEMA IF NOT EXISTS trusted;\n");
    let is_marked = |table: &&Table| table.columns.iter().any(|column| column.name == "mark");
    for table in tables.clone().filter(is_marked) {
        let name = table.name;
        // Without its schema the name would be the view's own.
        let _ = writeln!(
            out,
            "CREATE OR REPLACE VIEW trusted.{name} AS FROM main.{name} WHERE mark = 'exact';"
        );
    }
    if tables.any(|table| table.name == "doubts") {
        out.push_str(
            "-- With names of its own: the arguments may be columns that a table of doubts has, too.
CREATE OR REPLACE TABLE known.doubt AS SELECT ts AS begins, ts + dur AS ends FROM part_rows('doubts');
CREATE OR REPLACE MACRO doubted(since, until) AS EXISTS
(SELECT 1 FROM known.doubt WHERE known.doubt.begins <= until AND known.doubt.ends >= since);
",
        );
    }
}

/// A table that is not there: reading it is an error with the remedy, and not an empty table.
fn missing(table: &Table, out: &mut String) {
    let name = table.name;
    let why = match table.origin {
        Origin::Analyses => {
            "this trace is not analysed: run `ft-agent analyze` on it, and read its views.sql again"
        }
        _ => "this trace was recorded by a version that did not have this table",
    };
    let _ = writeln!(
        out,
        "\nCREATE OR REPLACE VIEW {name} AS\nSELECT 'no table' AS {name} WHERE error({}) IS NULL;",
        literal(why)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(table: &str) -> String {
        let all = text(None, &Meta::default(), &Results::default(), &[], |name| name != "gaps");
        let from = all.find(&format!("VIEW {table} AS")).expect("a view of each table");
        let text = &all[from..];
        text[..text.find(';').unwrap()].to_owned()
    }

    #[test]
    fn numbers_have_names_beside_them_where_the_table_has_none() {
        let holds = of("critical_sections");
        assert!(holds.contains(r#"REPLACE (u64(t."lock") AS "lock")"#), "{holds}");
        assert!(holds.contains(".comm AS comm, process, s.event\n"), "{holds}");
        assert!(!holds.contains("preemptor_comm"), "the table has it: {holds}");
        let waking = of("sched_waking");
        assert!(waking.contains("known.newest") && waking.contains("AS waker_comm"), "{waking}");
        assert!(of("thread_time").contains("SELECT t.*, process\n"));
        assert!(
            of("threads").contains("SELECT t.*\n") && of("sites").contains("SELECT t.*, process\n")
        );
        assert!(of("user_events").contains("AS comm, process, s.place\n"));
        assert!(!of("sched_switch").contains("in_task"));
        let with_task = of("with_task.sched_switch");
        let named = [" AS prev_in_task,", " AS next_in_task,"].map(|name| with_task.contains(name));
        assert_eq!(named, [true; 2], "{with_task}");
    }

    #[test]
    fn a_table_that_is_missing_says_what_to_do() {
        assert!(of("gaps").contains("error('this trace is not analysed"), "{}", of("gaps"));
    }

    #[test]
    fn what_was_recorded_must_be_there_in_full() {
        let all = text(None, &Meta::default(), &Results::default(), &[], |_| true);
        let asked = |table: &str| all.contains(&format!("(DESCRIBE FROM part_rows('{table}'))"));
        assert_eq!(["threads", "sched_switch", "requests"].map(asked), [true, true, false]);
        assert!(all.contains("'ts BIGINT, tid INTEGER, pid INTEGER, name VARCHAR, "), "{all}");
        assert!(all.find("is_recorded") < all.find("SCHEMA IF NOT EXISTS known"), "{all}");
    }

    #[test]
    fn any_path_is_a_place() {
        let head = |place| head(place, &Meta::default());
        assert!(head(Some("/it's/a[1]")).contains("'/it''s/a[[]1]/views.sq[l]'"));
        assert!(!head(Some("/a\n.shell")).contains(".shell"));
    }
}
