//! Table 2: what recording costs two programs, one that does little but tasks and one that computes, on one to four workers.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::recording::Recording;
use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::output;
use crate::quantity::{digits, ns, percent};
use crate::recorded::leading_json;
use crate::stats::Interval;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "multilevel-table2",
    title: "Multi-level traces, Table 2: what recording costs",
    full_minutes: 30.0,
    programs: &["ft-agent", "ft-load"],
    run,
};

const TRIALS: usize = 20;
const WORKERS: [usize; 4] = [1, 2, 3, 4];

/// A program: what it is called, its words and those of a try, and what the paper says of each level: times, and events with
/// their sizes and flows.
struct Program {
    name: &'static str,
    words: &'static str,
    of_a_try: &'static str,
    paper: [&'static str; 3],
    why: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "task tree",
        words: "tree --height 16",
        of_a_try: "tree --height 8",
        paper: [
            "230 ms",
            "288 ms (+23 %); 161,484 events (3.72 MB), 13 MB/s",
            "430 ms (+80 %); 821,844 events (13.4 MB), 31 MB/s",
        ],
        why: "a tree of 131,071 tasks",
    },
    Program {
        name: "solver",
        words: "solver --blocks 60",
        of_a_try: "solver --blocks 6",
        paper: [
            "7.17 s",
            "7.30 s (+1.8 %); 374 events (7 kB), 1 kB/s",
            "7.50 s (+4.6 %); 836,054 events (8.39 MB), 1.1 MB/s",
        ],
        why: "a decomposition by blocks of our own, with a task for each block of each step; SuperLU_MT has a few threads, and functions that are \
              much smaller than its tasks",
    },
];

/// How much is recorded: a name, and the agent's options.
const LEVELS: [(&str, &[&str]); 3] = [
    ("alone", &[]),
    ("scheduling", &["-k", "sched", "-e", "async.*"]),
    ("all events", &["-k", "sched,syscall", "-e", "async.*", "-e", "fn.*"]),
];

/// Of each ring: no event of a run may find it full.
const RING: [&str; 4] = ["--no-convert", "--ring-size", "64M", "--kernel-buffer=64M"];

/// What all runs of one level have shown.
#[derive(Default)]
struct Shown {
    elapsed_ns: Vec<f64>,
    events: u64,
    bytes: u64,
    lost: u64,
}

fn run(lab: &Lab) -> Result<Finding> {
    let trials = lab.trials(TRIALS);
    let mut csv =
        Csv::new(["program", "workers", "level", "trial", "elapsed_ns", "spool_bytes", "lost"]);
    let mut rows = Vec::new();
    for program in &PROGRAMS {
        for workers in lab.cases(&WORKERS) {
            let words = if lab.is_try() { program.of_a_try } else { program.words };
            let load = format!("{words} --workers {workers}");
            let mut shown: [Shown; 3] = Default::default();
            for trial in 0..trials {
                for ((level, options), shown) in LEVELS.iter().zip(&mut shown) {
                    let elapsed_ns = once(lab, options, &load, trial + 1 == trials, shown)?;
                    csv.row([
                        &program.name,
                        workers,
                        level,
                        &trial,
                        &elapsed_ns,
                        &shown.bytes,
                        &shown.lost,
                    ]);
                    shown.elapsed_ns.push(elapsed_ns);
                }
            }
            rows.extend(LEVELS.iter().enumerate().map(|(n, (level, _))| {
                let what = format!(
                    "{}, {workers} worker{}: {level}",
                    program.name,
                    if *workers == 1 { "" } else { "s" }
                );
                let paper = if *workers == 1 { program.paper[n] } else { "–" };
                Row::new(what, paper, told(&shown[n], &shown[0]), why(program, n, *workers))
            }));
        }
    }
    Ok(Finding {
        how: format!(
            "`ft-load tasks {}` and `{}`, alone, under `ft-agent record -k sched -e 'async.*'`, and under `-k sched,syscall -e 'async.*' -e 'fn.*'`, by turns, \
             {trials} times each. Times are those of the tasks alone, means with 95 % confidence; sizes are those of the spool, as it is \
             written, into memory; events are counted once, and are those of the kernel, too. The paper does not say on how many LWPs its programs ran: its figures stand \
             beside one worker.",
            PROGRAMS[0].words, PROGRAMS[1].words
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}

/// A run: how long it took, ns. The last one of a level counts its events.
fn once(lab: &Lab, options: &[&str], load: &str, is_last: bool, shown: &mut Shown) -> Result<f64> {
    let said: Value = if options.is_empty() {
        let mut alone = Command::new(lab.tool("ft-load")?);
        leading_json(&output(alone.arg("tasks").args(load.split(' ')))?)?.0
    } else {
        let recording = Recording::of(lab, &[&RING, options].concat(), load)?;
        let (bytes, lost) = recording.size();
        shown.bytes = bytes;
        shown.lost = lost;
        if is_last {
            recording.convert(lab)?;
            shown.events = recording.reports(lab, &["tasks"])?.events();
        }
        recording.said.clone()
    };
    if let Some(residual) = said["residual"].as_f64() {
        ensure!(residual < 1e-9, "the decomposition is wrong by {residual}");
    }
    said["elapsed_ns"].as_f64().context("the load tells its time")
}

fn told(shown: &Shown, alone: &Shown) -> String {
    let Interval { mean, half } = Interval::of(&shown.elapsed_ns);
    let time = format!("{} ± {}", ns(mean), ns(half));
    if shown.bytes == 0 {
        return time;
    }
    let more = mean / Interval::of(&alone.elapsed_ns).mean - 1.0;
    let megabytes = shown.bytes as f64 / 1e6;
    let lost = match shown.lost {
        0 => String::new(),
        lost => format!(", and {lost} lost"),
    };
    format!(
        "{time} ({}{}); {} events ({} MB){lost}, {} MB/s",
        if more < 0.0 { "−" } else { "+" },
        percent(more.abs()),
        shown.events,
        digits(megabytes),
        digits(megabytes / (mean / 1e9))
    )
}

fn why(program: &Program, level: usize, workers: usize) -> String {
    let cpus = match workers {
        1 => "the agent, which reads meanwhile, has a CPU of its own",
        2 => "workers and agent share two CPUs",
        _ => "there are more workers than CPUs",
    };
    match level {
        0 => program.why.to_owned(),
        1 => format!(
            "a task makes five events at least, and its number and place are in them; {cpus}"
        ),
        _ => format!("functions of the executor and of the program, and system calls; {cpus}"),
    }
}
