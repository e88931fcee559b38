//! Section 5.5: two tasks of fixed priority, and whether analysis and run agree.

use anyhow::Result;
use ft_load::response::{Response, Task, analyse};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::quantity::ns;
use crate::recorded::{Parts, Recorded};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-5.5",
    title: "Hourglass, section 5.5: response times by analysis, and deadlines hit and missed",
    full_minutes: 0.6,
    programs: &["ft-agent", "ft-load"],
    run,
};

/// A pair of the paper: its command line, the tasks as its analysis has them, deadlines missed and hit there.
struct Pair {
    name: &'static str,
    low: &'static str,
    task: Task,
    paper: [&'static str; 2],
    /// What the thread does today.
    amount_ms: u64,
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
        amount_ms: 17,
    },
    Pair {
        name: "HR",
        low: "PERIODIC 17ms 33ms -i HR",
        task: task(17, 33, 0),
        paper: ["29 ms", "0 / 1003; 0 / 304"],
        amount_ms: 17,
    },
    Pair {
        name: "12 ms by NATIVE",
        low: "PERIODIC 12ms 33ms -i NATIVE",
        task: task(14, 33, 8),
        paper: ["feasible", "0 / 1001; 0 / 303"],
        amount_ms: 12,
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
        let recorded = Recorded::hourglass(lab, 10.0, &line)?;
        for job in recorded.jobs() {
            csv.row([&pair.name, &job[0], &job[1], &job[2], &job[3], &job[4], &job[5]]);
        }
        rows.extend(of_pair(pair, &recorded));
    }
    Ok(Finding {
        how: format!(
            "The three pairs of the paper, rate monotonic, `-t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w …` on CPU {}; \
             recorded by `ft-agent record -k sched,irq`; `ft-load response` is the analysis.",
            lab.cpu()
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}

const SAME: &str = "the same analysis; switches and interrupts are left out, as there";

fn of_pair(pair: &Pair, recorded: &Recorded) -> Vec<Row> {
    let worst = recorded.thread(1)["response"]["max_ns"].as_f64();
    let bound = |task: Task| match analyse(&[task_0(), task], 0)[1] {
        Response::Within(ns) => ns,
        Response::Unbounded | Response::NotFound => u64::MAX,
    };
    // What the thread does today: its amount, no jitter.
    let plain = bound(task(pair.amount_ms, 33, 0));
    let beyond = worst.map_or(0.0, |worst| worst - plain as f64);
    vec![
        Row::new(
            format!("{}: bound of task 1", pair.name),
            pair.paper[0],
            format!(
                "{} with the paper's jitter, {} without",
                ns(bound(pair.task) as f64),
                ns(plain as f64)
            ),
            match pair.task.jitter_ns {
                0 => SAME.to_owned(),
                _ => format!(
                    "{SAME}; `nanosleep` has a timer of its own since 2.6.16: neither jitter nor 2 ms of busy waiting"
                ),
            },
        ),
        Row::new(
            format!("{}: longest response of task 1", pair.name),
            "–",
            worst.map_or("none finished".into(), ns),
            match beyond > 0.0 {
                true => {
                    format!("{} beyond the bound without jitter; {}", ns(beyond), longest(recorded))
                }
                false => "within the bound without jitter".into(),
            },
        ),
        Row::new(
            format!("{}: deadlines missed / hit, task 0; task 1", pair.name),
            pair.paper[1],
            recorded.deadlines(),
            recorded.late(),
        ),
    ]
}

/// Where the longest response of task 1 went, by the recording.
fn longest(recorded: &Recorded) -> String {
    let of_task_1 = |job: &&Value| job["worker"] == 1;
    let job = recorded.report("jobs")["longest"].as_array().into_iter().flatten().find(of_task_1);
    let told = job.and_then(|job| {
        let parts = Parts::of(&job["parts"])?.told(ns);
        let backlog = job["backlog_ns"].as_f64().filter(|backlog| *backlog > 0.0);
        let backlog = backlog.map_or(String::new(), |backlog| {
            format!("waited {} for the job before it, and then ", ns(backlog))
        });
        Some(format!("by a recording of this run it {backlog}had {parts}"))
    });
    told.unwrap_or_else(|| "the recording tells no parts of it".into())
}

fn task_0() -> Task {
    task(3, 8, 0)
}
