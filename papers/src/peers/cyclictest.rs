//! `LAT` beside `cyclictest`: same period, same priority, same CPU, by turns.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::output;
use crate::plot::bars::{self, Histogram};
use crate::quantity::{digits, ns};
use crate::stats::{Interval, percentile};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "cyclictest",
    title: "Beside cyclictest: dispatch latencies with the same period and priority",
    full_minutes: 11.0,
    programs: &["cyclictest"],
    run,
};

const ROUNDS: usize = 100;

/// Of each turn.
const SECONDS: f64 = 3.0;

const PERIOD_US: u32 = 1000;

/// Longest latency that cyclictest tells apart, µs.
const LONGEST_US: u32 = 50_000;

fn run(lab: &Lab) -> Result<Finding> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Who goes first changes, so that a trend of the machine favours nobody.
    for round in 0..lab.trials(ROUNDS) {
        if round % 2 == 0 {
            ours.push(lat(lab)?);
            theirs.push(cyclictest(lab)?);
        } else {
            theirs.push(cyclictest(lab)?);
            ours.push(lat(lab)?);
        }
    }
    let mut csv = Csv::new(["program", "round", "late_ns", "count"]);
    for (name, rounds) in [("LAT", &ours), ("cyclictest", &theirs)] {
        for (round, late) in rounds.iter().enumerate() {
            for same in late.chunk_by(|a, b| a == b) {
                csv.row([&name, &round, &same[0], &same.len()]);
            }
        }
    }
    let histogram = |title: &str, rounds: &[Vec<u64>]| Histogram {
        title: title.into(),
        values: rounds.iter().flatten().map(|ns| (*ns as f64, 1)).collect(),
    };
    let svg = bars::draw(&[histogram("LAT", &ours), histogram("cyclictest", &theirs)], true)?;
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -n 1 -p fifo:80 -w LAT 1ms -i HR` and `cyclictest -p80 -i{PERIOD_US} -m`, on CPU {}, by turns, {} \
             rounds of {:.1} s each. Intervals are means of rounds with 95 % confidence.",
            lab.cpu(),
            lab.trials(ROUNDS),
            lab.seconds(SECONDS)
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&ours, &theirs),
    })
}

/// Latencies of one turn, sorted, in whole microseconds as cyclictest has them, but told in ns.
fn lat(lab: &Lab) -> Result<Vec<u64>> {
    let line = format!("-n 1 --cpu {} -p fifo:80 -w LAT {PERIOD_US}us -i HR", lab.cpu());
    let outcome = lab.hourglass(SECONDS, &line)?;
    let late = |s: &ft_load::hourglass::Sample| s.woke_ns.saturating_sub(s.due_ns) / 1000 * 1000;
    let mut late: Vec<u64> = outcome.threads[0].samples.iter().map(late).collect();
    late.sort_unstable();
    Ok(late)
}

fn cyclictest(lab: &Lab) -> Result<Vec<u64>> {
    let loops = (lab.seconds(SECONDS) * 1e6 / f64::from(PERIOD_US)).round();
    let cpu = lab.cpu().to_string();
    let file =
        std::env::temp_dir().join(format!("ft-papers-cyclictest-{}.json", std::process::id()));
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-t1", "-p80", "--default-system", "-a", &cpu]);
    command.args([format!("-i{PERIOD_US}"), format!("-l{loops}"), format!("-h{LONGEST_US}")]);
    command.arg(format!("--json={}", file.display()));
    output(&mut command)?;
    let text = std::fs::read_to_string(&file).context("cyclictest wrote no JSON")?;
    let _ = std::fs::remove_file(&file);
    let json: Value = serde_json::from_str(&text).context("cyclictest's JSON")?;
    let histogram =
        json["thread"]["0"]["histogram"].as_object().context("cyclictest's histogram")?;
    let mut late = Vec::new();
    for (us, count) in histogram {
        let us: u64 = us.parse().context("cyclictest's histogram")?;
        late.extend(std::iter::repeat_n(us * 1000, count.as_u64().unwrap_or(0) as usize));
    }
    late.sort_unstable();
    Ok(late)
}

fn rows(ours: &[Vec<u64>], theirs: &[Vec<u64>]) -> Vec<Row> {
    let figure = |what: &str, of: &dyn Fn(&[u64]) -> f64, why: &str| {
        let each =
            |rounds: &[Vec<u64>]| -> Vec<f64> { rounds.iter().map(|late| of(late)).collect() };
        let (own, other) = (each(ours), each(theirs));
        let told = |values: &[f64]| {
            let Interval { mean, half } = Interval::of(values);
            format!("{} ± {}", ns(mean), ns(half))
        };
        let ratios: Vec<f64> = own.iter().zip(&other).map(|(a, b)| (a / b.max(1.0)).ln()).collect();
        let Interval { mean, half } = Interval::of(&ratios);
        let ratio = format!(
            "{} (ratio {}, 95 %: {} to {})",
            told(&own),
            digits(mean.exp()),
            digits((mean - half).exp()),
            digits((mean + half).exp())
        );
        Row::new(what, format!("cyclictest: {}", told(&other)), ratio, why)
    };
    let at = |p: f64| move |late: &[u64]| percentile(late, p).unwrap_or(0) as f64;
    let mean = |late: &[u64]| late.iter().sum::<u64>() as f64 / late.len().max(1) as f64;
    vec![
        figure(
            "mean",
            &mean,
            "both sleep until an absolute time of `CLOCK_MONOTONIC` and read the clock behind it",
        ),
        figure("median", &at(50.0), "whole microseconds on both sides"),
        figure(
            "p99",
            &at(99.0),
            "what LAT waits for drifts over the grid of the clock interrupt, and about one in a hundred comes just when that does, which takes longer; \
             cyclictest's keeps its distance",
        ),
        figure(
            "longest",
            &at(100.0),
            "of one turn; cyclictest's next period begins when it should have, that of LAT when it did, so one long delay makes \
             one late sample of LAT, but several of cyclictest",
        ),
    ]
}
