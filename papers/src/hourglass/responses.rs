//! Section 5.5: two tasks of fixed priority, and whether analysis and run agree.

use anyhow::Result;
use ft_load::hourglass::Outcome;
use ft_load::response::{Response, Task, analyse};

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::quantity::ns;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-5.5",
    title: "Hourglass, section 5.5: response times by analysis, and deadlines hit and missed",
    full_minutes: 0.6,
    programs: &[],
    run,
};

/// A pair of the paper: its command line, the tasks as its analysis has them, deadlines missed and hit there.
struct Pair {
    name: &'static str,
    low: &'static str,
    task: Task,
    paper: [&'static str; 2],
    why: &'static str,
}

const MS: u64 = 1_000_000;

const fn task(cost_ms: u64, period_ms: u64, jitter_ms: u64) -> Task {
    Task {
        cost_ns: cost_ms * MS,
        period_ns: period_ms * MS,
        jitter_ns: jitter_ms * MS,
        blocking_ns: 0,
    }
}

const PAIRS: [Pair; 3] = [
    Pair {
        name: "NATIVE",
        low: "PERIODIC 17ms 33ms -i NATIVE",
        // Of Linux 2.4: 8 ms of jitter by the clock interrupt, 2 ms of busy waiting.
        task: task(19, 33, 8),
        paper: ["39 ms, infeasible", "0 / 1001; 142 / 143"],
        why: "`nanosleep` has a timer of its own since 2.6.16, and busy-waits no more: neither jitter nor 2 ms",
    },
    Pair {
        name: "HR",
        low: "PERIODIC 17ms 33ms -i HR",
        task: task(17, 33, 0),
        paper: ["29 ms", "0 / 1003; 0 / 304"],
        why: "what is missed is the host's: a recording shows neither another thread nor a long interrupt in such jobs",
    },
    Pair {
        name: "12 ms by NATIVE",
        low: "PERIODIC 12ms 33ms -i NATIVE",
        task: task(14, 33, 8),
        paper: ["feasible", "0 / 1001; 0 / 303"],
        why: "the same",
    },
];

fn run(lab: &Lab) -> Result<Finding> {
    let mut csv =
        Csv::new(["pair", "thread", "job", "release_ns", "start_ns", "finish_ns", "due_ns"]);
    let mut rows = Vec::new();
    for pair in &PAIRS {
        let line = format!(
            "-n 2 --cpu {} -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w {}",
            lab.cpu(),
            pair.low
        );
        let outcome = lab.hourglass(10.0, &line)?;
        for (n, thread) in outcome.threads.iter().enumerate() {
            for job in &thread.jobs {
                let finish = job.finish_ns.map_or(String::new(), |ns| ns.to_string());
                csv.row([
                    &pair.name,
                    &n,
                    &job.number,
                    &job.release_ns,
                    &job.start_ns,
                    &finish,
                    &job.due_ns,
                ]);
            }
        }
        rows.extend(of_pair(pair, &outcome));
    }
    Ok(Finding {
        how: format!(
            "The three pairs of the paper, rate monotonic, `-t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w …` on CPU {}; \
             `ft-load response` is the analysis.",
            lab.cpu()
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}

fn of_pair(pair: &Pair, outcome: &Outcome) -> Vec<Row> {
    let deadlines = |n: usize| {
        let deadlines = outcome.threads[n].deadlines.unwrap_or_default();
        format!("{} / {}", deadlines.missed, deadlines.hit)
    };
    let worst = outcome.threads[1].jobs.iter().filter_map(|job| job.response_ns()).max();
    let bound = |task: Task| match analyse(&[task_0(), task], 0)[1] {
        Response::Within(ns) => ns,
        Response::Unbounded | Response::NotFound => u64::MAX,
    };
    // What the thread does today: its amount, no jitter.
    let plain = Task { cost_ns: amount(outcome), jitter_ns: 0, ..pair.task };
    let measured = worst.map_or("none finished".into(), |worst| ns(worst as f64));
    vec![
        Row::new(
            format!("{}: bound of task 1", pair.name),
            pair.paper[0],
            format!(
                "{} with the paper's jitter, {} without",
                ns(bound(pair.task) as f64),
                ns(bound(plain) as f64)
            ),
            "the same analysis; switches and interrupts are left out, as there",
        ),
        Row::new(
            format!("{}: longest response of task 1", pair.name),
            "–",
            measured,
            "beyond the bound without jitter: interrupts, and time that the host of the virtual machine took",
        ),
        Row::new(
            format!("{}: deadlines missed / hit, task 0; task 1", pair.name),
            pair.paper[1],
            format!("{}; {}", deadlines(0), deadlines(1)),
            pair.why,
        ),
    ]
}

fn task_0() -> Task {
    task(3, 8, 0)
}

fn amount(outcome: &Outcome) -> u64 {
    match outcome.threads[1].plan.workload {
        ft_load::hourglass::Workload::Periodic { amount_ns, .. } => amount_ns,
        _ => 0,
    }
}
