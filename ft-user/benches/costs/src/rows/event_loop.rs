//! The npt loop: real-time, one event a pass, the agent draining on the other core.

use anyhow::Result;
use ft_costs::signed_rank;

use crate::bench::Bench;
use crate::figures::Samples;
use crate::table::{Row, number};

/// Memory that is backed before each run, bytes: more than a trace of it takes.
const BACKED: f64 = 1.5e9;

/// A median difference beyond this share of the untraced figure is one, whatever the noise.
const EQUAL: f64 = 0.05;

/// What chance alone does not bring about as often as this is a difference, however small it is.
const LIKELY: f64 = 0.05;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    let lttng = bench.lttng()?;
    for _ in 0..bench.rounds(15) {
        bench.back_memory(BACKED)?;
        let none = bench.subject(&["loop", "none"])?;
        // Where priorities are refused the other rows say so.
        if let Ok([mean, p999]) = bench.npt(none.get("passes")?) {
            samples.add("load.mean", mean);
            samples.add("load.p999", p999);
            samples.add("load.ratio", mean / none.get("mean")?);
        }
        bench.back_memory(BACKED)?;
        let options = ["-k", "none", "-e", "costs.*", "--ring-size", "32M"];
        let ours = bench.record(&options, &["loop", "on"])?;
        samples.add("more stalls", ours.figures.get("stalls")? - none.get("stalls")?);
        samples.add_all("none.", &none);
        samples.add_all("ours.", &ours.figures);
        samples.add("lost", 100.0 * ours.lost as f64 / ours.figures.get("passes")?);
        if let Some(lttng) = &lttng {
            for (name, timer) in [("wake.", &[][..]), ("timer.", &["--read-timer=10000"])] {
                bench.back_memory(BACKED)?;
                samples.add_all(name, &lttng.subject(timer, &["loop"])?.figures);
            }
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
    let low = (p999 - samples.must("none.p999")?).floor() <= 40.0;
    let goal = match samples.median("wake.p999") {
        Some(lttng) => tail.goal("≤ untraced + 40, and < LTTng-UST", low && p999 < lttng),
        None => tail.goal("≤ untraced + 40", low),
    };
    let more = samples.must("more stalls")?;
    let chance = signed_rank::above_zero(samples.all("more stalls"));
    let equal = more <= EQUAL * samples.must("none.stalls")? && chance >= LIKELY;
    let what = "the same, passes above 5 µs per second";
    let stalled = Row::new(what, number(samples.must("ours.stalls")?)).goal(
        "as untraced: in pairs, at most 5 % more at the median, and Wilcoxon's p ≥ 0.05",
        equal,
    );
    let pairs = format!("{more:+.0} in pairs, p = {chance:.2}");
    let rates = format!("{lost:.1} % of our events lost");
    let load = match (samples.median("load.mean"), samples.median("load.ratio")) {
        (Some(mean), Some(ratio)) => {
            let own = [("this loop", samples.median("none.mean"))];
            let row = Row::new(
                "untraced, as `ft-load npt` measures it, mean of a pass; ns",
                number(mean),
            );
            Some(row.beside(own).remark(&format!("{ratio:.2} times in pairs")))
        }
        _ => None,
    };
    let mut rows = vec![
        beside(goal, "p999").remark(&rates),
        beside(stalled, "stalls").remark(&pairs),
        beside(
            Row::new("the same, mean of a pass; ns", number(samples.must("ours.mean")?)),
            "mean",
        ),
    ];
    rows.extend(load);
    Ok(rows)
}
