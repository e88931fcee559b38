//! Figure 3: how long it takes from the arrival of a message to the task that it is for.

use anyhow::{Context, Result};
use serde_json::Value;

use super::EXECUTORS;
use super::recording::{POLLS, Poll, Recording, polls};
use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::lanes::{self, Lane, Panel};
use crate::quantity::{digits, ns, percent};
use crate::stats::percentile;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "multilevel-fig3",
    title: "Multi-level traces, Figure 3: how fast a task reacts to a message",
    full_minutes: 4.5,
    programs: &["ft-agent", "ft-load"],
    run,
};

/// The paper's figure has one message.
const SECONDS: f64 = 60.0;
const WORKERS: usize = 3;
const TASKS: usize = 20;
/// The paper's turns: 29.2 million cycles at 2.8 GHz.
const QUANTUM: &str = "10ms";

/// How the task learns of a message, and why it takes as long as it does.
const LISTENERS: [(&str, &str, &str, &str); 2] = [
    (
        "asks",
        "asks in its turn",
        "54.6 ms, one message",
        "the paper's finding: all other tasks have their turn first",
    ),
    (
        "woken",
        "is woken before all others",
        "–",
        "support such as the paper misses in thread libraries: a thread blocks in the kernel and wakes it, and the next worker that ends a turn has it",
    ),
];

/// What one of them has shown.
struct Shown {
    /// From the message to its answer, ns, by the recording and by the program itself.
    messages: Vec<[i64; 2]>,
    average: Value,
    missing: u64,
}

fn run(lab: &Lab) -> Result<Finding> {
    let ms = (lab.seconds(SECONDS).max(SHORTEST_S) * 1e3).round();
    let load =
        format!("turns --workers {WORKERS} --tasks {TASKS} --quantum {QUANTUM} --time {ms}ms");
    let mut csv = Csv::new(["executor", "listener", "message", "recorded_ns", "own_ns"]);
    let mut slowest =
        Csv::new(["executor", "listener", "ns", "cpu", "tid", "thread", "task", "event"]);
    let (mut panels, mut rows) = (Vec::new(), Vec::new());
    for (listener, how, paper, why) in LISTENERS {
        for (queues, name) in EXECUTORS {
            let words = format!("{load} --queues {queues} --listener {listener}");
            let options = ["-k", "sched,irq,syscall", "-e", "async.*", "-e", "tasks.*"];
            let recording = Recording::of(lab, &options, &words)?;
            let (shown, longest) = shown(lab, &recording)?;
            for (n, [recorded, own]) in shown.messages.iter().enumerate() {
                csv.row([&queues, &listener, &n, recorded, own]);
            }
            if let Some(longest) = longest {
                let polls = polls(&recording.events(lab, &POLLS)?);
                super_trace(lab, &recording, longest, &polls, |line| {
                    slowest.row([
                        &queues,
                        &listener,
                        &line.ns,
                        &line.cpu,
                        &line.tid,
                        &line.thread,
                        &line.task,
                        &line.event,
                    ]);
                })?;
                panels.push(panel(&format!("{name}; it {how}"), longest, &polls));
            }
            rows.push(row(&format!("{name}; the task {how}"), paper, why, &shown));
        }
    }
    Ok(Finding {
        how: format!(
            "`ft-load tasks {load} --listener … --queues …`, recorded by `ft-agent record -k sched,irq,syscall -e 'async.*' -e 'tasks.*'`: {TASKS} tasks \
             that compute, and one that has messages. `ft-agent report … reactivity --from event:tasks.sent --to \
             event:tasks.received --key message`. The messages come by the loopback device, which has no interrupts, from a thread of the same program, \
             so what begins is that it sends. Drawing and second table of values: the slowest message of each, from when it was sent on."
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &lanes::draw(&panels)?)?],
        values: vec![
            lab.values(EXPERIMENT.id, &csv)?,
            lab.values(&format!("{}-slowest", EXPERIMENT.id), &slowest)?,
        ],
        rows,
    })
}

/// Some messages come: they are five rounds of turns apart at most, of which one takes 70 ms.
const SHORTEST_S: f64 = 2.0;

/// What a recording has, and from when to when the slowest message was on its way.
fn shown(lab: &Lab, recording: &Recording) -> Result<(Shown, Option<[i64; 2]>)> {
    let asked = [
        "reactivity",
        "--from",
        "event:tasks.sent",
        "--to",
        "event:tasks.received",
        "--key",
        "message",
    ];
    let reports = recording.reports(lab, &asked)?;
    let average = reports.values("reactivity")["averages"][0].clone();
    let number = |value: &Value| value.as_i64().unwrap_or(-1);
    let sent = recording.events(lab, &["-e", "tasks.sent", "-e", "tasks.received"])?;
    let of = |name: &str, message: i64| {
        let own = |event: &&Value| {
            event["event"] == *name && number(&event["args"]["message"]) == message
        };
        sent.iter().find(own).map(|event| number(&event["ts"]))
    };
    let (mut messages, mut longest) = (Vec::new(), None);
    for said in recording.said["messages"].as_array().context("the load tells its messages")? {
        let message = number(&said["message"]);
        // What is missing of a trace is told with it.
        let Some((from, to)) = of("tasks.sent", message).zip(of("tasks.received", message)) else {
            continue;
        };
        messages.push([to - from, number(&said["received_ns"]) - number(&said["sent_ns"])]);
        let is_longer = longest.is_none_or(|[since, until]: [i64; 2]| until - since < to - from);
        longest = if is_longer { Some([from, to]) } else { longest };
    }
    Ok((Shown { messages, average, missing: reports.lost() }, longest))
}

