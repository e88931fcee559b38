//! What is printed after a run: the execution trace and the latencies as the paper has them, then the deadlines, then
//! what the gaps say.

use std::fmt::Write;

use serde::Serialize;

use super::infer::{Gap, GapKind, gaps, lengths};
use super::outcome::{Outcome, Thread};
use super::worker::Sample;
use crate::stats::{FINE, Summary, Typical, histogram};
use crate::time::{Ms, Time};

/// What a reader wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// The execution trace in cycles, too (`-c`).
    pub(super) cycles: bool,
    /// Neither trace nor single latencies (`--summary`).
    pub(super) summary: bool,
    pub(super) json: bool,
}

/// Causes with their words.
const CAUSES: [(GapKind, &str); 5] = [
    (GapKind::Voluntary, "switch, voluntary"),
    (GapKind::Involuntary, "switch, involuntary"),
    (GapKind::Interruption, "interruption"),
    (GapKind::Either, "interruption or other process"),
    (GapKind::Wait, "sleep, yield, idle or migration"),
];

/// The whole output. Writing to a string cannot fail.
pub(super) fn text(outcome: &Outcome, view: View) -> String {
    let gaps = gaps(outcome);
    let mut text = String::new();
    if !view.summary {
        trace(&mut text, outcome, &gaps);
        if view.cycles {
            raw(&mut text, outcome);
        }
        for sample in outcome.threads.iter().flat_map(|thread| &thread.samples) {
            let late_ns = sample.woke_ns.saturating_sub(sample.due_ns);
            let _ = writeln!(text, "latlate: {}", Ms(late_ns as i64 * 1000));
        }
    }
    for (n, thread) in outcome.threads.iter().enumerate() {
        if let Some(deadlines) = thread.deadlines {
            let (missed, hit) = (deadlines.missed, deadlines.hit);
            let _ = writeln!(text, "thread {n}: missed {missed} deadlines, hit {hit}");
        }
    }
    for (n, thread) in outcome.threads.iter().enumerate() {
        of_thread(&mut text, n, thread);
    }
    for (cause, words) in CAUSES {
        let Some((lengths, summary)) = lengths(&gaps, cause) else { continue };
        let _ = write!(text, "gaps: {words}: {}", figures(&summary));
        let typical = Typical::of(&lengths).filter(|_| is_switch(cause));
        if let Some(Typical { typical_ns, outliers: outliers @ 1.. }) = typical {
            let typical = us(typical_ns as f64);
            let _ = write!(
                text,
                "; {outliers} beyond ten times the shortest, median of the others {typical}"
            );
        }
        text.push('\n');
        if is_switch(cause) {
            text += &histogram(FINE, lengths.iter().map(|ns| (*ns, 1)));
        }
    }
    let (mhz, error) = (outcome.clock.hz() / 1e6, Time(outcome.clock_error_ns));
    let _ = writeln!(text, "clock: {mhz:.3} MHz, within {error} of CLOCK_MONOTONIC");
    if outcome.lost_runs > 0 {
        let lost = outcome.lost_runs;
        let _ = writeln!(text, "lost: {lost} runs found no room in the trace; make more with -e");
    }
    text
}

/// Thread, start, end, length, and the gap since the run before on that CPU; on several CPUs also which.
fn trace(text: &mut String, outcome: &Outcome, gaps: &[Gap]) {
    let several = outcome.runs.windows(2).any(|pair| pair[0].cpu != pair[1].cpu);
    let mut gaps = gaps.iter().peekable();
    for (n, run) in outcome.runs.iter().enumerate() {
        let (start, end) = (outcome.ns(run.start_tsc), outcome.ns(run.end_tsc));
        let (thread, length) = (run.thread, Ms(end - start));
        let _ = write!(text, "{thread} {} {} {length} ", Ms(start), Ms(end));
        let _ = match gaps.next_if(|gap| gap.run == n) {
            Some(gap) => write!(text, "{}", Ms(gap.ns as i64)),
            None => write!(text, "-"),
        };
        let _ = if several { writeln!(text, " {}", run.cpu) } else { writeln!(text) };
    }
}

/// The same as the counter has it.
fn raw(text: &mut String, outcome: &Outcome) {
    for run in &outcome.runs {
        let (thread, start, end) = (run.thread, run.start_tsc, run.end_tsc);
        let _ = writeln!(text, "cycles: {thread} {start} {end} {}", end - start);
    }
}

fn of_thread(text: &mut String, n: usize, thread: &Thread) {
    let (workload, class) = (thread.plan.workload, thread.plan.class);
    let class = class.map_or_else(|| "as the process".to_owned(), |class| class.to_string());
    let _ = write!(text, "thread {n}: {workload}, {class}");
    if let Some(time) = thread.time {
        let (all, runs) = (Ms(time.last_ns - time.first_ns), time.runs);
        let (ran, gone) = (Ms(time.run_ns as i64), Ms(time.gap_ns as i64));
        let _ = write!(text, ": {all} ms, of it {ran} in {runs} runs and {gone} in gaps");
    }
    if thread.passes > 0 {
        let _ = write!(text, "; {} passes", thread.passes);
    }
    if let Some(overruns) = thread.overruns {
        let _ = write!(text, "; used up {overruns} times, by the kernel's signal");
    }
    text.push('\n');
    let response = |job: &super::outcome::Job| job.response_ns();
    let mut responses: Vec<u64> = thread.jobs.iter().filter_map(response).collect();
    if let Some(summary) = Summary::of(&mut responses) {
        let _ = writeln!(text, "thread {n}: responses: {}", figures(&summary));
    }
    if let Some(summary) = lateness(thread) {
        let _ = writeln!(text, "thread {n}: late: {}", figures(&summary));
    }
}

