//! The npt loop: real-time, one event a pass, the agent draining on the other core.

use anyhow::Result;

use crate::bench::Bench;
use crate::figures::Samples;
use crate::table::{Row, number};

/// What has stalled no more often than the worst of the untraced runs, within this, has not stalled more.
const NOISE: f64 = 1.05;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    let lttng = bench.lttng()?;
    for _ in 0..bench.rounds(5) {
        samples.add_all("none.", &bench.subject(&["loop", "none"])?);
        let options = ["-k", "none", "-e", "costs.*", "--ring-size", "32M"];
        let ours = bench.record(&options, &["loop", "on"])?;
        samples.add_all("ours.", &ours.figures);
        samples.add("lost", 100.0 * ours.lost as f64 / ours.figures.get("passes")?);
        if let Some(lttng) = &lttng {
            samples.add_all("wake.", &lttng.subject(&[], &["loop"])?.figures);
            let timer = ["--read-timer=10000"];
            samples.add_all("timer.", &lttng.subject(&timer, &["loop"])?.figures);
        }
    }
    let beside = |row: Row, figure: &str| {
        let median = |who: &str| samples.median(&format!("{who}.{figure}"));
        row.beside([
            ("untraced", median("none")),
            ("LTTng-UST waking its reader", median("wake")),
            ("LTTng-UST with a read timer", median("timer")),
        ])
    };
    let priority = match samples.must("ours.fifo")? {
        1.0 => "SCHED_FIFO",
        _ => "**without real-time priority, which was refused**",
    };
    let lost = samples.must("lost")?;
    let p999 = samples.must("ours.p999")?;
    let tail = Row::new(format!("npt loop, {priority}, p99.9 of a pass; ns"), number(p999));
    // Passes are whole steps of the counter; with steps of 10 ns, the fourth reads 40.1.
    let low = p999.floor() <= 40.0;
    let goal = match samples.median("wake.p999") {
        Some(lttng) => tail.goal("≤ 40, where LTTng-UST reads 90", low && p999 < lttng),
        None => tail.goal("≤ 40", low),
    };
    let stalls = samples.must("ours.stalls")?;
    let highest = samples.highest("none.stalls").unwrap_or(0.0);
    let stalled = Row::new("the same, passes above 5 µs per second", number(stalls))
        .goal(format!("≤ the worst untraced run ({highest:.0}) + 5 %"), stalls <= NOISE * highest);
    let rates = format!("{lost:.1} % of our events lost");
    Ok(vec![
        beside(goal, "p999").remark(&rates),
        beside(stalled, "stalls"),
        beside(
            Row::new("the same, mean of a pass; ns", number(samples.must("ours.mean")?)),
            "mean",
        ),
    ])
}