/// A line of the paper's figure.
struct Line {
    /// Since the message was sent.
    ns: i64,
    cpu: i64,
    tid: i64,
    thread: String,
    /// The task that the thread polled, if any.
    task: String,
    event: String,
}

/// What happened while a message was on its way, as the figure has it: polls, messages, interrupts of devices, and who got a CPU.
fn super_trace(
    lab: &Lab,
    recording: &Recording,
    [from, to]: [i64; 2],
    polls: &[Poll],
    mut tell: impl FnMut(Line),
) -> Result<()> {
    let all = recording.events(
        lab,
        &[
            "-k",
            "-e",
            "async.poll*",
            "-e",
            "tasks.*",
            "-e",
            "irq.hard",
            "-e",
            "sched.switch",
            "-e",
            "syscall*",
        ],
    )?;
    for event in all {
        let number = |name: &str| event[name].as_i64().unwrap_or(-1);
        let ts = number("ts");
        if !(from..=to).contains(&ts) {
            continue;
        }
        // Without what would be two columns.
        let word =
            |name: &str| event[name].as_str().unwrap_or_default().replace([',', '\n', '"'], " ");
        let thread = word("thread");
        let polled = polls
            .iter()
            .find(|poll| poll.worker == thread && (poll.start_ns..=poll.end_ns).contains(&ts));
        tell(Line {
            ns: ts - from,
            cpu: number("cpu"),
            tid: number("tid"),
            thread,
            task: polled.map_or("?".into(), |poll| poll.task.clone()),
            event: format!("{} {}", word("event"), word("text")),
        });
    }
    Ok(())
}

/// The workers, and the task that the message is for, while it was on its way.
fn panel(title: &str, [from, to]: [i64; 2], polls: &[Poll]) -> Panel {
    let ms = |ns: i64| (ns - from) as f64 / 1e6;
    let lane = |name: &str, is_own: &dyn Fn(&Poll) -> bool| {
        let own = polls.iter().filter(|poll| is_own(poll));
        Lane {
            name: name.into(),
            runs: own.map(|poll| (ms(poll.start_ns), ms(poll.end_ns))).collect(),
        }
    };
    let workers = (0..WORKERS).map(|n| format!("worker-{n}"));
    let mut lanes: Vec<Lane> =
        workers.map(|name| lane(&name, &|poll| poll.worker == name)).collect();
    lanes.push(lane("daemon", &|poll| poll.task == "daemon"));
    Panel { title: title.into(), lanes, window: 0.0..ms(to).max(0.001) }
}

fn row(what: &str, paper: &str, why: &str, shown: &Shown) -> Row {
    let mut lengths: Vec<u64> =
        shown.messages.iter().map(|[recorded, _]| (*recorded).max(0) as u64).collect();
    lengths.sort_unstable();
    let of =
        |share: f64| percentile(&lengths, share).map_or("–".into(), |length| ns(length as f64));
    let missing = match shown.missing {
        0 => String::new(),
        missing => format!("; {missing} events are missing"),
    };
    let ours = format!(
        "median {}, p90 {}, longest {} of {} messages{missing}",
        of(50.0),
        of(90.0),
        of(100.0),
        digits(lengths.len() as f64)
    );
    Row::new(what, paper, ours, format!("{why}; {}", parts(&shown.average)))
}

/// What the critical paths are made of.
fn parts(average: &Value) -> String {
    let of = |name: &str| average[name].as_f64().unwrap_or(0.0);
    let whole = of("dur_ns");
    if whole == 0.0 {
        return "no path is known".into();
    }
    let names = [
        ("running", "running_ns"),
        ("woken, without a CPU", "dispatch_ns"),
        ("preempted by other threads of the machine", "preempted_ns"),
        ("waiting for a timer", "timer_ns"),
        ("unknown", "unknown_ns"),
    ];
    let told = names.map(|(name, part)| (name, of(part) / whole));
    let told = told.iter().filter(|(_, share)| *share >= 0.0005);
    let told: Vec<String> =
        told.map(|(name, share)| format!("{} {name}", percent(*share))).collect();
    format!("its path on average: {}", told.join(", "))
}
