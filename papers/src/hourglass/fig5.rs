//! Figure 5 and section 5.2: what a context switch costs later, by lost contents of caches.

use anyhow::Result;
use ft_load::hourglass::{Cause, Outcome, gaps};

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::curves::{self, Axes, Curve};
use crate::quantity::ns;
use crate::stats::Interval;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-fig5",
    title: "Hourglass, Figure 5: working sets, and performance lost to context switches",
    full_minutes: 293.0,
    programs: &[],
    run,
};

const SIZES_KB: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

const THREADS: usize = 10;

/// The same of the paper.
const PAPER_SECONDS: f64 = 45.0;
const PAPER_TRIALS: usize = 15;

/// What one trial has shown.
#[derive(Clone, Copy)]
struct Trial {
    /// Passes over the array, of one thread and of ten.
    one: f64,
    ten: f64,
    seconds: f64,
    switches: f64,
}

impl Trial {
    /// The paper's formula: work lost, as a time, per switch, ns. `None` where one thread did no work.
    fn penalty_ns(&self) -> Option<f64> {
        let lost = (self.one - self.ten) / self.one;
        (self.one > 0.0).then(|| lost * self.seconds * 1e9 / self.switches.max(1.0))
    }
}

fn run(lab: &Lab) -> Result<Finding> {
    let mut csv = Csv::new([
        "size_kb",
        "trial",
        "passes_1",
        "passes_10",
        "seconds",
        "switches",
        "penalty_ns",
    ]);
    let mut points: Vec<(f64, Interval)> = Vec::new();
    // All sizes once, then all again: a change of the machine falls on all of them.
    let mut penalties = vec![Vec::new(); SIZES_KB.len()];
    for number in 0..lab.trials(PAPER_TRIALS) {
        for (n, size_kb) in SIZES_KB.iter().enumerate() {
            let trial = trial(lab, *size_kb)?;
            // Where the CPU was others' for as long as the trial took, nothing is lost and nothing known.
            let Some(penalty_ns) = trial.penalty_ns() else { continue };
            let Trial { one, ten, seconds, switches } = &trial;
            csv.row([size_kb, &number, one, ten, seconds, switches, &penalty_ns]);
            penalties[n].push(penalty_ns);
        }
    }
    for (size_kb, penalties) in SIZES_KB.iter().zip(&penalties).filter(|(_, p)| !p.is_empty()) {
        points.push((*size_kb as f64, Interval::of(penalties)));
    }
    let in_us =
        |(size, interval): &(f64, Interval)| (*size, interval.mean / 1e3, interval.half / 1e3);
    let curve: Vec<(f64, f64, f64)> = points.iter().map(in_us).collect();
    let ends = |sign: f64| {
        move |(_, mean, half): &(f64, f64, f64)| {
            mean + sign * if half.is_finite() { *half } else { 0.0 }
        }
    };
    let top = curve.iter().map(ends(1.0)).fold(1.0, f64::max) * 1.05;
    let bottom = curve.iter().map(ends(-1.0)).fold(0.0, f64::min) * 1.05;
    let svg = curves::draw(
        &[Curve { name: "mean, 95 % confidence".into(), points: curve }],
        &Axes {
            x: "working set of each thread, KB",
            y: "lost per context switch, µs",
            log_x: 2.0,
            y_range: bottom..top,
            names_below: false,
            x_label: &|kb| format!("{kb:.0}"),
        },
    )?;
    Ok(Finding {
        how: format!(
            "{} trials for each size, each of {:.1} s with one thread and {:.1} s with ten (`-w CPU_SCAN KB`); the paper: 15 of 45 s. \
             C = (W1 − W10)/W1 · T/N10. {} trials are left out, in which one thread made no whole pass.",
            lab.trials(PAPER_TRIALS),
            lab.seconds(PAPER_SECONDS),
            lab.seconds(PAPER_SECONDS),
            lab.trials(PAPER_TRIALS) * SIZES_KB.len()
                - penalties.iter().map(Vec::len).sum::<usize>()
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&points),
    })
}

fn trial(lab: &Lab, size_kb: u64) -> Result<Trial> {
    let cpu = lab.cpu();
    let line = |threads| format!("-n {threads} --cpu {cpu} -a -p NORMAL -w CPU_SCAN {size_kb}");
    let passes = |outcome: &Outcome| outcome.threads.iter().map(|t| t.passes).sum::<u64>() as f64;
    let one = lab.hourglass(PAPER_SECONDS, &line(1))?;
    let ten = lab.hourglass(PAPER_SECONDS, &line(THREADS))?;
    let switches = gaps(&ten).iter().filter(|gap| gap.cause == Cause::Involuntary).count();
    Ok(Trial {
        one: passes(&one),
        ten: passes(&ten),
        seconds: lab.seconds(PAPER_SECONDS),
        switches: switches as f64,
    })
}

fn rows(points: &[(f64, Interval)]) -> Vec<Row> {
    let at = |kb: f64| match points.iter().find(|(size, _)| *size == kb) {
        Some((_, Interval { mean, half })) => format!("{} ± {}", ns(*mean), ns(*half)),
        None => "–".into(),
    };
    vec![
        Row::new(
            "4 KB",
            "–",
            at(4.0),
            "the switch itself; where the interval has 0 in it, the runs were too short to tell it",
        ),
        Row::new("32 KB", "–", at(32.0), "fits into a first-level cache alone; ten do not"),
        Row::new(
            "128 KB",
            "up to here predictable, roughly 0.33 ms for 100 KB",
            at(128.0),
            "ten of these fit into a second-level cache of 2 MiB, which the Pentium III had 256 KB of: no refill from memory",
        ),
        Row::new(
            "1 MB",
            "–",
            at(1024.0),
            "ten do not fit into the second level: refilled from the third, at tens of GB/s and not 0.3",
        ),
        Row::new(
            "spread above 128 KB",
            "unpredictable (no page colouring)",
            format!("4 MB: {}", at(4096.0)),
            "pages of the caches are physical here, too; and other guests share the third level",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_without_work_has_no_penalty() {
        let trial = |one, ten| Trial { one, ten, seconds: 1.0, switches: 4.0 }.penalty_ns();
        assert_eq!((trial(10.0, 8.0), trial(0.0, 0.0)), (Some(5e7), None));
        assert_eq!(trial(10.0, 0.0), Some(2.5e8));
    }
}
