//! Table 1: what an event costs, beside a system call and a buffered write.

use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::recording::Recording;
use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::output;
use crate::quantity::{digits, ns};
use crate::recorded::leading_json;
use crate::stats::Interval;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "multilevel-table1",
    title: "Multi-level traces, Table 1: the cost of an event",
    full_minutes: 2.0,
    programs: &["ft-agent", "ft-load"],
    run,
};

const TRIALS: usize = 30;
const GOES: usize = 1000;

/// What a traced function costs on, what it costs off, and the others; the paper's cycles, and why ours differ.
const ROWS: [(&str, &str, &str, f64, &str); 4] = [
    (
        "function_on",
        "PROF_IN: the begin of a traced function",
        "260",
        0.5,
        "half of what begin and end take together. No test of a mask, no header of several words, and no instruction that locks the bus: the ring is its \
         thread's own, where the paper's threads share one",
    ),
    (
        "function_off",
        "the same while nobody records",
        "–",
        0.5,
        "the paper tests a variable; ours is a nop",
    ),
    (
        "getpid",
        "getpid()",
        "1900",
        1.0,
        "another processor, and another way into the kernel; not looked into here",
    ),
    (
        "printf",
        "printf(\"test\")",
        "672",
        1.0,
        "another processor, and another C library; not looked into here",
    ),
];

fn run(lab: &Lab) -> Result<Finding> {
    let trials = lab.trials(TRIALS);
    let goes = if lab.is_try() { 50 } else { GOES };
    let load = format!("costs --goes {goes}");
    let mut csv = Csv::new(["trial", "what", "cycles"]);
    let mut cycles: [Vec<f64>; 4] = Default::default();
    let (mut hz, mut lost) = (0.0, 0);
    for trial in 0..trials {
        let mut alone = Command::new(lab.tool("ft-load")?);
        let alone = leading_json(&output(alone.arg("tasks").args(load.split(' ')))?)?.0;
        let options = ["--no-convert", "-k", "none", "-e", "fn.costs::*"];
        let recording = Recording::of(lab, &options, &load)?;
        lost += recording.size().1;
        hz = alone["tsc_hz"].as_f64().unwrap_or(0.0);
        let of = |said: &Value, name: &str| said[name].as_f64().unwrap_or(0.0);
        let values = [
            of(&recording.said, "function"),
            of(&alone, "function"),
            of(&alone, "getpid"),
            of(&alone, "printf"),
        ];
        for (n, (name, ..)) in ROWS.iter().enumerate() {
            csv.row([&trial, name, &format!("{:.2}", values[n])]);
            cycles[n].push(values[n]);
        }
    }
    let row =
        |((_, what, paper, part, why), values): (&(&str, &str, &str, f64, &str), &Vec<f64>)| {
            let Interval { mean, half } = Interval::of(values);
            // Less than the last digit is nothing, on whichever side.
            let mean = if mean.abs() < 0.005 { 0.0 } else { mean * part };
            let half = half * part;
            let ours = format!("{} ± {} ({})", digits(mean), digits(half), ns(mean / hz * 1e9));
            Row::new(format!("{what}; cycles"), *paper, ours, *why)
        };
    Ok(Finding {
        how: format!(
            "`ft-load tasks {load}`, alone and under `ft-agent record -k none -e 'fn.costs::*'`, by turns, {trials} times: the middle of {goes} readings \
             around 500 calls each, without what a function costs that has no events. Means with 95 % confidence; cycles of the time stamp \
             counter, {:.2} GHz; {lost} events lost.",
            hz / 1e9
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: ROWS.iter().zip(&cycles).map(row).collect(),
    })
}
