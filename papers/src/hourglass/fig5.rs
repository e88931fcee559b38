//! Figure 5 and section 5.2: what a context switch costs later, by lost contents of caches.

use anyhow::Result;
use ft_load::hourglass::{GapKind, Outcome, gaps};

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::curves::{self, Axes, Curve};
use crate::quantity::{ns, percent};
use crate::recorded::Recorded;
use crate::stats::Interval;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-fig5",
    title: "Hourglass, Figure 5: working sets, and performance lost to context switches",
    full_minutes: 296.0,
    programs: &["ft-agent", "ft-load"],
    run,
};

const SIZES_KB: [u64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// The last of them, for which the paper's text has a remark.
const LARGEST_KB: f64 = 4096.0;

const THREADS: usize = 10;

/// The same of the paper.
const PAPER_SECONDS: f64 = 45.0;
const PAPER_TRIALS: usize = 15;

/// How long a run is recorded besides, for which the paper would have taken.
const RECORDED_SECONDS: f64 = 10.0;

/// What one trial has shown.
#[derive(Clone, Copy)]
struct Trial {
    /// Passes over the array, of one thread and of ten.
    one: f64,
    ten: f64,
    seconds: f64,
    switches: f64,
    /// Time in which the one thread, and the ten, ran their own code, by the load's own clock, s.
    ran: [f64; 2],
}

impl Trial {
    /// The paper's formula: work lost, as a time, per switch, ns. `None` where one thread did no work.
    fn penalty_ns(&self) -> Option<f64> {
        let lost = (self.one - self.ten) / self.one;
        (self.one > 0.0).then(|| lost * self.seconds * 1e9 / self.switches.max(1.0))
    }

    /// The same of the time in which the threads ran, ns: what caches cost, without switches, interrupts and other programs.
    fn slower_ns(&self) -> Option<f64> {
        let [one, ten] = self.ran;
        let rates =
            (self.one > 0.0 && one > 0.0 && ten > 0.0).then(|| [self.one / one, self.ten / ten]);
        rates.map(|[alone, among]| (1.0 - among / alone) * ten * 1e9 / self.switches.max(1.0))
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
        "ran_1",
        "ran_10",
        "slower_ns",
    ]);
    // All sizes once, then all again: a change of the machine falls on all of them.
    let mut penalties = vec![Vec::new(); SIZES_KB.len()];
    let mut slower = vec![Vec::new(); SIZES_KB.len()];
    for number in 0..lab.trials(PAPER_TRIALS) {
        for (n, size_kb) in SIZES_KB.iter().enumerate() {
            let trial = trial(lab, *size_kb)?;
            // Where the CPU was others' for as long as the trial took, nothing is lost and nothing known.
            let Some(penalty_ns) = trial.penalty_ns() else { continue };
            let Some(slower_ns) = trial.slower_ns() else { continue };
            let Trial { one, ten, seconds, switches, ran: [ran_1, ran_10] } = &trial;
            csv.row([
                size_kb,
                &number,
                one,
                ten,
                seconds,
                switches,
                &penalty_ns,
                ran_1,
                ran_10,
                &slower_ns,
            ]);
            penalties[n].push(penalty_ns);
            slower[n].push(slower_ns);
        }
    }
    let intervals = |of: &[Vec<f64>]| -> Vec<(f64, Interval)> {
        let known = SIZES_KB.iter().zip(of).filter(|(_, values)| !values.is_empty());
        known.map(|(size_kb, values)| (*size_kb as f64, Interval::of(values))).collect()
    };
    let (points, slower) = (intervals(&penalties), intervals(&slower));
    let in_us =
        |(size, interval): &(f64, Interval)| (*size, interval.mean / 1e3, interval.half / 1e3);
    let curve: Vec<(f64, f64, f64)> = points.iter().map(in_us).collect();
    let of_running: Vec<(f64, f64, f64)> = slower.iter().map(in_us).collect();
    let ends = |sign: f64| {
        move |(_, mean, half): &(f64, f64, f64)| {
            mean + sign * if half.is_finite() { *half } else { 0.0 }
        }
    };
    let all = || curve.iter().chain(&of_running);
    let top = all().map(ends(1.0)).fold(1.0, f64::max) * 1.05;
    let bottom = all().map(ends(-1.0)).fold(0.0, f64::min) * 1.05;
    let svg = curves::draw(
        &[
            Curve { name: "of the whole time, as the paper".into(), points: curve },
            Curve { name: "of the time that threads ran".into(), points: of_running },
        ],
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
             C = (W1 − W10)/W1 · T/N10; lines are means with 95 % confidence. *While running*: the same with each W divided by the \
             time in which its threads ran their code, by the gaps that they see themselves, and that time as T. {} trials are left \
             out, in which threads made no whole pass or had no time. A run of ten threads is recorded for {:.1} s besides.",
            lab.trials(PAPER_TRIALS),
            lab.seconds(PAPER_SECONDS),
            lab.seconds(PAPER_SECONDS),
            lab.trials(PAPER_TRIALS) * SIZES_KB.len()
                - penalties.iter().map(Vec::len).sum::<usize>(),
            lab.seconds(RECORDED_SECONDS)
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&points, &slower, &others(lab)?, &second_level(lab.cpu())),
    })
}

