//! What this machine can record, and how to get what is missing.
//!
//! Each check reads one fact and judges it in a function of its own, so that the judgement is tested
//! without the machine. *Fail* means that `ft-agent record` with its defaults will not work; *warn*
//! that something is coarser or must be avoided.

mod checks;
mod realtime;

use std::fmt::Write;

use serde::Serialize;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Good.
    Ok,
    /// Works with a limit, which `found` and `remedy` state.
    Warn,
    /// Recording with the defaults does not work.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do; empty when `status` is `Ok`.
    pub remedy: String,
}

impl Check {
    fn new(name: &'static str, status: Status, found: impl Into<String>, remedy: &str) -> Check {
        Check { name, status, found: found.into(), remedy: remedy.to_owned() }
    }

    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check::new(name, Status::Ok, found, "")
    }

    fn warn(name: &'static str, found: impl Into<String>, remedy: &str) -> Check {
        Check::new(name, Status::Warn, found, remedy)
    }

    fn fail(name: &'static str, found: impl Into<String>, remedy: &str) -> Check {
        Check::new(name, Status::Fail, found, remedy)
    }
}

/// Runs all checks, in the order in which a recording meets them.
pub fn run() -> Vec<Check> {
    checks::all()
}

/// What delays real-time threads here: those of a process, or any. No such check fails.
pub fn realtime(process: Option<i32>) -> Vec<Check> {
    realtime::run(process)
}

/// The checks as text: a line each, the remedy below it.
pub fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for c in checks {
        let status = match c.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        let _ = writeln!(out, "{status:<4}  {:<width$}  {}", c.name, c.found);
        if !c.remedy.is_empty() {
            let _ = writeln!(out, "      {:<width$}  -> {}", "", c.remedy);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_aligns_and_shows_remedies() {
        let text = table(&[
            Check::ok("kernel", "6.18"),
            Check::fail("rights", "CAP_BPF is missing", "run as root"),
        ]);
        let expected = "ok    kernel  6.18\n\
                        FAIL  rights  CAP_BPF is missing\n              -> run as root\n";
        assert_eq!(text, expected);
    }
}
