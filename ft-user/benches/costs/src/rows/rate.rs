//! The highest rate at which nothing is lost: ours as `ft-load capacity` finds it, LTTng's by the same search.

use anyhow::Result;
use ft_load::capacity::{Range, Trial, highest};

use crate::bench::Bench;
use crate::lttng::Daemon;
use crate::table::{Row, number};

/// Memory that is backed before a run, for each of its events, bytes: what the larger trace takes, and half as
/// much again.
const BACKED: f64 = 48.0;

/// Most memory that is backed, bytes.
const MOST_BACKED: f64 = 4e9;

/// Million events a second of all threads.
fn lttng(bench: &Bench, daemon: &Daemon<'_>, threads: usize) -> Result<f64> {
    let seconds = if bench.quick { 0.5 } else { 2.0 };
    let run = |asked: f64| {
        bench.back_memory(MOST_BACKED.min(BACKED * asked * threads as f64 * seconds))?;
        let words = [threads.to_string(), (asked / 1e6).to_string(), seconds.to_string()];
        let traced = daemon.subject(&[], &["rate", &words[0], &words[1], &words[2]])?;
        let reached = traced.figures.get("rate")? * 1e6 / threads as f64;
        anyhow::Ok(Trial { asked, reached, lost: traced.lost })
    };
    Ok(highest(Range::default(), run)?.map_or(0.0, |found| found.reached * threads as f64 / 1e6))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let daemon = bench.lttng()?;
    let mut rows = Vec::new();
    for (threads, words) in [(1, "one thread"), (2, "two threads, paced")] {
        let ours = bench.capacity(threads, "none")?;
        let lttng = daemon.as_ref().map(|daemon| lttng(bench, daemon, threads)).transpose()?;
        let what = format!("lossless into the spool on tmpfs, {words}; million events a second");
        let row = Row::new(what, number(ours));
        rows.push(match lttng {
            Some(lttng) => {
                row.goal("> LTTng-UST", ours > lttng).beside([("LTTng-UST", Some(lttng))])
            }
            None => row.goal_without_peer("> LTTng-UST"),
        });
        let what = "the same with the kernel stream";
        rows.push(match bench.capacity(threads, "sched,irq,task") {
            Ok(kernel) => Row::new(what, number(kernel)),
            Err(error) => Row::unmeasured(what, &error),
        });
    }
    Ok(rows)
}
