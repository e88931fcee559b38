//! Missed deadlines of a `SCHED_DEADLINE` set beside `rt-app` with the same set, by turns.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::output;
use crate::quantity::{digits, percent};
use crate::stats::Interval;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "rt-app",
    title: "Beside rt-app: missed deadlines of a SCHED_DEADLINE set",
    full_minutes: 10.5,
    programs: &["rt-app"],
    run,
};

/// Amount and period of the tasks of Hourglass, section 5.6, µs.
const TASKS: [(u64, u64); 2] = [(3_000, 8_000), (17_000, 33_000)];

/// What is reserved beyond the amount, µs.
const MORE: [u64; 4] = [0, 100, 500, 2_000];

const ROUNDS: usize = 8;

/// Of each turn; rt-app takes whole seconds.
const SECONDS: f64 = 10.0;

/// Nanoseconds that rt-app is told one of its loops takes: any number does, because its runs are scaled by measurement.
const TOLD_NS: u64 = 10;

/// Shares of jobs missed, by task.
type Missed = [f64; 2];

fn run(lab: &Lab) -> Result<Finding> {
    let seconds = lab.seconds(SECONDS).ceil();
    let scales = [0, 1].map(|n| calibrated(lab, TASKS[n]));
    let [first, second] = scales;
    let runs = [first?, second?];
    let mut csv = Csv::new(["round", "reserved_more_us", "program", "task", "missed_share"]);
    let mut all: Vec<(Vec<Missed>, Vec<Missed>)> = vec![Default::default(); MORE.len()];
    for round in 0..lab.trials(ROUNDS) {
        for (n, more) in MORE.iter().enumerate() {
            lab.settle();
            let (ours, theirs) = if round % 2 == 0 {
                let ours = hourglass(lab, seconds, *more)?;
                lab.settle();
                (ours, rt_app(seconds, *more, runs)?)
            } else {
                let theirs = rt_app(seconds, *more, runs)?;
                lab.settle();
                (hourglass(lab, seconds, *more)?, theirs)
            };
            for (name, missed) in [("hourglass", ours), ("rt-app", theirs)] {
                for (task, share) in missed.iter().enumerate() {
                    csv.row([&round, more, &name, &task, share]);
                }
            }
            all[n].0.push(ours);
            all[n].1.push(theirs);
        }
    }
    Ok(Finding {
        how: format!(
            "3 ms in 8 ms and 17 ms in 33 ms, reserved with so much more each, by turns, {} rounds of {seconds:.0} s. rt-app's loops are \
             scaled until the shortest run of each task takes its amount as `SCHED_FIFO`. Where little is reserved beyond what a job needs, what is late stays late: \
             a run misses nearly nothing or, from its first late job on, nearly all. Means of rounds with 95 % confidence.",
            lab.trials(ROUNDS)
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&all),
    })
}

fn hourglass(lab: &Lab, seconds: f64, more_us: u64) -> Result<Missed> {
    let thread = |n: usize| {
        let (amount, period) = TASKS[n];
        format!(
            "-t {n} -w PERIODIC {amount}us {period}us -i HR -rh {}us {period}us",
            amount + more_us
        )
    };
    let outcome = lab.hourglass_for(seconds, &format!("-n 2 {} {}", thread(0), thread(1)))?;
    Ok([0, 1].map(|n| {
        let deadlines = outcome.threads[n].deadlines.unwrap_or_default();
        deadlines.missed as f64 / (deadlines.hit + deadlines.missed).max(1) as f64
    }))
}

/// What rt-app has to be told so that the shortest run takes the amount, µs.
fn calibrated(lab: &Lab, (amount, period): (u64, u64)) -> Result<u64> {
    let task = json!({
        "policy": "SCHED_FIFO", "priority": 80, "cpus": [lab.cpu()], "loop": -1,
        "run": amount, "timer": { "ref": "unique", "period": period, "mode": "absolute" },
    });
    let log = played(1.0, &json!({ "task": task }))?;
    let shortest = log[0].iter().map(|job| job.run_us).min().filter(|us| *us > 0);
    let shortest = shortest.context("rt-app ran no job")?;
    Ok((amount * amount + shortest / 2) / shortest)
}

