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
//! A recording has what the tables of workers, runs, jobs and timer latencies need. Times in arguments are
//! nanoseconds of `CLOCK_MONOTONIC`, as the `ts` of events are; `worker` is the thread's number, from 0 on.
//!
//! | event | arguments | written |
//! |---|---|---|
//! | `hourglass.zero` | `zero_ns`, `workers`, `duration_ns`, `gap_ns` | before the run, by the thread that starts it |
//! | `hourglass.worker` | `worker`, `workload`, `class` or null, `timer`, `name` or null | by each thread, before it starts |
//! | `hourglass.span` | `worker`, `start_ns`, `finish_ns`, `slice_ns` or null | behind it |
//! | `hourglass.demand` | `worker`, `amount_ns` or null, `period_ns` or null | behind it |
//! | `gap.begin`, `gap.seen`, `gap.end` | those of [`ft_user::gap`] | while it polls: a run is what lies between two gaps, or between one and the begin or end |
//! | `hourglass.job` (scope) | `worker`, `number`, `release_ns`, `due_ns` | from the start of a job to its end, or to that of the thread |
//! | `hourglass.finish` | `worker`, `number` | when the job has had its time; a job without it has no finish |
//! | `hourglass.sleep` | `worker`, `due_ns` | before a sleep |
//! | `hourglass.woke` | `worker`, `due_ns`, `woke_ns` | after it: between `due_ns` and `woke_ns` lie timer interrupt, waking and dispatch |
//! | `hourglass.yield` | `worker` | before a yield |
//! | `hourglass.done` | `worker`, `runs`, `passes`, `jobs`, `samples` | at the thread's end; what it counts is what a whole recording has |
//!
//! A job was missed if it has no finish, or one after `due_ns`; a job that no event begins missed as well. Response time
//! is finish less `release_ns`: until the scope begins the job waited for its thread, and where the rest went is what the
//! analysis of scopes says already.

mod class;
mod file;
mod infer;
mod options;
mod outcome;
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
pub use infer::{Cause, Gap, gaps};
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
