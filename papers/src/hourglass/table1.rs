//! Table 1 and section 5.3: dispatch latency beside file systems and network.

use std::process::Command;

use anyhow::Result;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::Load;
use crate::plot::bars::{self, Histogram};
use crate::quantity::ns;
use crate::stats::percentile;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-table1",
    title: "Hourglass, Table 1: dispatch latency with contention",
    full_minutes: 12.1,
    programs: &["iperf3"],
    run,
};

const PAPER_SECONDS: f64 = 360.0;

/// Samples of the paper's runs, about.
const PAPER_SAMPLES: f64 = 65_000.0;

fn run(lab: &Lab) -> Result<Finding> {
    let line = format!("-n 1 --cpu {} -t 0 -p RTHIGH -w LAT 5.3ms -i HR", lab.cpu());
    let alone = latencies(lab, &line)?;
    let mut grep = Load::repeat("grep -r -a no-such-words /usr /lib")?;
    let mut server =
        Load::start(Command::new("iperf3").args(["-s", "-p", PORT, "-B", "127.0.0.1"]))?;
    let mut client = Load::repeat(&format!("iperf3 -c 127.0.0.1 -p {PORT} -t 3600 || sleep 0.2"))?;
    let beside = latencies(lab, &line)?;
    for (load, name) in
        [(&mut grep, "grep"), (&mut server, "iperf3 -s"), (&mut client, "iperf3 -c")]
    {
        load.check(name)?;
    }
    drop((client, server, grep));

    let mut csv = Csv::new(["scenario", "late_ns"]);
    for (name, late) in [("alone", &alone), ("contention", &beside)] {
        late.iter().for_each(|late_ns| csv.row([&name, late_ns]));
    }
    let histogram = |title: &str, late: &[u64]| Histogram {
        title: title.into(),
        values: late.iter().map(|ns| (*ns as f64, 1)).collect(),
    };
    let svg = bars::draw(
        &[histogram("alone", &alone), histogram("beside grep and iperf3", &beside)],
        true,
    )?;
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -d 6m {line}`, alone and beside a recursive `grep` over `/usr` and `/lib` and `iperf3` over \
             loopback: {} and {} samples. Timer `HR` stands for `RTC`, where the kernel has no real-time clock; local files stand \
             for NFS, and loopback for the second machine.",
            alone.len(),
            beside.len()
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&alone, &beside),
    })
}

const PORT: &str = "5299";

/// How late each sample was, sorted, ns.
fn latencies(lab: &Lab, line: &str) -> Result<Vec<u64>> {
    let outcome = lab.hourglass(PAPER_SECONDS, line)?;
    let samples = &outcome.threads[0].samples;
    let mut late: Vec<u64> = samples.iter().map(|s| s.woke_ns.saturating_sub(s.due_ns)).collect();
    late.sort_unstable();
    Ok(late)
}

fn rows(alone: &[u64], beside: &[u64]) -> Vec<Row> {
    let later =
        |late: &[u64], ms: u64| late.len() - late.partition_point(|ns| *ns <= ms * 1_000_000);
    let counts = |late: &[u64]| {
        let counts = [1, 5, 10, 50].map(|ms| later(late, ms).to_string()).join(", ");
        format!("{counts} of {}", late.len())
    };
    let figures = |late: &[u64]| {
        let at = |p| percentile(late, p).map_or("–".into(), |value| ns(value as f64));
        format!("{}, {}, {}", at(50.0), at(99.0), at(100.0))
    };
    vec![
        Row::new(
            "later than 1, 5, 10, 50 ms: alone",
            "–",
            counts(alone),
            "time that the host of the virtual machine took",
        ),
        Row::new(
            "the same with contention",
            format!(
                "of {PAPER_SAMPLES:.0}: 2.4.17 plain 284, 56, 45, 1; RML 202, 8, 2, 0; TimeSys 0, 0, 0, 0; 2.2.14 179, 112, 112, 0"
            ),
            counts(beside),
            "this kernel is built with `CONFIG_PREEMPT_NONE`, so that it is like the plain one of 2002: a recording shows the \
             thread woken, and `grep` in the kernel for milliseconds until it is let go",
        ),
        Row::new(
            "median, p99, longest: alone",
            "–",
            figures(alone),
            "timer interrupt, waking, switch",
        ),
        Row::new(
            "the same with contention",
            "TimeSys: never above 600 µs",
            figures(beside),
            "the same; the median is lower than alone, probably because a CPU that is busy need not be woken by the host",
        ),
    ]
}
