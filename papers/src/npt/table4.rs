//! Table 4: how many events a second a recording keeps without a loss.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::output;
use crate::quantity::digits;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "npt-table4",
    title: "npt, Table 4: events a second without a loss",
    full_minutes: 5.0,
    programs: &["ft-agent", "ft-load"],
    run,
};

/// Of a run of the search, of which there are about twenty for each row.
const SECONDS: f64 = 2.0;

/// Kernel groups: none, as in the paper those of a few trace points, and all that are on by default.
const KERNEL: [(&str, &str); 3] = [
    ("none", "applications alone"),
    ("syscall", "with system calls"),
    ("sched,irq,task", "with scheduling, interrupts and tasks"),
];

fn run(lab: &Lab) -> Result<Finding> {
    let ms = (lab.seconds(SECONDS) * 1e3).round();
    let mut capacity = Command::new(lab.tool("ft-load")?);
    capacity.args(["capacity", "--json", "--threads", "1", "--ring-size", "32M", "--agent"]);
    capacity.arg(lab.tool("ft-agent")?).args(["--time", &format!("{ms}ms")]);
    for (groups, _) in KERNEL {
        capacity.args(["-k", groups]);
    }
    let json: Value = serde_json::from_str(&output(&mut capacity)?).context("capacity's JSON")?;
    let mut csv = Csv::new(["kernel", "asked_per_second", "reached_per_second", "lost"]);
    let mut rows = Vec::new();
    for row in json.as_array().context("capacity has rows")? {
        let kernel = row["kernel"].as_str().unwrap_or_default();
        let name =
            KERNEL.iter().find(|(groups, _)| *groups == kernel).map_or(kernel, |(_, name)| name);
        for trial in row["capacity"]["trials"].as_array().into_iter().flatten() {
            let number = |key: &str| trial[key].as_f64().unwrap_or(0.0);
            csv.row([
                &name.replace(',', ""),
                &number("asked"),
                &number("reached"),
                &number("lost"),
            ]);
        }
        let reached = row["capacity"]["reached"].as_f64();
        rows.push(Row::new(
            format!("{name}; million events a second"),
            "–",
            reached.map_or("loses at any rate".into(), |rate| digits(rate / 1e6)),
            why(&row["capacity"]["limit"]),
        ));
    }
    Ok(Finding {
        how: format!(
            "`ft-load capacity --threads 1 --ring-size 32M -k … --time {ms}ms`: the highest rate, by binary search, at which three \
             recordings reach it and lose nothing; one thread, a ring of 32 MiB, as the paper's buffers. LTTng's own limit on such machines is in \
             [the table of costs](../ft-user/benches/README.md)."
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}

/// What bounds a rate, by the word that `ft-load capacity` has for it.
fn why(limit: &Value) -> String {
    let bound = match limit.as_str() {
        Some("program") => "Higher rates are beyond what the thread can write",
        Some("starved") => {
            "Nothing was lost at the rates above that were reached: to those, other programs kept the thread from its CPU"
        }
        Some("search") => "Higher rates were not tried",
        _ => {
            "One loss in three recordings makes a rate too high, so any program that keeps the reader from its CPU for some ms \
             lowers the figure"
        }
    };
    format!("the text has no body of the table. {bound}: the values have each trial")
}
