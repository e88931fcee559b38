//! Rows, and the table that they make.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// What stands around the table in the file that it is written to.
const BEGIN: &str = "<!-- begin: written by `cargo xtask bench` -->\n";
const END: &str = "<!-- end -->\n";

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

/// Replaces what stands between the marks of a file.
pub(crate) fn write(readme: &Path, table: &str) -> Result<()> {
    let old = fs::read_to_string(readme).with_context(|| format!("{}", readme.display()))?;
    let marks = old.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = marks.with_context(|| format!("{} has no marks", readme.display()))?;
    fs::write(readme, format!("{before}{BEGIN}{table}{END}{after}"))
        .with_context(|| format!("cannot write {}", readme.display()))
}
