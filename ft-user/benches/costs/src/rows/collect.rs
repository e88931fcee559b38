//! What the agent spends on the events of a program that does nothing unusual, from its ring to the spool.

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::figures::Samples;
use crate::table::{Row, number};

/// Millions of events a second of the two runs. What a recording costs besides its events is in both, and the difference
/// is without it.
const RATES: [f64; 2] = [1.0, 6.0];

/// Length of a run.
const SECONDS: f64 = 2.0;

/// The agent's CPU time in one run, seconds, and the events that it took.
fn run(bench: &Bench, rate: f64) -> Result<(f64, f64)> {
    let [rate, seconds] = [rate, SECONDS].map(|n| n.to_string());
    let before = ft_costs::cpu::of_children();
    let sizes = ["--ring-size", "32M", "--segment-size", "1G"];
    let options = [&["-k", "none", "-e", "costs.*"][..], &sizes].concat();
    let recorded = bench.record(&options, &["rate", "1", &rate, &seconds])?;
    let spent = ft_costs::cpu::of_children() - before;
    ensure!(recorded.lost == 0, "{} events of a run were lost", recorded.lost);
    Ok((spent - recorded.figures.get("cpu")?, recorded.figures.get("produced")?))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(5) {
        let [(idle, few), (busy, many)] = [run(bench, RATES[0])?, run(bench, RATES[1])?];
        samples.add("ns", 1e9 * (busy - idle) / (many - few));
    }
    let ns = samples.must("ns")?;
    let what = "the agent's CPU time for an event of an ordinary program, ring to spool; ns";
    let rate = ("million events a second of that time", Some(1e3 / ns));
    Ok(vec![Row::new(what, number(ns)).beside([rate])])
}