fn trial(lab: &Lab, size_kb: u64) -> Result<Trial> {
    let cpu = lab.cpu();
    let line = |threads| format!("-n {threads} --cpu {cpu} -a -p NORMAL -w CPU_SCAN {size_kb}");
    let passes = |outcome: &Outcome| outcome.threads.iter().map(|t| t.passes).sum::<u64>() as f64;
    let ran = |outcome: &Outcome| {
        let times = outcome.threads.iter().filter_map(|t| t.time);
        times.map(|time| time.run_ns).sum::<u64>() as f64 / 1e9
    };
    let one = lab.hourglass(PAPER_SECONDS, &line(1))?;
    let ten = lab.hourglass(PAPER_SECONDS, &line(THREADS))?;
    let switches = gaps(&ten).iter().filter(|gap| gap.cause == GapKind::Involuntary).count();
    Ok(Trial {
        one: passes(&one),
        ten: passes(&ten),
        seconds: lab.seconds(PAPER_SECONDS),
        switches: switches as f64,
        ran: [ran(&one), ran(&ten)],
    })
}

/// Who had the CPU that the ten threads share, by a recording of another run.
fn others(lab: &Lab) -> Result<String> {
    let line = format!("-n {THREADS} --cpu {} -a -p NORMAL -w CPU_SCAN 128", lab.cpu());
    let recorded =
        Recorded::hourglass_for(lab, lab.seconds(RECORDED_SECONDS), &line, &["runs", "gaps"])?;
    let workers = recorded.report("runs")["workers"].as_array().into_iter().flatten();
    let (mut ran, mut longest) = (0, 0);
    for worker in workers {
        let of = |key: &str| worker[key].as_i64().unwrap_or(0);
        ran += of("run_ns");
        longest = longest.max(of("run_ns") + of("gap_ns"));
    }
    if longest == 0 {
        return Ok("a recording of another run tells no runs".into());
    }
    Ok(format!(
        "a recording of another run of ten: they had the CPU for {} of {}, the rest is switches, interrupts and other programs",
        percent(ran as f64 / longest as f64),
        ns(longest as f64)
    ))
}

/// The size of the second-level cache of a CPU, as the kernel tells it: `1024K`.
fn second_level(cpu: usize) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index2/size");
    let size = std::fs::read_to_string(path).unwrap_or_default();
    match size.trim().strip_suffix('K') {
        Some(kb) => format!("{kb} KB"),
        None => "a size that the kernel does not tell".into(),
    }
}

