//! What is printed of the passes: statistics, a histogram, and the longest.

use std::fmt::Write;

use serde::Serialize;

use super::measure::{Measured, Plan};
use crate::stats::{COARSE, histogram};
use crate::time::Time;

/// The statistics in nanoseconds, as JSON has them, and the text, too.
#[derive(Serialize)]
struct Figures {
    passes: u64,
    cpu: usize,
    /// The kernel keeps others from it.
    isolated: bool,
    priority: Option<u32>,
    tsc_hz: f64,
    minimum_ns: f64,
    mean_ns: f64,
    maximum_ns: f64,
    variance_ns2: f64,
    standard_deviation_ns: f64,
    p50_ns: f64,
    p99_ns: f64,
    p99_9_ns: f64,
    p99_99_ns: f64,
    /// What a pass takes that nothing disturbs.
    own_ns: f64,
    peak_ns: u64,
    peaks: u64,
    longest: Vec<Peak>,
    /// The shortest length of each bin, and how many passes it has.
    histogram: Vec<(f64, u64)>,
}

#[derive(Serialize)]
struct Peak {
    pass: u64,
    ns: f64,
}

fn figures(plan: &Plan, measured: &Measured) -> Figures {
    let lengths = &measured.lengths;
    let scale = 1e9 / measured.hz;
    let ns = |cycles: u64| cycles as f64 * scale;
    let variance_ns2 = lengths.variance() * scale * scale;
    let peak = |peak: &super::measure::Peak| Peak { pass: peak.pass, ns: ns(peak.cycles) };
    Figures {
        passes: lengths.passes(),
        cpu: measured.cpu,
        isolated: measured.isolated,
        priority: plan.real_time,
        tsc_hz: measured.hz,
        minimum_ns: ns(lengths.min()),
        mean_ns: lengths.mean() * scale,
        maximum_ns: ns(lengths.max()),
        variance_ns2,
        standard_deviation_ns: variance_ns2.sqrt(),
        p50_ns: ns(lengths.percentile(50.0)),
        p99_ns: ns(lengths.percentile(99.0)),
        p99_9_ns: ns(lengths.percentile(99.9)),
        p99_99_ns: ns(lengths.percentile(99.99)),
        own_ns: ns(measured.own_cycles),
        peak_ns: plan.peak_ns,
        peaks: measured.peaks,
        longest: measured.longest.iter().map(peak).collect(),
        histogram: lengths.bins().map(|(cycles, _, count)| (ns(cycles), count)).collect(),
    }
}

pub(super) fn json(plan: &Plan, measured: &Measured) -> String {
    crate::json(&figures(plan, measured))
}

/// Writing to a string cannot fail.
pub(super) fn text(plan: &Plan, measured: &Measured) -> String {
    let figures = figures(plan, measured);
    let class = match plan.real_time {
        Some(priority) => format!("SCHED_FIFO {priority}"),
        None => "scheduled as the process".to_owned(),
    };
    let memory = if plan.lock_memory { "memory locked" } else { "memory not locked" };
    let mut text = format!(
        "{} passes on CPU {}{}, {class}, {memory}; {} to warm up; counter {:.3} MHz\n",
        figures.passes,
        figures.cpu,
        if figures.isolated { " (isolated)" } else { "" },
        plan.warm_up,
        measured.hz / 1e6,
    );
    if figures.passes < plan.loops {
        let (limit, loops) = (Time(plan.max_time_ns), plan.loops);
        let _ = writeln!(text, "ended after {limit}, before {loops} passes were made");
    }
    for (name, value, unit) in [
        ("minimum", figures.minimum_ns, "ns"),
        ("mean", figures.mean_ns, "ns"),
        ("maximum", figures.maximum_ns, "ns"),
        ("variance", figures.variance_ns2, "ns²"),
        ("standard deviation", figures.standard_deviation_ns, "ns"),
        ("p50", figures.p50_ns, "ns"),
        ("p99", figures.p99_ns, "ns"),
        ("p99.9", figures.p99_9_ns, "ns"),
        ("p99.99", figures.p99_99_ns, "ns"),
    ] {
        let _ = writeln!(text, "{name:<18} {value:>14.1} {unit}");
    }
    text += &histogram(COARSE, figures.histogram.iter().map(|(ns, count)| (*ns as u64, *count)));
    let _ = writeln!(text, "{} passes longer than {}", figures.peaks, Time(figures.peak_ns));
    for peak in &figures.longest {
        let _ = writeln!(text, "  pass {:>12} {:>10.3} µs", peak.pass, peak.ns / 1e3);
    }
    text
}
