//! A view for each name of an event: its arguments as columns of their own names and types.
//!
//! The sites of an event need not agree: two places may log the same event with other arguments. Then the view has the
//! columns of all of them, null where a site has none of that name, and text where their types differ. Rows are found by
//! the numbers of the sites, so that no name is compared.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::sql::Names;
use crate::ids::SiteId;
use crate::tables::SiteRow;

/// Columns that every event has; those of the arguments get other names.
const COMMON: &[&str] = &["ts", "pid", "process", "tid", "comm", "cpu", "kind", "place"];

/// What one site has for a column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    sql: String,
    kind: &'static str,
}

/// A column, and the sites that have it, by what they have.
struct Column {
    name: String,
    values: Vec<(Value, Vec<SiteId>)>,
}

/// Appends the views.
pub(super) fn write(sites: &[SiteRow], out: &mut String) {
    let mut events: BTreeMap<&str, Vec<&SiteRow>> = BTreeMap::new();
    for site in sites {
        events.entry(&site.event).or_default().push(site);
    }
    let mut names = Names::default();
    for (event, sites) in events {
        view(&names.unique(event), &sites, out);
    }
}

fn view(name: &str, sites: &[&SiteRow], out: &mut String) {
    let mut joins = Joins::default();
    let mut columns = Columns::default();
    for site in sites {
        for (name, value) in values(site, &mut joins) {
            columns.add(&name, value, site.site);
        }
    }
    let place = joins.place();
    let columns = columns.all;
    let numbers: Vec<SiteId> = sites.iter().map(|site| site.site).collect();
    let _ = write!(
        out,
        "\nCREATE OR REPLACE VIEW event.{name} AS\nSELECT e.ts, e.pid, e.process, e.tid, e.comm, e.cpu, e.kind"
    );
    let mut names = Names::default();
    COMMON.iter().for_each(|name| drop(names.unique(name)));
    for column in &columns {
        let _ = write!(out, ",\n    {} AS {}", column.sql(sites.len()), names.unique(&column.name));
    }
    let _ = write!(out, ",\n    {place} AS place\nFROM main.user_events AS e");
    joins.write(out);
    let _ = writeln!(out, "\nWHERE e.site IN ({});", list(&numbers));
}

/// The columns of an event in the order in which its sites name them.
#[derive(Default)]
struct Columns {
    all: Vec<Column>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    fn add(&mut self, name: &str, value: Value, site: SiteId) {
        let at = *self.by_name.entry(name.to_owned()).or_insert_with(|| {
            self.all.push(Column { name: name.to_owned(), values: Vec::new() });
            self.all.len() - 1
        });
        let values = &mut self.all[at].values;
        // One site may have two arguments of a name: the first counts.
        if values.iter().any(|(_, sites)| sites.last() == Some(&site)) {
            return;
        }
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, sites)) => sites.push(site),
            None => values.push((value, vec![site])),
        }
    }
}

impl Column {
    /// Its expression, in a view of so many sites.
    fn sql(&self, of: usize) -> String {
        let (first, rest) = self.values.split_first().expect("a column is made of a value");
        if rest.is_empty() && first.1.len() == of {
            return first.0.sql.clone();
        }
        let same = rest.iter().all(|(value, _)| value.kind == first.0.kind);
        let cast = if same { "" } else { "::VARCHAR" };
        let mut sql = String::from("CASE");
        for (value, sites) in &self.values {
            let _ = write!(sql, " WHEN e.site IN ({}) THEN {}{cast}", list(sites), value.sql);
        }
        sql + " END"
    }
}

