//! Loads that the agent records: what its reports say is why a figure is what it is, measured in the same run.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Deserializer, Value};

use crate::lab::Lab;
use crate::load::output;
use crate::quantity::{ns, percent};

/// A load that was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// What the load has printed as JSON.
    pub(crate) said: Value,
    reports: Reports,
}

/// What reports of a trace say.
#[derive(Clone, Debug)]
pub(crate) struct Reports(Value);

impl Reports {
    /// Those of these names.
    ///
    /// # Errors
    ///
    /// When the agent is not there or fails.
    pub(crate) fn of(lab: &Lab, trace: &Path, names: &[&str]) -> Result<Reports> {
        let mut report = Command::new(lab.tool("ft-agent")?);
        report.arg("report").arg(trace).args(names).arg("--json");
        let json = serde_json::from_str(&output(&mut report)?).context("the reports' JSON")?;
        Ok(Reports(json))
    }

    /// As a test makes them up.
    #[cfg(test)]
    pub(crate) fn from_json(json: Value) -> Reports {
        Reports(json)
    }

    /// The machine values of one.
    pub(crate) fn values(&self, name: &str) -> &Value {
        &self.0["sections"][name]["values"]
    }

    /// Events and records of the kernel that the trace has.
    pub(crate) fn events(&self) -> u64 {
        self.0["trace"]["events"].as_u64().unwrap_or(0)
    }

    /// Events and records of the kernel that they do not know of.
    pub(crate) fn lost(&self) -> u64 {
        let lost = ["lost_user_events", "lost_kernel_records"];
        lost.iter().filter_map(|name| self.0["trace"][name].as_u64()).sum()
    }
}

/// The JSON that a load prints, and what the agent that records it prints behind that.
///
/// # Errors
///
/// When it begins with none.
pub(crate) fn leading_json(text: &str) -> Result<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter();
    let json = values.next().context("the load printed nothing")?.context("the load's JSON")?;
    Ok((json, &text[values.byte_offset()..]))
}

impl Recorded {
    /// Records a line of Hourglass for a time for which the paper took that many seconds.
    ///
    /// # Errors
    ///
    /// As [`Recorded::new`].
    pub(crate) fn hourglass(lab: &Lab, paper_seconds: f64, line: &str) -> Result<Recorded> {
        Recorded::hourglass_for(lab, lab.seconds(paper_seconds), line, &["jobs"])
    }

    /// Records a line of Hourglass for that many seconds; then the reports of these names.
    ///
    /// # Errors
    ///
    /// As [`Recorded::new`].
    pub(crate) fn hourglass_for(
        lab: &Lab,
        seconds: f64,
        line: &str,
        reports: &[&str],
    ) -> Result<Recorded> {
        let ms = (seconds * 1e3).round();
        Recorded::new(lab, &format!("hourglass -d {ms}ms {line}"), reports)
    }

    /// Records `ft-load` with these words and `--json`, with the kernel's switches and interrupts; then the reports of these names.
    ///
    /// # Errors
    ///
    /// When the agent or the load is not there or fails.
    pub(crate) fn new(lab: &Lab, load: &str, reports: &[&str]) -> Result<Recorded> {
        let trace = std::env::temp_dir().join(format!("ft-papers-trace-{}", std::process::id()));
        let _ = fs::remove_dir_all(&trace);
        let mut record = Command::new(lab.tool("ft-agent")?);
        record.args(["record", "-k", "sched,irq", "-o"]).arg(&trace).arg("--");
        record.arg(lab.tool("ft-load")?).args(load.split_whitespace()).arg("--json");
        let told =
            output(&mut record).and_then(|said| Ok((said, Reports::of(lab, &trace, reports)?)));
        let _ = fs::remove_dir_all(&trace);
        let (said, reports) = told?;
        Ok(Recorded { said: leading_json(&said)?.0, reports })
    }

    /// The machine values of a report.
    pub(crate) fn report(&self, name: &str) -> &Value {
        self.reports.values(name)
    }

    /// What the load says of one of its threads.
    pub(crate) fn thread(&self, n: usize) -> &Value {
        &self.said["threads"][n]
    }

    /// The jobs of all threads, for a table of values: thread, number, release, start, finish and due, in ns after the begin of
    /// the run; a finish that never came is empty.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = [String; 6]> {
        const COLUMNS: [&str; 6] =
            ["thread", "number", "release_ns", "start_ns", "finish_ns", "due_ns"];
        let jobs = self.said["jobs"].as_array().into_iter().flatten();
        jobs.map(|job| {
            COLUMNS.map(|column| job[column].as_i64().map_or(String::new(), |n| n.to_string()))
        })
    }

    /// Events and records of the kernel that are missing of it.
    pub(crate) fn lost(&self) -> u64 {
        self.reports.lost()
    }

    /// How long a thread could have run and did not, in all its jobs that finished, ns; nothing where it has none.
    pub(crate) fn preempted_ns(&self, n: usize) -> i64 {
        let mut workers = self.report("jobs")["workers"].as_array().into_iter().flatten();
        let own = workers.find(|worker| worker["worker"] == n);
        own.and_then(|worker| worker["parts"]["preempted_ns"].as_i64()).unwrap_or(0)
    }

    /// Deadlines missed and hit, by thread: `1 / 374; 9 / 81`.
    pub(crate) fn deadlines(&self) -> String {
        let threads = self.said["threads"].as_array().into_iter().flatten();
        let told = threads.map(|thread| format!("{} / {}", thread["missed"], thread["hit"]));
        told.collect::<Vec<_>>().join("; ")
    }

    /// The runs of all threads, by thread: from when to when, ms after the begin of the run.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, (f64, f64))> {
        let runs = self.said["runs"].as_array().into_iter().flatten();
        runs.map(|run| {
            let ms = |key: &str| run[key].as_f64().unwrap_or(0.0) / 1e6;
            (run["thread"].as_u64().unwrap_or(0) as usize, (ms("start_ns"), ms("end_ns")))
        })
    }

    /// What a recording says, of this run; and what is missing of it.
    pub(crate) fn says(&self, what: &str) -> String {
        let lost = match self.reports.lost() {
            0 => String::new(),
            lost => format!(", of which {lost} events are missing"),
        };
        format!("a recording of this run{lost}: {what}")
    }

    /// Where the responses of jobs went that were too late, of all threads together.
    pub(crate) fn late(&self) -> String {
        self.says(&late(self.report("jobs")))
    }
}

