//! Table 1 and section 5.3: dispatch latency beside file systems and network.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::Load;
use crate::plot::bars::{self, Histogram};
use crate::quantity::{ns, percent};
use crate::recorded::Recorded;
use crate::stats::percentile;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-table1",
    title: "Hourglass, Table 1: dispatch latency with contention",
    full_minutes: 12.1,
    programs: &["ft-agent", "ft-load", "iperf3"],
    run,
};

const PAPER_SECONDS: f64 = 360.0;

/// Samples of the paper's runs, about.
const PAPER_SAMPLES: f64 = 65_000.0;

fn run(lab: &Lab) -> Result<Finding> {
    let line = format!("-n 1 --cpu {} -t 0 -p RTHIGH -w LAT 5.3ms -i HR", lab.cpu());
    let alone = Latencies::of(lab, &line)?;
    let mut grep = Load::repeat("grep -r -a no-such-words /usr /lib")?;
    let mut server =
        Load::start(Command::new("iperf3").args(["-s", "-p", PORT, "-B", "127.0.0.1"]))?;
    let mut client = Load::repeat(&format!("iperf3 -c 127.0.0.1 -p {PORT} -t 3600 || sleep 0.2"))?;
    let beside = Latencies::of(lab, &line)?;
    for (load, name) in
        [(&mut grep, "grep"), (&mut server, "iperf3 -s"), (&mut client, "iperf3 -c")]
    {
        load.check(name)?;
    }
    drop((client, server, grep));

    let mut csv = Csv::new(["scenario", "late_ns"]);
    for (name, run) in [("alone", &alone), ("contention", &beside)] {
        run.late_ns.iter().for_each(|late_ns| csv.row([&name, late_ns]));
    }
    let histogram = |title: &str, run: &Latencies| Histogram {
        title: title.into(),
        values: run.late_ns.iter().map(|ns| (*ns as f64, 1)).collect(),
    };
    let svg = bars::draw(
        &[histogram("alone", &alone), histogram("beside grep and iperf3", &beside)],
        true,
    )?;
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -d 6m {line}`, alone and beside a recursive `grep` over `/usr` and `/lib` and `iperf3` over \
             loopback, recorded by `ft-agent record -k sched,irq`: {} and {} samples. Timer `HR` stands for `RTC`, where the kernel \
             has no real-time clock; local files stand for NFS, and loopback for the second machine.",
            alone.late_ns.len(),
            beside.late_ns.len()
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&alone, &beside),
    })
}

const PORT: &str = "5299";

/// What a run has shown.
struct Latencies {
    /// How late each sample was, sorted.
    late_ns: Vec<u64>,
    /// Where that went, of all samples together, and of the latest: by the recording of this run.
    where_all_went: String,
    where_the_latest_went: String,
}

impl Latencies {
    fn of(lab: &Lab, line: &str) -> Result<Latencies> {
        let seconds = lab.seconds(PAPER_SECONDS);
        let recorded = Recorded::hourglass_for(lab, seconds, line, &["timers"])?;
        let samples = recorded.said["samples"].as_array().context("the load tells its samples")?;
        let at = |sample: &Value, key: &str| sample[key].as_u64().unwrap_or(0);
        let late = |sample| at(sample, "woke_ns").saturating_sub(at(sample, "due_ns"));
        let mut late_ns: Vec<u64> = samples.iter().map(late).collect();
        late_ns.sort_unstable();
        let timers = recorded.report("timers");
        let workers = timers["workers"].as_array().into_iter().flatten();
        Ok(Latencies {
            late_ns,
            where_all_went: recorded.says(&parts(workers)),
            where_the_latest_went: recorded.says(&latest(timers)),
        })
    }

    fn later_than(&self, ms: u64) -> usize {
        self.late_ns.len() - self.late_ns.partition_point(|ns| *ns <= ms * 1_000_000)
    }
}

/// What the report `timers` divides a latency into, in this order, in the words of this page.
const PARTS: [&str; 4] = [
    "the timer was late",
    "its interrupt",
    "woken and without a CPU",
    "on the way back to the program",
];

/// The parts of rows, together, ns.
fn sums<'a>(rows: impl Iterator<Item = &'a Value>) -> [i64; PARTS.len()] {
    let mut sums = [0; PARTS.len()];
    for row in rows {
        let part = |n: usize| row["parts_ns"][n].as_i64().unwrap_or(0);
        sums.iter_mut().enumerate().for_each(|(n, sum)| *sum += part(n));
    }
    sums
}

/// The shares of the parts of rows, together.
fn parts<'a>(rows: impl Iterator<Item = &'a Value>) -> String {
    let sums = sums(rows);
    let whole = sums.iter().sum::<i64>();
    if whole == 0 {
        return "of no sample the parts are known".into();
    }
    let told = PARTS
        .iter()
        .zip(sums)
        .map(|(part, ns)| format!("{} {part}", percent(ns as f64 / whole as f64)));
    told.collect::<Vec<_>>().join(", ")
}

/// What the largest part of rows means, as far as a recording can tell.
fn most<'a>(rows: impl Iterator<Item = &'a Value>) -> &'static str {
    let sums = sums(rows);
    let largest = (0..PARTS.len()).max_by_key(|n| sums[*n]).filter(|n| sums[*n] > 0);
    match largest {
        Some(0) => {
            "; a timer's interrupt comes late where the host has the CPU, or the kernel has interrupts switched off: no record tells which"
        }
        Some(2) => {
            "; a thread of lower priority keeps the CPU while it is in a kernel that is not preemptible, as the plain ones of 2002 were, \
             and this one is"
        }
        _ => "",
    }
}

/// Where the latest went, and who had the CPU meanwhile.
fn latest(timers: &Value) -> String {
    let rows = || timers["longest"].as_array().into_iter().flatten();
    let mut behind: BTreeMap<&str, u64> = BTreeMap::new();
    for name in rows().filter_map(|row| row["running"].as_str()) {
        *behind.entry(name).or_default() += 1;
    }
    let mut behind: Vec<_> = behind.into_iter().collect();
    behind.sort_by_key(|(name, times)| (u64::MAX - times, *name));
    let named: Vec<_> = behind.iter().map(|(name, times)| format!("`{name}` {times}")).collect();
    let named = match named.is_empty() {
        true => String::new(),
        false => format!("; who had the CPU of how many of them: {}", named.join(", ")),
    };
    format!("the {} latest: {}{named}{}", rows().count(), parts(rows()), most(rows()))
}

fn rows(alone: &Latencies, beside: &Latencies) -> Vec<Row> {
    let counts = |run: &Latencies| {
        let counts = [1, 5, 10, 50].map(|ms| run.later_than(ms).to_string()).join(", ");
        format!("{counts} of {}", run.late_ns.len())
    };
    let figures = |run: &Latencies| {
        let at = |p| percentile(&run.late_ns, p).map_or("–".into(), |value| ns(value as f64));
        format!("{}, {}, {}", at(50.0), at(99.0), at(100.0))
    };
    vec![
        Row::new(
            "later than 1, 5, 10, 50 ms: alone",
            "–",
            counts(alone),
            &*alone.where_the_latest_went,
        ),
        Row::new(
            "the same with contention",
            format!(
                "of {PAPER_SAMPLES:.0}: 2.4.17 plain 284, 56, 45, 1; RML 202, 8, 2, 0; TimeSys 0, 0, 0, 0; 2.2.14 179, 112, 112, 0"
            ),
            counts(beside),
            &*beside.where_the_latest_went,
        ),
        Row::new(
            "median, p99, longest: alone",
            "–",
            figures(alone),
            format!("{}, of all", alone.where_all_went),
        ),
        Row::new(
            "the same with contention",
            "TimeSys: never above 600 µs",
            figures(beside),
            format!("{}, of all", beside.where_all_went),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_latest_are_told_by_parts_and_by_who_had_the_cpu() {
        let row = |parts: [i64; 4], running: Option<&str>| json!({ "parts_ns": parts, "running": running });
        let timers = json!({ "longest": [
            row([10, 0, 60, 0], Some("X")), row([0, 5, 20, 5], Some("grep")), row([0, 0, 0, 0], Some("grep")),
            json!({ "parts_ns": null, "running": null }),
        ] });
        let text = latest(&timers);
        assert!(
            text.starts_with(
                "the 4 latest: 10.0 % the timer was late, 5.0 % its interrupt, 80.0 % woken"
            ),
            "{text}"
        );
        assert!(text.contains("of them: `grep` 2, `X` 1; a thread of lower"), "{text}");
        let late_timer = json!({ "longest": [row([10, 0, 6, 0], None)] });
        assert!(
            latest(&late_timer).contains("0.0 % its interrupt")
                && latest(&late_timer).ends_with("tells which")
        );
        assert_eq!(latest(&json!({})), "the 0 latest: of no sample the parts are known");
    }
}
