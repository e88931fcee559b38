//! What was found against what is stored.
//!
//! All files of one recording are compared before the test fails, so that one run shows all that has changed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::rename::Renamed;
use crate::stage;
use crate::tables::{Tables, digest};

/// Differences of one file that are shown.
const SHOWN: usize = 12;

/// Lines of a listing that are kept.
const KEPT: usize = 60;

/// Width of a line of stored JSON that holds a whole array or object.
const JSON_COLUMNS: usize = 120;

/// The golden files of one recording.
pub(crate) struct Golden {
    dir: PathBuf,
    renamed: Renamed,
    faults: RefCell<Vec<String>>,
}

impl Golden {
    pub(crate) fn of(recording: &str) -> Golden {
        let dir = stage::golden(recording);
        Golden { dir, renamed: Renamed::read(), faults: RefCell::default() }
    }

    /// A text, line by line; without the one that depends on who runs the test.
    pub(crate) fn text(&self, file: &str, found: &str) {
        let is_alike = |line: &&str| !line.starts_with("files     readable by ");
        let found: String = found.split_inclusive('\n').filter(is_alike).collect();
        let Some(stored) = self.stored(file, &found) else { return };
        let (old, new): (Vec<&str>, Vec<&str>) =
            (stored.lines().collect(), found.lines().collect());
        let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
            pairs.take_while(|(old, new)| old == new).count()
        };
        let before = same(&mut old.iter().zip(&new));
        let (old, new) = (&old[before..], &new[before..]);
        let behind = same(&mut old.iter().rev().zip(new.iter().rev()));
        let [old, new] = [old, new].map(|lines| &lines[..lines.len() - behind]);
        let mut lines = Vec::new();
        for (number, at) in (before + 1..).zip(0..old.len().max(new.len())) {
            let [old, new] = [old, new].map(|lines| lines.get(at).unwrap_or(&"(no line)"));
            if old != new {
                lines.push(format!("line {number}\n      was {old}\n      is  {new}"));
            }
        }
        self.note(file, lines);
    }

    /// A listing, of which some lines and the digest of all are stored.
    pub(crate) fn listing(&self, file: &str, found: &str) {
        let count = found.lines().count();
        let kept = found.lines().step_by(count.div_ceil(KEPT).max(1));
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        self.text(file, &format!("{kept}{count} lines, {}\n", digest(found)));
    }

    /// JSON, value by value.
    pub(crate) fn json(&self, file: &str, found: &str) {
        let mut found: Value = serde_json::from_str(found).expect("JSON");
        // As in a text.
        if let Some(head) = found.get_mut("trace").and_then(Value::as_object_mut) {
            head.remove("readers");
        }
        let Some(stored) = self.stored(file, &(pretty(&found, 0) + "\n")) else { return };
        let stored: Value = serde_json::from_str(&stored).expect("JSON");
        self.values(file, leaves(&stored), leaves(&found));
    }

    /// Tables, column by column.
    pub(crate) fn tables(&self, file: &str, found: &Tables) {
        let found = found.text();
        let Some(stored) = self.stored(file, &found) else { return };
        self.values(file, columns(&stored), columns(&found));
    }

    /// Fails if anything was different.
    pub(crate) fn compare(self) {
        let faults = self.faults.into_inner();
        assert!(
            faults.is_empty(),
            "{} of {} differ; names that have changed belong into renamed.txt, and FT_ACCEPT=1 stores what was found\n{}",
            faults.len(),
            self.dir.display(),
            faults.join("\n")
        );
    }

    /// What is stored; or stores what was found, when that is to be accepted.
    fn stored(&self, file: &str, found: &str) -> Option<String> {
        let path = self.dir.join(file);
        if ft_tests::accepts() {
            fs::create_dir_all(&self.dir).expect("a folder");
            fs::write(path, found).expect("a golden file");
            return None;
        }
        let stored = fs::read_to_string(&path);
        Some(
            stored.unwrap_or_else(|error| {
                panic!("{}: {error}; FT_ACCEPT=1 makes it", path.display())
            }),
        )
    }

    /// Under names.
    fn values(
        &self,
        file: &str,
        stored: BTreeMap<String, String>,
        mut found: BTreeMap<String, String>,
    ) {
        let mut lines = Vec::new();
        for (name, was) in stored {
            let Some(now) = self.renamed.now(file, &name) else { continue };
            match found.remove(&now) {
                None => lines.push(format!("{now} is missing; it was {was}")),
                Some(is) if is != was => {
                    lines.push(format!("{now}\n      was {was}\n      is  {is}"))
                }
                Some(_) => {}
            }
        }
        let new = found.iter().filter(|(name, _)| !self.renamed.is_new(file, name));
        lines.extend(new.map(|(name, value)| format!("{name} is new: {value}")));
        self.note(file, lines);
    }

    fn note(&self, file: &str, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        let shown = lines.iter().take(SHOWN).map(|line| format!("    {line}\n"));
        let more = lines.len().saturating_sub(SHOWN);
        let more = if more == 0 { String::new() } else { format!("    and {more} more\n") };
        self.faults.borrow_mut().push(format!("  {file}:\n{}{more}", shown.collect::<String>()));
    }
}

/// The lines of a `tables.txt`: `TABLE`, and `TABLE.COLUMN`.
fn columns(text: &str) -> BTreeMap<String, String> {
    let mut table = "";
    let mut columns = BTreeMap::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            None => {
                let (name, rows) = line.split_once(": ").expect("TABLE: ROWS");
                table = name;
                columns.insert(name.to_owned(), rows.to_owned());
            }
            Some(line) => {
                let (name, values) = line.split_once(' ').expect("COLUMN VALUES");
                columns.insert(format!("{table}.{name}"), values.trim_start().to_owned());
            }
        }
    }
    columns
}

/// Every value of a JSON text that holds no other, under its path: `a.b[3].c`.
fn leaves(value: &Value) -> BTreeMap<String, String> {
    fn walk(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let dot = if path.is_empty() { "" } else { "." };
                fields
                    .iter()
                    .for_each(|(key, value)| walk(&format!("{path}{dot}{key}"), value, leaves));
            }
            Value::Array(items) if !items.is_empty() => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(i, value)| walk(&format!("{path}[{i}]"), value, leaves));
            }
            leaf => drop(leaves.insert(path.to_owned(), leaf.to_string())),
        }
    }
    let mut found = BTreeMap::new();
    walk("", value, &mut found);
    found
}

/// JSON in which whatever fits a line stands on one.
fn pretty(value: &Value, indent: usize) -> String {
    let line = value.to_string();
    if indent + line.chars().count() <= JSON_COLUMNS {
        return line;
    }
    let (inner, outer) = (" ".repeat(indent + 1), " ".repeat(indent));
    let block = |items: Vec<String>, [open, close]: [char; 2]| {
        format!("{open}\n{inner}{}\n{outer}{close}", items.join(&format!(",\n{inner}")))
    };
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), pretty(value, indent + 1))
            };
            block(fields.iter().map(field).collect(), ['{', '}'])
        }
        Value::Array(items) => {
            block(items.iter().map(|item| pretty(item, indent + 1)).collect(), ['[', ']'])
        }
        _ => line,
    }
}
