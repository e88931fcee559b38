//! A trigger that is off.

use anyhow::Result;

use crate::bench::Bench;
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

const BODIES: [(&str, &str); 3] = [
    ("sixteen", "off, 16 sites in a loop with full issue slots, each; TSC cycles"),
    ("issue", "off, one site in that loop; TSC cycles"),
    ("latency", "off, one site in a loop with slack; TSC cycles"),
];

const PEERS: [(&str, &str); 5] = [
    ("paper", "the paper's jump"),
    ("flag", "relaxed load and branch"),
    ("tracing", "tracing"),
    ("usdt", "usdt"),
    ("lttng", "LTTng-UST"),
];

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(7) {
        samples.add_all("", &bench.subject(&["off"])?);
        if bench.has_lttng() {
            let mut lttng = bench.program(bench.beside("lttng"));
            samples.add_all("", &Figures::of(lttng.arg("off"))?);
        }
    }
    let row = |(body, what): (&str, &str)| -> Result<Row> {
        let median = |name: &str| samples.median(&format!("{name}.{body}"));
        let ours = samples.must(&format!("ours.{body}"))?;
        let others = || [("nop", "nop")].iter().chain(&PEERS);
        let best = PEERS.iter().filter_map(|(name, _)| median(name)).fold(f64::INFINITY, f64::min);
        // What the empty loop reads at another address, and what reads as less than nothing, comes from
        // where the code lies: differences below that mean nothing.
        let below = others().filter_map(|(name, _)| median(name)).fold(ours, f64::min);
        let error = samples.must(&format!("same.{body}"))?.abs().max(-below);
        let best = best.max(0.0);
        Ok(Row::new(what, number(ours))
            .goal("≤ every peer, ± the error", ours <= best + error)
            .beside(others().map(|(name, words)| (*words, median(name))))
            .remark(&format!("error {}", number(error))))
    };
    BODIES.into_iter().map(row).collect()
}
