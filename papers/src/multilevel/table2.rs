//! Table 2: what recording costs two programs, one that does little but tasks and one that computes, on one to four workers.

use std::cmp::Ordering;
use std::process::Command;

use anyhow::{Context, Result, ensure};

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
    runs: Vec<Run>,
    /// Events of the last one.
    events: u64,
}

/// A run.
struct Run {
    elapsed_ns: f64,
    /// CPU time of the program's threads.
    cpu_ns: f64,
    bytes: u64,
    lost: u64,
}

fn run(lab: &Lab) -> Result<Finding> {
    let trials = lab.trials(TRIALS);
    let mut csv = Csv::new([
        "program",
        "workers",
        "level",
        "trial",
        "elapsed_ns",
        "cpu_ns",
        "spool_bytes",
        "lost",
    ]);
    let mut rows = Vec::new();
    for program in &PROGRAMS {
        for workers in lab.cases(&WORKERS) {
            let words = if lab.is_try() { program.of_a_try } else { program.words };
            let load = format!("{words} --workers {workers}");
            let mut shown: [Shown; 3] = Default::default();
            for trial in 0..trials {
                for ((level, options), shown) in LEVELS.iter().zip(&mut shown) {
                    let run = once(lab, options, &load, trial + 1 == trials, &mut shown.events)?;
                    let Run { elapsed_ns, cpu_ns, bytes, lost } = &run;
                    csv.row([
                        &program.name,
                        workers,
                        level,
                        &trial,
                        elapsed_ns,
                        cpu_ns,
                        bytes,
                        lost,
                    ]);
                    shown.runs.push(run);
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
             {trials} times each. Times are those of the tasks alone, means with 95 % confidence: what other programs of the machine take is in how long it took, not in the CPU \
             time of the program's threads. Sizes are those of the spool, as it is \
             written, into memory; events are counted once, and are those of the kernel, too; the flow is by how long it took. The paper does not say on how many LWPs its programs ran: its figures stand \
             beside one worker.",
            PROGRAMS[0].words, PROGRAMS[1].words
        ),
        figures: Vec::new(),
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}

/// Runs it once. The last run of a level counts its events.
fn once(lab: &Lab, options: &[&str], load: &str, is_last: bool, events: &mut u64) -> Result<Run> {
    let (said, (bytes, lost)) = if options.is_empty() {
        let mut alone = Command::new(lab.tool("ft-load")?);
        let alone = output(alone.arg("tasks").args(load.split(' ')))?;
        (leading_json(&alone)?.0, (0, 0))
    } else {
        let recording = Recording::of(lab, &[&RING, options].concat(), load)?;
        if is_last {
            recording.convert(lab)?;
            *events = recording.reports(lab, &["tasks"])?.events();
        }
        (recording.said.clone(), recording.size())
    };
    if let Some(residual) = said["residual"].as_f64() {
        ensure!(residual < 1e-9, "the decomposition is wrong by {residual}");
    }
    let ns = |name: &str| said[name].as_f64().context("the load tells its times");
    Ok(Run { elapsed_ns: ns("elapsed_ns")?, cpu_ns: ns("cpu_ns")?, bytes, lost })
}

fn told(shown: &Shown, alone: &Shown) -> String {
    let of = |shown: &Shown, time: fn(&Run) -> f64| {
        Interval::of(&shown.runs.iter().map(time).collect::<Vec<f64>>())
    };
    let (cpu, elapsed) = (of(shown, |run| run.cpu_ns), of(shown, |run| run.elapsed_ns));
    let time = format!("CPU time {} ± {}", ns(cpu.mean), ns(cpu.half));
    let took = format!("took {} ± {}", ns(elapsed.mean), ns(elapsed.half));
    let bytes = shown.runs.last().map_or(0, |run| run.bytes);
    if bytes == 0 {
        return format!("{time}; {took}");
    }
    let more = cpu.mean / of(alone, |run| run.cpu_ns).mean - 1.0;
    let megabytes = bytes as f64 / 1e6;
    let lost = match shown.runs.iter().map(|run| run.lost).sum::<u64>() {
        0 => String::new(),
        lost => format!(", and {lost} lost"),
    };
    format!(
        "{time} ({}{}); {took}; {} events ({} MB){lost}, {} MB/s",
        if more < 0.0 { "−" } else { "+" },
        percent(more.abs()),
        shown.events,
        digits(megabytes),
        digits(megabytes / (elapsed.mean / 1e9))
    )
}

fn why(program: &Program, level: usize, workers: usize) -> String {
    let has = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = match workers.cmp(&has) {
        Ordering::Less => "the agent, which reads meanwhile, has a CPU besides",
        Ordering::Equal => "the agent, which reads meanwhile, shares their CPUs",
        Ordering::Greater => "there are more workers than CPUs",
    };
    match level {
        0 => program.why.to_owned(),
        1 => format!(
            "a task makes three events at least, begin and end of each poll among them; {cpus}"
        ),
        _ => format!("functions of the executor and of the program, and system calls; {cpus}"),
    }
}
