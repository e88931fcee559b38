//! The highest rate at which nothing is lost, by binary search.

use anyhow::Result;

use crate::bench::Bench;
use crate::lttng::Daemon;
use crate::table::{Row, number};

/// Where the search begins, and where it gives up, millions a second and thread.
const RATES: (f64, f64) = (12.0, 200.0);

/// The search ends when the bounds are this close.
const CLOSE: f64 = 1.04;

/// Runs without a loss that make a rate lossless.
const CONFIRMED: usize = 3;

/// Memory that is backed before a run, for each of its events, bytes: what the larger trace takes, and half as
/// much again.
const BACKED: f64 = 48.0;

/// Most memory that is backed, bytes.
const MOST_BACKED: f64 = 4e9;

/// Who records.
#[derive(Clone, Copy)]
enum Tracer<'a> {
    Ours { kernel: &'static str },
    Lttng(&'a Daemon<'a>),
}

/// One thread or two, recorded by one tracer.
struct Search<'a> {
    bench: &'a Bench,
    tracer: Tracer<'a>,
    threads: usize,
}

impl Search<'_> {
    /// Runs once at `rate` a thread: the rate of all that was reached, and whether nothing was lost.
    fn run(&self, rate: f64) -> Result<(f64, bool)> {
        let seconds = if self.bench.quick { 0.5 } else { 2.0 };
        let events = rate * 1e6 * self.threads as f64 * seconds;
        self.bench.back_memory(MOST_BACKED.min(BACKED * events))?;
        let words = [self.threads.to_string(), rate.to_string(), seconds.to_string()];
        let subject = ["rate", &words[0], &words[1], &words[2]];
        let (figures, lost) = match self.tracer {
            Tracer::Ours { kernel } => {
                // As many bytes as LTTng has, and no conversion of what is not whole.
                let sizes = ["--ring-size", "32M", "--segment-size", "1G"];
                let options = [&["-e", "costs.*", "-k", kernel], &sizes[..]].concat();
                let recorded = self.bench.record(&options, &subject)?;
                (recorded.figures, recorded.lost)
            }
            Tracer::Lttng(daemon) => {
                let traced = daemon.subject(&[], &subject)?;
                (traced.figures, traced.lost)
            }
        };
        Ok((figures.get("rate")?, lost == 0))
    }

    /// Millions of events a second of all threads.
    fn highest(&self) -> Result<f64> {
        let (mut lossless, mut lossy, mut rate) = (0.0, None, RATES.0);
        loop {
            let (reached, whole) = self.run(rate)?;
            if whole {
                lossless = rate;
            } else {
                lossy = Some(rate);
            }
            // As fast as the threads can, and still whole.
            let flat_out = whole && reached < 0.97 * rate * self.threads as f64;
            rate = match lossy {
                None if flat_out || lossless >= RATES.1 => break,
                None => 1.5 * lossless,
                Some(lossy) if lossless == 0.0 => lossy / 2.0,
                Some(lossy) if lossy / lossless <= CLOSE => break,
                Some(lossy) => (lossy * lossless).sqrt(),
            };
        }
        // The edge is not sharp: step down until several runs agree.
        loop {
            let runs: Vec<(f64, bool)> = (0..self.bench.rounds(CONFIRMED))
                .map(|_| self.run(lossless))
                .collect::<Result<_>>()?;
            if runs.iter().all(|&(_, whole)| whole) {
                return Ok(ft_costs::median(runs.iter().map(|run| run.0).collect()));
            }
            lossless /= CLOSE;
        }
    }
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let daemon = bench.lttng()?;
    let mut rows = Vec::new();
    for (threads, words) in [(1, "one thread"), (2, "two threads, paced")] {
        let search = |tracer| Search { bench, tracer, threads }.highest();
        let ours = search(Tracer::Ours { kernel: "none" })?;
        let lttng = daemon.as_ref().map(|daemon| search(Tracer::Lttng(daemon))).transpose()?;
        let what = format!("lossless into the spool on tmpfs, {words}; million events a second");
        let row = Row::new(what, number(ours));
        rows.push(match lttng {
            Some(lttng) => {
                row.goal("> LTTng-UST", ours > lttng).beside([("LTTng-UST", Some(lttng))])
            }
            None => row.goal_without_peer("> LTTng-UST"),
        });
        let what = "the same with the kernel stream";
        rows.push(match search(Tracer::Ours { kernel: "sched,irq,task" }) {
            Ok(kernel) => Row::new(what, number(kernel)),
            Err(error) => Row::unmeasured(what, &error),
        });
    }
    Ok(rows)
}