/// The arguments of a site by their names; of an event about a lock or a task, its name too, and not the number that tells
/// it.
fn values(site: &SiteRow, joins: &mut Joins) -> Vec<(String, Value)> {
    let args = site.args.split(", ").enumerate();
    let args = args.filter_map(|(i, arg)| Some((i, arg.rsplit_once(':')?)));
    let mut values: Vec<(String, Value)> = Vec::new();
    let mut has_caller = None;
    for (i, (name, kind)) in args {
        let kind = kind.trim_end_matches('?');
        if site.kind.has_lock() && i == 1 {
            has_caller = Some(kind == "pointer");
            continue;
        }
        if site.kind.has_task() && i == 1 {
            let (sql, kind) = (joins.word(site.site).into(), "VARCHAR");
            values.push(("task_name".into(), Value { sql, kind }));
            continue;
        }
        let (sql, kind) = match kind {
            "unsigned" | "pointer" => (format!("u64(e.arg{i})"), "UBIGINT"),
            "bool" => (format!("(e.arg{i} <> 0)"), "BOOLEAN"),
            "float" => (format!("e.argf{i}"), "DOUBLE"),
            "str" | "bytes" => (format!("e.argt{i}"), "VARCHAR"),
            _ => (format!("e.arg{i}"), "BIGINT"),
        };
        values.push((name.to_owned(), Value { sql, kind }));
    }
    if let Some(has_caller) = has_caller {
        let name = joins.lock_name(has_caller, site.site);
        values.insert(
            values.len().min(1),
            ("lock_name".into(), Value { sql: name.into(), kind: "VARCHAR" }),
        );
    }
    values
}

/// What the second argument of events about locks and tasks refers to.
#[derive(Default)]
struct Joins {
    /// Sites where it is a number of a name and a place (`ft_user::layout::place_word`).
    words: Vec<SiteId>,
    /// Sites where it is a return address.
    callers: Vec<SiteId>,
}

impl Joins {
    fn lock_name(&mut self, has_caller: bool, site: SiteId) -> &'static str {
        if has_caller {
            self.callers.push(site);
            "coalesce(lock.symbol, hex_address(e.arg0))"
        } else {
            self.word(site);
            "coalesce(name.text, hex_address(e.arg0))"
        }
    }

    /// The name that the second argument tells; null where there is none.
    fn word(&mut self, site: SiteId) -> &'static str {
        self.words.push(site);
        "name.text"
    }

    /// Where the event was written: for one about a lock the place of the call, for one about a task that of its making.
    fn place(&self) -> String {
        let mut place = String::from("CASE");
        if !self.words.is_empty() {
            let _ = write!(place, " WHEN e.site IN ({}) THEN spot.text", list(&self.words));
        }
        if !self.callers.is_empty() {
            let _ = write!(
                place,
                " WHEN e.site IN ({}) THEN coalesce(call.place, hex_address(e.arg1))",
                list(&self.callers)
            );
        }
        if place == "CASE" { "e.place".into() } else { place + " ELSE e.place END" }
    }

    fn write(&self, out: &mut String) {
        if !self.words.is_empty() {
            out.push_str(
                "\nLEFT JOIN known.site AS s ON s.site = e.site\n\
                 LEFT JOIN known.lock AS name ON name.source = s.source AND name.id = u64(e.arg1) >> 32\n\
                 LEFT JOIN known.place AS spot ON spot.source = s.source AND spot.id = u64(e.arg1) & 4294967295",
            );
        }
        if !self.callers.is_empty() {
            out.push_str(
                "\nLEFT JOIN known.variable AS lock ON lock.pid = e.pid AND lock.address = e.arg0\n\
                 LEFT JOIN known.call AS call ON call.pid = e.pid AND call.address = e.arg1",
            );
        }
    }
}

