//! Rows, and the table that they make.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// What stands before the table of a family of processors in the file that it is written to, and behind it.
fn marks(family: &str) -> (String, &'static str) {
    (format!("<!-- begin: {family}, written by `cargo xtask bench` -->\n"), "<!-- end -->\n")
}

/// One row.
pub(crate) struct Row {
    what: String,
    measured: String,
    goal: String,
    verdict: &'static str,
    beside: String,
}

impl Row {
    /// What was measured, with its unit; and the figure.
    pub(crate) fn new(what: impl Into<String>, measured: impl Into<String>) -> Row {
        Row {
            what: what.into(),
            measured: measured.into(),
            goal: String::new(),
            verdict: "",
            beside: String::new(),
        }
    }

    /// What it should be, and whether it is.
    pub(crate) fn goal(self, goal: impl Into<String>, met: bool) -> Row {
        Row { goal: goal.into(), verdict: if met { "met" } else { "**missed**" }, ..self }
    }

    /// A goal that refers to a peer which is not there.
    pub(crate) fn goal_without_peer(self, goal: impl Into<String>) -> Row {
        Row { goal: goal.into(), verdict: "no peer", ..self }
    }

    /// What others read in the same run; those that could not be measured are left out.
    pub(crate) fn beside<N: AsRef<str>>(
        self,
        others: impl IntoIterator<Item = (N, Option<f64>)>,
    ) -> Row {
        let others: Vec<String> = others
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{} {}", name.as_ref(), number(value?))))
            .collect();
        Row { beside: others.join(", "), ..self }
    }

    /// Adds a remark behind what stands beside.
    pub(crate) fn remark(mut self, remark: &str) -> Row {
        if !self.beside.is_empty() && !remark.is_empty() {
            self.beside += "; ";
        }
        self.beside += remark;
        self
    }

    /// A row that could not be measured.
    pub(crate) fn unmeasured(name: &str, reason: &anyhow::Error) -> Row {
        Row { verdict: "not measured", ..Row::new(name, "–") }.remark(&format!("{reason:#}"))
    }
}

/// Three significant digits at least.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The table below a line that describes the machine.
pub(crate) fn markdown(machine: &str, rows: &[Row]) -> String {
    let mut text = format!("{machine}\n\n| what | measured | goal | | in the same run |\n");
    text += "|---|---:|---|---|---|\n";
    for Row { what, measured, goal, verdict, beside } in rows {
        text += &format!("| {what} | {measured} | {goal} | {verdict} | {beside} |\n");
    }
    text
}

/// Puts the table of a family of processors into a file: in place of the one before, or behind all others.
pub(crate) fn write(readme: &Path, family: &str, table: &str) -> Result<()> {
    let old = fs::read_to_string(readme).with_context(|| format!("{}", readme.display()))?;
    let new = replaced(&old, family, table);
    let new = new.with_context(|| format!("{} has no end of a table", readme.display()))?;
    fs::write(readme, new).with_context(|| format!("cannot write {}", readme.display()))
}

fn replaced(old: &str, family: &str, table: &str) -> Option<String> {
    let (begin, end) = marks(family);
    let (before, after) = match old.split_once(&begin) {
        Some((before, rest)) => (before.to_owned(), rest.split_once(end)?.1),
        None => {
            let (before, after) = old.rsplit_once(end)?;
            (format!("{before}{end}\n"), after)
        }
    };
    Some(format!("{before}{begin}### {family}\n\n{table}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_one_table() {
        let table = |family: &str, text: &str| {
            let (begin, end) = marks(family);
            format!("{begin}### {family}\n\n{text}\n{end}")
        };
        let one = format!("head\n{}tail\n", table("AMD family 26", "old"));
        let two = replaced(&one, "Intel family 6", "other\n").unwrap();
        let tables = [table("AMD family 26", "old"), table("Intel family 6", "other")];
        assert_eq!(two, format!("head\n{}\n{}tail\n", tables[0], tables[1]));
        let newer = replaced(&two, "AMD family 26", "new\n").unwrap();
        assert_eq!(newer, two.replace("old", "new"));
        assert_eq!(replaced("no marks", "AMD family 26", "new\n"), None);
    }
}