fn rt_app(seconds: f64, more_us: u64, runs: [u64; 2]) -> Result<Missed> {
    let task = |n: usize| {
        let (amount, period) = TASKS[n];
        json!({
            "policy": "SCHED_DEADLINE", "dl-runtime": amount + more_us, "dl-deadline": period, "dl-period": period,
            "loop": -1, "run": runs[n], "timer": { "ref": "unique", "period": period, "mode": "absolute" },
        })
    };
    let logs = played(seconds, &json!({ "task0": task(0), "task1": task(1) }))?;
    ensure!(logs.len() == 2 && logs.iter().all(|log| !log.is_empty()), "rt-app ran no job");
    Ok([0, 1].map(|n| {
        // As for ours, a period whose job was not finished within the run is missed.
        let periods = ((seconds * 1e6) as u64 / TASKS[n].1).max(1);
        let in_time = logs[n].iter().filter(|job| job.slack_us >= 0).count() as u64;
        periods.saturating_sub(in_time) as f64 / periods as f64
    }))
}

/// A line of rt-app's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Logged {
    run_us: u64,
    /// From the end of the run to the next release.
    slack_us: i64,
}

/// Plays tasks for whole seconds; the log of each, in their order.
fn played(seconds: f64, tasks: &Value) -> Result<Vec<Vec<Logged>>> {
    let dir = std::env::temp_dir().join(format!("ft-papers-rt-app-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let config = json!({
        "global": {
            "duration": seconds as u64, "calibration": TOLD_NS, "default_policy": "SCHED_OTHER", "logdir": dir,
            "log_basename": "log", "lock_pages": true, "gnuplot": false,
        },
        "tasks": tasks,
    });
    let file = dir.join("tasks.json");
    fs::write(&file, config.to_string())?;
    let logs = output(Command::new("rt-app").arg(&file)).and_then(|_| read(&dir, tasks));
    fs::remove_dir_all(&dir)?;
    logs
}

fn read(dir: &Path, tasks: &Value) -> Result<Vec<Vec<Logged>>> {
    let names = tasks.as_object().context("tasks have names")?.keys();
    let log = |(n, name): (usize, &String)| {
        let path = dir.join(format!("log-{name}-{n}.log"));
        let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        Ok(text.lines().filter_map(logged).collect())
    };
    names.enumerate().map(log).collect()
}

/// `idx perf run period start end rel_st slack c_duration c_period wu_lat`; lines with `#` say so.
fn logged(line: &str) -> Option<Logged> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(Logged { run_us: words.get(2)?.parse().ok()?, slack_us: words.get(7)?.parse().ok()? })
}

fn rows(all: &[(Vec<Missed>, Vec<Missed>)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (more, (ours, theirs)) in MORE.iter().zip(all) {
        for task in [0, 1] {
            let share = |rounds: &[Missed]| {
                Interval::of(&rounds.iter().map(|missed| missed[task]).collect::<Vec<f64>>())
            };
            let told = |&Interval { mean, half }: &Interval| {
                format!("{} ± {}", percent(mean), percent(half))
            };
            let (ours, theirs) = (share(ours), share(theirs));
            let (amount, period) = TASKS[task];
            rows.push(Row::new(
                format!(
                    "{} of {} ms, {} ms more: missed",
                    amount / 1000,
                    period / 1000,
                    digits(*more as f64 / 1e3)
                ),
                format!("rt-app: {}", told(&theirs)),
                told(&ours),
                why(ours.mean, theirs.mean),
            ));
        }
    }
    rows
}

/// By the shares of jobs that missed, ours and rt-app's. What is late stays late, so that these are seldom about a half.
fn why(ours: f64, theirs: f64) -> &'static str {
    match (ours > 0.5, theirs > 0.5) {
        (true, true) => "too little for both: what the kernel charges is more than the amount",
        (true, false) => "too little for ours: what the kernel charges is more than the amount",
        (false, true) => {
            "enough for our job, which is CPU time; rt-app's is a number of loops, which take longer where others use caches and memory"
        }
        (false, false) => {
            "our job is CPU time, rt-app's a number of loops, which take longer where others use caches and memory"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_little_is_told_by_what_was_missed() {
        // Each of two rounds: the shares of both tasks.
        let few = vec![[0.0, 0.9], [0.02, 1.0]];
        let many = vec![[1.0, 0.9], [0.96, 1.0]];
        let all = vec![(few.clone(), many.clone()); MORE.len()];
        let rows = rows(&all);
        assert!(rows[0].why.starts_with("enough for our job"), "{}", rows[0].why);
        assert!(rows[1].why.starts_with("too little for both"), "{}", rows[1].why);
    }

    #[test]
    fn the_log_of_rt_app_is_read() {
        let line = "   0    39473      650     2736     37312207106     37312209841           38759      -2045       3000       8000         37";
        assert_eq!(logged(line), Some(Logged { run_us: 650, slack_us: -2045 }));
        assert_eq!(
            logged("#idx     perf      run   period  start end rel_st slack c_duration"),
            None
        );
        assert_eq!(logged("# Policy : SCHED_DEADLINE"), None);
    }
}
