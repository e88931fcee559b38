//! Figure 2: on which worker and CPU a task ran, by an executor that takes no care of that and by one that does.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::EXECUTORS;
use super::recording::{POLLS, Poll, Recording, polls};
use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::lanes::{self, Lane, Panel};
use crate::quantity::{digits, ns, percent};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "multilevel-fig2",
    title: "Multi-level traces, Figure 2: where a task ran",
    full_minutes: 0.7,
    programs: &["ft-agent", "ft-load"],
    run,
};

/// As the paper's program, of which the text has no length.
const SECONDS: f64 = 10.0;
const WORKERS: usize = 4;
const TASKS: usize = 20;
const QUANTUM: &str = "10ms";

/// The task that the paper's figure is of.
const TASK: &str = "work/15";

/// Of the drawing, ms.
const SHOWN_MS: f64 = 2000.0;

/// What an executor has shown.
struct Shown {
    polls: Vec<Poll>,
    /// The time of [`TASK`] in polls and on a CPU, ns.
    polled_ns: f64,
    running_ns: f64,
    missing: u64,
}

fn run(lab: &Lab) -> Result<Finding> {
    let ms = (lab.seconds(SECONDS) * 1e3).round();
    let load =
        format!("turns --workers {WORKERS} --tasks {TASKS} --quantum {QUANTUM} --time {ms}ms");
    let mut csv =
        Csv::new(["executor", "task", "worker", "start_ns", "end_ns", "cpu", "cpu_at_end"]);
    let mut turns =
        Csv::new(["executor", "task", "turns", "moves", "recorded_turns", "recorded_moves"]);
    let (mut panels, mut rows) = (Vec::new(), Vec::new());
    for (queues, name) in EXECUTORS {
        let options = ["-k", "sched", "-e", "async.*"];
        let recording = Recording::of(lab, &options, &format!("{load} --queues {queues}"))?;
        let shown = shown(lab, &recording)?;
        let own = by_task(&shown.polls);
        for (n, said) in recording.said["tasks"].as_array().into_iter().flatten().enumerate() {
            let task = format!("work/{n}");
            let polls = own.get(&task).map_or(&[][..], |polls| polls);
            turns.row([
                &queues,
                &task,
                &said["turns"],
                &said["moves"],
                &polls.len(),
                &moves(polls),
            ]);
        }
        for poll in &shown.polls {
            let Poll { task, worker, start_ns, end_ns, cpus } = poll;
            csv.row([&queues, task, worker, start_ns, end_ns, &cpus[0], &cpus[1]]);
        }
        panels.push(panel(name, &shown.polls));
        rows.extend(of_executor(name, &shown));
    }
    Ok(Finding {
        how: format!(
            "`ft-load tasks {load} --queues …` recorded by `ft-agent record -k sched -e 'async.*'`, of which `ft-agent events -k --task {TASK}` \
             lists what the paper's figure has. One queue gives a task to whoever is free, those of the workers to who polled it last. \
             Drawing: where {TASK} was polled."
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &lanes::draw(&panels)?)?],
        values: vec![
            lab.values(EXPERIMENT.id, &csv)?,
            lab.values(&format!("{}-turns", EXPERIMENT.id), &turns)?,
        ],
        rows,
    })
}

fn shown(lab: &Lab, recording: &Recording) -> Result<Shown> {
    let reports = recording.reports(lab, &["tasks"])?;
    let mut names = reports.values("tasks")["names"].as_array().into_iter().flatten();
    let task = names.find(|name| name["name"] == TASK).map(|name| &name["polls"]);
    let task = task.context("the trace does not have the task")?;
    let mut polls = polls(&recording.events(lab, &POLLS)?);
    polls.retain(|poll| poll.task.starts_with("work/"));
    Ok(Shown {
        polls,
        polled_ns: task["total_ns"].as_f64().unwrap_or(0.0),
        running_ns: task["parts"]["running_ns"].as_f64().unwrap_or(0.0),
        missing: reports.lost(),
    })
}

fn by_task(polls: &[Poll]) -> BTreeMap<String, Vec<&Poll>> {
    let mut tasks: BTreeMap<String, Vec<&Poll>> = BTreeMap::new();
    polls.iter().for_each(|poll| tasks.entry(poll.task.clone()).or_default().push(poll));
    tasks
}

/// How often one was polled by another worker than the time before.
fn moves(polls: &[&Poll]) -> usize {
    polls.windows(2).filter(|pair| pair[0].worker != pair[1].worker).count()
}

/// How often it came to another CPU, between two polls or within one.
fn cpu_moves(polls: &[&Poll]) -> usize {
    let cpus: Vec<i64> = polls.iter().flat_map(|poll| poll.cpus).collect();
    cpus.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// A lane for each worker, with the polls of the task.
fn panel(name: &str, polls: &[Poll]) -> Panel {
    let first = polls.iter().map(|poll| poll.start_ns).min().unwrap_or(0);
    let last = polls.iter().map(|poll| poll.end_ns).max().unwrap_or(0);
    let ms = |ns: i64| (ns - first) as f64 / 1e6;
    let lane = |n: usize| {
        let name = format!("worker-{n}");
        let own = polls.iter().filter(|poll| poll.task == TASK && poll.worker == name);
        Lane { runs: own.map(|poll| (ms(poll.start_ns), ms(poll.end_ns))).collect(), name }
    };
    let title = format!("{TASK}, {name}");
    Panel {
        title,
        lanes: (0..WORKERS).map(lane).collect(),
        window: 0.0..ms(last).clamp(1.0, SHOWN_MS),
    }
}

fn of_executor(name: &str, shown: &Shown) -> [Row; 3] {
    let tasks = by_task(&shown.polls);
    let none = Vec::new();
    let own = tasks.get(TASK).unwrap_or(&none);
    let sum = |of: &dyn Fn(&[&Poll]) -> usize| tasks.values().map(|polls| of(polls)).sum::<usize>();
    let pairs = sum(&|polls| polls.len().saturating_sub(1)).max(1) as f64;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let missing = match shown.missing {
        0 => String::new(),
        missing => format!("; {missing} events are missing"),
    };
    let why = match name == EXECUTORS[0].1 {
        true => "whichever worker is free takes the next task",
        false => {
            "a worker takes tasks of another one only when it has none itself, as near the end"
        }
    };
    [
        Row::new(
            format!("{name}: task 15 comes to another worker, CPU"),
            "2 of 2 turns shown: LWPs 7137 and 7136; CPUs 1, 0, 2",
            format!("{}, {} in {} turns{missing}", moves(own), cpu_moves(own), own.len()),
            format!(
                "{why}; CPUs change, too, where the kernel moves a worker: it has {cpus} for {WORKERS} of them"
            ),
        ),
        Row::new(
            format!("{name}: of all {TASKS} tasks"),
            "“does not take enough care of the affinity”",
            format!(
                "{} of the turns on another worker than the one before, {} changes of the CPU a turn",
                percent(sum(&moves) as f64 / pairs),
                digits(sum(&cpu_moves) as f64 / pairs)
            ),
            why,
        ),
        Row::new(
            format!("{name}: active time of task 15"),
            "130,193,845 cycles: 46.5 ms at 2.8 GHz",
            format!("{} of {} in its turns", ns(shown.running_ns), ns(shown.polled_ns)),
            "another program, and ours runs longer; the rest of its turns its worker had no CPU, which the kernel's switches tell",
        ),
    ]
}