fn lateness(thread: &Thread) -> Option<Summary> {
    let late = thread.samples.iter().map(|s| s.woke_ns.saturating_sub(s.due_ns));
    Summary::of(&mut late.collect::<Vec<u64>>())
}

fn is_switch(cause: GapKind) -> bool {
    matches!(cause, GapKind::Voluntary | GapKind::Involuntary)
}

fn figures(summary: &Summary) -> String {
    format!(
        "{} of min {}, median {}, mean {}, sd {}, p99 {}, max {}",
        summary.count,
        us(summary.min_ns as f64),
        us(summary.median_ns as f64),
        us(summary.mean_ns),
        us(summary.standard_deviation_ns),
        us(summary.p99_ns as f64),
        us(summary.max_ns as f64),
    )
}

fn us(ns: f64) -> String {
    format!("{:.3} µs", ns / 1e3)
}

#[derive(Serialize)]
struct JsonThread {
    workload: String,
    class: Option<String>,
    hit: Option<u64>,
    missed: Option<u64>,
    runs: u64,
    run_ns: Option<u64>,
    gap_ns: Option<u64>,
    passes: u64,
    overruns: Option<u64>,
    response: Option<Summary>,
    lateness: Option<Summary>,
}

#[derive(Serialize)]
struct JsonGaps {
    cause: GapKind,
    #[serde(flatten)]
    summary: Summary,
    /// Of switches.
    #[serde(flatten)]
    typical: Option<Typical>,
}

/// A run of the execution trace: times in nanoseconds after the begin of the run.
#[derive(Serialize)]
struct JsonRun {
    thread: u32,
    cpu: u16,
    start_ns: i64,
    end_ns: i64,
}

/// A job: times in nanoseconds after the begin of the run.
#[derive(Serialize)]
struct JsonJob {
    thread: u32,
    number: u64,
    release_ns: i64,
    start_ns: i64,
    finish_ns: Option<i64>,
    due_ns: i64,
}

/// A sleep of a latency test: times in nanoseconds after the begin of the run.
#[derive(Serialize)]
struct JsonSample {
    thread: u32,
    due_ns: i64,
    woke_ns: i64,
}

#[derive(Serialize)]
struct Json {
    zero_ns: u64,
    clock_hz: f64,
    clock_error_ns: u64,
    lost_runs: usize,
    threads: Vec<JsonThread>,
    gaps: Vec<JsonGaps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<JsonRun>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<JsonJob>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Vec<JsonSample>>,
}

/// The same as JSON.
pub(super) fn json(outcome: &Outcome, view: View) -> String {
    let thread = |thread: &Thread| {
        let response = |job: &super::outcome::Job| job.response_ns();
        let mut responses: Vec<u64> = thread.jobs.iter().filter_map(response).collect();
        JsonThread {
            workload: thread.plan.workload.to_string(),
            class: thread.plan.class.map(|class| class.to_string()),
            hit: thread.deadlines.map(|deadlines| deadlines.hit),
            missed: thread.deadlines.map(|deadlines| deadlines.missed),
            runs: thread.time.map_or(0, |time| time.runs),
            run_ns: thread.time.map(|time| time.run_ns),
            gap_ns: thread.time.map(|time| time.gap_ns),
            passes: thread.passes,
            overruns: thread.overruns,
            response: Summary::of(&mut responses),
            lateness: lateness(thread),
        }
    };
    let gaps = gaps(outcome);
    let of_cause = |(cause, _): &(GapKind, &str)| {
        let (lengths, summary) = lengths(&gaps, *cause)?;
        let typical = Typical::of(&lengths).filter(|_| is_switch(*cause));
        Some(JsonGaps { cause: *cause, summary, typical })
    };
    let run = |run: &super::tape::Run| JsonRun {
        thread: run.thread,
        cpu: run.cpu,
        start_ns: outcome.ns(run.start_tsc),
        end_ns: outcome.ns(run.end_tsc),
    };
    let jobs = |(n, thread): (usize, &Thread)| {
        let job = |job: &super::outcome::Job| JsonJob {
            thread: n as u32,
            number: job.number,
            release_ns: job.release_ns,
            start_ns: job.start_ns,
            finish_ns: job.finish_ns,
            due_ns: job.due_ns,
        };
        thread.jobs.iter().map(job).collect::<Vec<_>>()
    };
    let samples = |(n, thread): (usize, &Thread)| {
        let after = |ns: u64| ns as i64 - outcome.zero_ns as i64;
        let sample = |sample: &Sample| JsonSample {
            thread: n as u32,
            due_ns: after(sample.due_ns),
            woke_ns: after(sample.woke_ns),
        };
        thread.samples.iter().map(sample).collect::<Vec<_>>()
    };
    let threads = || outcome.threads.iter().enumerate();
    crate::json(&Json {
        zero_ns: outcome.zero_ns,
        clock_hz: outcome.clock.hz(),
        clock_error_ns: outcome.clock_error_ns,
        lost_runs: outcome.lost_runs,
        threads: outcome.threads.iter().map(thread).collect(),
        gaps: CAUSES.iter().filter_map(of_cause).collect(),
        runs: (!view.summary).then(|| outcome.runs.iter().map(run).collect()),
        jobs: (!view.summary).then(|| threads().flat_map(jobs).collect()),
        samples: (!view.summary).then(|| threads().flat_map(samples).collect()),
    })
}