/// Where time went, ns, in the words of this page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts([i64; 5]);

/// What they are called, and which of a report's parts are in them.
const PARTS: [(&str, &[&str]); 5] = [
    ("running", &["running_ns"]),
    ("able to run, but not running", &["preempted_ns", "dispatch_ns"]),
    ("in interrupts", &["hardirq_ns", "softirq_ns", "vector_ns"]),
    ("on the CPU without running its code or a record", &["unexplained_ns"]),
    ("asleep, its timer late", &["blocked_ns"]),
];

impl Parts {
    /// Those of a row of a report, if it has any.
    pub(crate) fn of(row: &Value) -> Option<Parts> {
        row.as_object()?;
        let of = |parts: &[&str]| parts.iter().filter_map(|part| row[part].as_i64()).sum();
        Some(Parts(PARTS.map(|(_, parts)| of(parts))))
    }

    fn plus(self, other: Parts) -> Parts {
        Parts(std::array::from_fn(|n| self.0[n] + other.0[n]))
    }

    /// Each with its name, as `tell` writes it.
    pub(crate) fn told(self, tell: impl Fn(f64) -> String) -> String {
        let told =
            PARTS.iter().zip(self.0).map(|((name, _), ns)| format!("{} {name}", tell(ns as f64)));
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Who took most of jobs that were too late: so many are named.
const NAMED: usize = 3;

fn late(jobs: &Value) -> String {
    let rows = |name: &str| jobs[name].as_array().into_iter().flatten();
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let own = |worker: &Value| {
        number(&worker["late"]["total_ns"]) - number(&worker["late"]["backlog_ns"])
    };
    let whole: i64 = rows("workers").map(own).sum();
    if whole == 0 {
        return "no job that finished was late".into();
    }
    let parts = rows("workers").filter_map(|worker| Parts::of(&worker["late"]["parts"]));
    let parts = parts.fold(Parts::default(), Parts::plus);
    let culprits =
        rows("culprits").map(|c| (number(&c["late"]), c["culprit"].as_str().unwrap_or("?")));
    let mut culprits: Vec<_> = culprits.filter(|(late, _)| *late > 0).collect();
    culprits.sort_by_key(|(late, _)| -late);
    let named = culprits.iter().take(NAMED).map(|(late, name)| format!("`{name}` {late}"));
    format!(
        "the late jobs took {}, without what they waited for earlier ones: {}; who took most of how many: {}",
        ns(whole as f64),
        parts.told(|ns| percent(ns / whole as f64)),
        named.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stands_behind_the_json_is_told() {
        let (json, rest) = leading_json("{\"histogram\": [[10.0, 3]]}\nrecorded").unwrap();
        assert_eq!((json, rest.trim()), (json!({ "histogram": [[10.0, 3]] }), "recorded"));
        assert!(leading_json("").is_err());
    }

    #[test]
    fn late_jobs_are_told_by_parts_that_sum_and_by_who_took_most() {
        let worker = |total: i64,
                      backlog: i64,
                      running: i64,
                      preempted: i64,
                      irq: i64,
                      blocked: i64| {
            json!({ "late": { "total_ns": total, "backlog_ns": backlog, "parts": {
                "running_ns": running, "preempted_ns": preempted, "dispatch_ns": 0, "vector_ns": irq, "blocked_ns": blocked,
            } } })
        };
        let jobs = json!({
            "workers": [worker(100, 20, 50, 20, 0, 10), worker(20, 0, 10, 5, 5, 0)],
            "culprits": [{ "culprit": "X", "late": 1 }, { "culprit": "swapper/1", "late": 7 }, { "culprit": "Y", "late": 0 }],
        });
        let text = late(&jobs);
        assert!(text.contains("took 100 ns") && text.contains("60.0 % running"), "{text}");
        assert!(text.contains("25.0 % able") && text.contains(" 5.0 % in interrupts"), "{text}");
        assert!(text.contains("10.0 % asleep, its timer late;"), "{text}");
        let (told, _) = text.rsplit_once(" %").unwrap();
        let shares = told.split(" %").filter_map(|s| s.rsplit(' ').next()?.parse::<f64>().ok());
        assert_eq!(shares.sum::<f64>(), 100.0, "{text}");
        assert!(text.ends_with("how many: `swapper/1` 7, `X` 1"), "{text}");
        assert_eq!(late(&json!({ "workers": [] })), "no job that finished was late");
    }
}