fn list(sites: &[SiteId]) -> String {
    let numbers: Vec<String> = sites.iter().map(|site| site.0.to_string()).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Pid;
    use crate::tables::SiteKind;

    fn site(number: i32, event: &str, kind: SiteKind, args: &str) -> SiteRow {
        SiteRow {
            site: SiteId(number),
            pid: Pid(1),
            event: event.into(),
            category: "".into(),
            kind,
            file: "a.rs".into(),
            line: 7,
            args: args.into(),
            format: "".into(),
            triggers: 1,
            source: 0,
            started: 0,
            program: 0,
            on_ns: Some(0),
        }
    }

    #[track_caller]
    fn check(sites: &[SiteRow], expected: &[&str]) {
        let mut found = String::new();
        write(sites, &mut found);
        for text in expected {
            assert!(found.contains(text), "{text}\nis not in\n{found}");
        }
    }

    #[test]
    fn arguments_are_columns_of_their_names_and_types() {
        let args = "id:unsigned, n:signed?, p:pointer, f:float, ok:bool, t:str";
        check(
            &[site(3, "order.placed", SiteKind::Event, args)],
            &[
                r#"VIEW event."order.placed" AS"#,
                r#"u64(e.arg0) AS "id""#,
                r#"e.arg1 AS "n""#,
                r#"u64(e.arg2) AS "p""#,
                r#"e.argf3 AS "f""#,
                r#"(e.arg4 <> 0) AS "ok""#,
                r#"e.argt5 AS "t""#,
                "e.place AS place",
                "WHERE e.site IN (3);",
            ],
        );
    }

    #[test]
    fn sites_that_differ_share_a_view() {
        check(
            &[
                site(1, "x", SiteKind::Event, "a:signed, b:signed"),
                site(2, "x", SiteKind::Event, "b:signed, a:str"),
                site(5, "x", SiteKind::Event, "b:signed"),
            ],
            &[
                r#"CASE WHEN e.site IN (1) THEN e.arg0::VARCHAR WHEN e.site IN (2) THEN e.argt1::VARCHAR END AS "a""#,
                r#"CASE WHEN e.site IN (1) THEN e.arg1 WHEN e.site IN (2, 5) THEN e.arg0 END AS "b""#,
                "WHERE e.site IN (1, 2, 5);",
            ],
        );
    }

    #[test]
    fn names_that_are_taken_or_strange_are_told_apart() {
        // In C the name of an argument is its expression.
        let args = "ts:signed, a::b(c,d):signed, \":signed, x:signed, x:signed";
        check(
            &[site(1, "a", SiteKind::Event, args), site(2, "A", SiteKind::Event, "")],
            &[
                r#"e.arg0 AS "ts_2""#,
                r#"e.arg1 AS "a::b(c,d)""#,
                r#"e.arg2 AS """""#,
                r#"e.arg3 AS "x","#,
                r#"VIEW event."A" AS"#,
                r#"VIEW event."a_2" AS"#,
            ],
        );
    }

    #[test]
    fn events_about_locks_have_the_locks_name_and_the_place_of_the_call() {
        check(
            &[
                site(1, "l", SiteKind::LockAcquire, "lock:pointer, place:unsigned"),
                site(2, "l", SiteKind::LockAcquire, "lock:pointer, caller:pointer"),
            ],
            &[
                r#"u64(e.arg0) AS "lock""#,
                "WHEN e.site IN (1) THEN coalesce(name.text, hex_address(e.arg0)) \
                 WHEN e.site IN (2) THEN coalesce(lock.symbol, hex_address(e.arg0)) END AS \"lock_name\"",
                "CASE WHEN e.site IN (1) THEN spot.text \
                 WHEN e.site IN (2) THEN coalesce(call.place, hex_address(e.arg1)) ELSE e.place END AS place",
            ],
        );
    }

    #[test]
    fn events_about_tasks_have_the_tasks_name_and_the_place_where_it_was_made() {
        check(
            &[site(1, "t", SiteKind::TaskPoll, "task:unsigned, place:unsigned")],
            &[
                r#"u64(e.arg0) AS "task""#,
                r#"name.text AS "task_name""#,
                "CASE WHEN e.site IN (1) THEN spot.text ELSE e.place END AS place",
            ],
        );
    }
}