fn rows(
    points: &[(f64, Interval)],
    slower: &[(f64, Interval)],
    others: &str,
    second_level: &str,
) -> Vec<Row> {
    let of = |points: &[(f64, Interval)], kb: f64| match points.iter().find(|(size, _)| *size == kb)
    {
        Some((_, Interval { mean, half })) => format!("{} ± {}", ns(*mean), ns(*half)),
        None => "–".into(),
    };
    let at = |kb: f64| format!("{}; while running {}", of(points, kb), of(slower, kb));
    // A reason stands only beside a loss that is told apart from none.
    let row = |name: &str, paper: &str, kb: f64, why: String| {
        let lost = points.iter().find(|(size, _)| *size == kb);
        let why = match lost {
            Some((_, interval)) if interval.is_above_zero() => why,
            Some(_) => "no loss can be told apart from the spread of the trials".into(),
            None => "no trial of this size had a result".into(),
        };
        let before = if kb == LARGEST_KB { "4 MB: " } else { "" };
        Row::new(name, paper, format!("{before}{}", at(kb)), why)
    };
    vec![
        row("4 KB", "–", 4.0, format!("the switch itself, and nothing while running; {others}")),
        row("32 KB", "–", 32.0, "fits into a first-level cache alone; ten do not".into()),
        row(
            "128 KB",
            "up to here predictable, roughly 0.33 ms for 100 KB",
            128.0,
            format!(
                "ten of these have 1.25 MB; the second-level cache has {second_level}, that of the Pentium III had 256 KB: no refill from \
                 memory"
            ),
        ),
        row(
            "1 MB",
            "–",
            1024.0,
            "ten do not fit into the second level: refilled from the third, at tens of GB/s and not 0.3".into(),
        ),
        row(
            "spread above 128 KB",
            "unpredictable (no page colouring)",
            LARGEST_KB,
            "pages of the caches are physical here, too; and other guests share the third level".into(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_without_work_has_no_penalty() {
        let trial = |one, ten| Trial { one, ten, seconds: 1.0, switches: 4.0, ran: [1.0, 1.0] };
        let penalty = |one, ten| trial(one, ten).penalty_ns();
        assert_eq!((penalty(10.0, 8.0), penalty(0.0, 0.0)), (Some(5e7), None));
        assert_eq!(penalty(10.0, 0.0), Some(2.5e8));
        assert_eq!(trial(0.0, 0.0).slower_ns(), None);
        assert!((trial(10.0, 8.0).slower_ns().unwrap() - 5e7).abs() < 1.0);
    }

    #[test]
    fn time_of_others_is_in_the_papers_penalty_alone() {
        // Ten threads had the CPU for half of the time, and made half of the passes in it.
        let trial = Trial { one: 100.0, ten: 50.0, seconds: 1.0, switches: 10.0, ran: [1.0, 0.5] };
        assert_eq!((trial.penalty_ns(), trial.slower_ns()), (Some(5e7), Some(0.0)));
        // In the same time a tenth less.
        let trial = Trial { ten: 45.0, ..trial };
        assert!((trial.slower_ns().unwrap() - 5e6).abs() < 1.0);
    }

    #[test]
    fn a_loss_that_is_not_told_apart_from_none_has_no_reason() {
        let point = |kb, mean, half| (kb, Interval { mean, half });
        let points = [
            point(4.0, 900.0, 100.0),
            point(32.0, 900.0, 1000.0),
            point(128.0, -900.0, 100.0),
            point(1024.0, 900.0, f64::INFINITY),
        ];
        let rows = rows(&points, &points, "others", "1024 KB");
        let text: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        assert!(text[0].contains("the switch itself"), "{}", text[0]);
        for row in &text[1..4] {
            assert!(row.contains("no loss can be told apart"), "{row}");
        }
        assert!(text[4].contains("no trial of this size"), "{}", text[4]);
    }
}
