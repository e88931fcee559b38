//! `ft-load hourglass`: threads with a known load that find out for themselves when they ran.
//!
//! The program of Regehr's "Inferring Scheduling Behavior with Hourglass" (USENIX 2002) with all of its options, on
//! today's Linux: its priorities are classes of today, its reservations `SCHED_DEADLINE`, and there may be many CPUs.
//! A thread polls the time stamp counter; readings that are farther apart than a pass of the loop takes enclose a *gap*,
//! and what is between gaps is a *run*. Runs and gaps tile a thread's time from its first reading to its last, to the
//! nanosecond.
//!
//! # Jobs
//!
//! - `PERIODIC`: period `k` begins `k T` after the thread's start, and its job is due at its end. A job that is late
//!   goes on, and the next begins when it is done, so the work of no period is dropped. Each whole period between start
//!   and finish is one deadline, hit or missed.
//! - `CPU_PERIODIC`: a job is released by the end of the one before it, and each period that goes by without its end is
//!   a deadline missed.
//! - CPU time is what the thread had between gaps: time that an interrupt took is not its own.
//!
//! # Events
//!
//! A recording has what the tables `workers`, `runs`, `jobs`, `timer_latency` and `switches` are made of. A worker is told
//! by the thread that writes the event. Times in arguments are nanoseconds of `CLOCK_MONOTONIC`, as the `ts` of events
//! are, or readings of the counter, which a trace has as such times. The analysis sees the first three arguments; those
//! behind them, `worker` last of all (the thread's number, from 0 on), are for people.
//!
//! | event | arguments | written |
//! |---|---|---|
//! | `hourglass.zero` | `zero_ns`, `workers`, `duration_ns`, `gap_ns` | before the run, by the thread that starts it |
//! | `hourglass.worker` | `worker`, `workload` (0 `CPU`, 1 `CPU_SCAN`, 2 `CPU_YIELD`, 3 `CPU_SCAN_YIELD`, 4 `PERIODIC`, 5 `CPU_PERIODIC`, 6 `LAT`), `timer` (0 `NATIVE`, 1 `HR`, 2 `TIMERFD`, 3 `RTC`); `what`, `name` or null | by each thread, before it starts |
//! | `hourglass.class` | `policy` as the kernel numbers it, `priority` (real-time priority or nice value), `slice_ns` or 0 | behind it |
//! | `hourglass.reserved` | `amount_ns`, `period_ns`, `soft` | behind it, with `SCHED_DEADLINE` |
//! | `hourglass.span` | `start_ns`, `finish_ns`, `cpu`: the only one that it may run on, else -1 | behind it |
//! | `hourglass.demand` | `amount_ns` or null, `period_ns` or null, `scan_kb` or null | behind it |
//! | `hourglass.bound` | `bound_ns`: the longest response by analysis | behind it, where there is one (`bound.rs`) |
//! | `hourglass.first`, `hourglass.last` | `reading` of the counter | when it begins to poll, and when it ends |
//! | `gap.begin`, `gap.seen`, `gap.end` | those of [`ft_user::gap`] | while it polls: a run is what lies between two gaps, or between one and the first or last reading |
//! | `hourglass.job` (scope) | `number`, `start` (a reading), `release_ns` or 0 for one that is released by its start; `due_ns` or 0 | from the start of a job to its end, or to that of the thread |
//! | `hourglass.finish` | `number`, `finish` (a reading) | when the job has had its time; a job without it has no finish |
//! | `hourglass.sleep` | `due_ns` | before a sleep |
//! | `hourglass.woke` | `due_ns`, `woke_ns` | after it: between the two lie timer interrupt, waking and dispatch |
//! | `hourglass.yield` | `worker` | before a yield |
//! | `hourglass.overrun` | `overruns` | when the kernel has signalled the thread that it had used up its reservation, that often until now |
//! | `hourglass.done` | `runs`, `jobs`, `sleeps`; `passes` | at the thread's end; what it counts is what a whole recording has |
//!
//! Without a recording each is one nop.

mod announce;
mod bound;
mod class;
mod file;
mod infer;
mod options;
mod outcome;
mod overrun;
mod print;
mod scenario;
mod tape;
mod team;
#[cfg(test)]
mod tests;
mod timer;
mod worker;
mod workload;

pub use class::{Class, Priority};
pub use infer::{Gap, GapKind, gaps};
pub use outcome::{Deadlines, Job, Outcome, Polled, Thread};
pub use scenario::{Plan, Scenario};
pub use tape::{Ended, Run};
pub use team::run as play;
pub use timer::Timer;
pub use worker::Sample;
pub use workload::Workload;

use crate::{Error, Output};

/// The scenario of a command line.
///
/// # Errors
///
/// A sentence for what makes no sense, or when it asks for help alone.
pub fn scenario(words: &[String]) -> Result<Scenario, Error> {
    match options::read(words)? {
        options::Asked::Run(scenario, _) => Ok(scenario),
        options::Asked::Help => Err(Error::usage("--help is no scenario; leave it out")),
    }
}

/// Runs `ft-load hourglass` with these words behind its name.
///
/// # Errors
///
/// A sentence for what the command line gets wrong, or the machine refuses; then nothing has run, and no thread is left.
pub fn run(words: &[String]) -> Result<Output, Error> {
    let (scenario, view) = match options::read(words)? {
        options::Asked::Help => return Ok(Output::new(format!("{}\n", options::HELP))),
        options::Asked::Run(scenario, view) => (scenario, view),
    };
    let outcome = team::run(&scenario)?;
    let text = match view.json {
        true => print::json(&outcome, view),
        false => print::text(&outcome, view),
    };
    Ok(Output { text, notes: outcome.notes })
}
