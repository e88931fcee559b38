//! The analyses: what a trace says about where the time went. Events in, rows and counts out; no I/O, no clock, and
//! nothing of how traces are stored.
//!
//! ```
//! use ft_analysis::{Context, Holds, Run};
//! # use ft_trace::{event::{Event, LeanUserEvent}, ids::*, tables::{SiteKind, SiteRow}};
//! # let site = |site, kind, event: &str| SiteRow {
//! #     site: SiteId(site), pid: Pid(1), event: event.into(), category: "lock".into(), kind, file: "".into(), line: 1,
//! #     args: "".into(), format: "".into(), triggers: 1, source: 0, started: 0, program: 0, on_ns: Some(0),
//! # };
//! # let sites = [
//! #     site(0, SiteKind::LockAcquire, "lock.mutex_acquire"), site(1, SiteKind::LockRelease, "lock.mutex_release"),
//! # ];
//! # let event = |ts, site| Event::User(LeanUserEvent {
//! #     ts: Nanos(ts), pid: Pid(1), tid: Tid(7), cpu: Cpu(0), site: SiteId(site), arg: [64, 0, 0],
//! # });
//! # let events = [event(100, 0), event(350, 1)];
//!
//! // What the trace says of its threads, sites and names; and its events, in the order of time. Whoever reads a stored
//! // trace finds them in `ft_trace::store` and `ft_trace::stream`.
//! let context = Context::new(false, 0, &[], &sites, &[]);
//! let mut run = Run::<Holds>::of(context);
//! for event in &events {
//!     run.push(event);
//! }
//! let (rows, tally) = run.finish();
//! for hold in &rows.critical_sections {
//!     println!("thread {} held {} for {} ns", hold.tid, hold.lock_name, hold.dur);
//! }
//! assert_eq!((rows.critical_sections[0].dur, tally.holds), (250, 1));
//! ```
//!
//! [`Run::new`] runs all of them.
//!
//! A [`World`] takes each event once: it knows the threads and what each is doing, who has each CPU and waits for it, who
//! holds each lock and waits for it, and what was lost. It passes each [`Change`](world::Change) to the analyses, each of
//! which is a value of the trait [`Analysis`], keeps its own open intervals, and makes the rows of its own tables.
//! Threads of processes that are not observed exist only as occupants of CPUs.
//!
//! A thread's *account* is the running sum of its time by part (running, preempted, blocked, …); where the time of any
//! interval went is the account at its end minus the account at its begin, so the parts sum to the interval. What begins in
//! a task, async or a fiber, is that task's ([`Spell`](world::Spell)): of the accounts of the threads that run it by turns only these turns
//! count, and the rest is *parked*. An interval
//! whose records may be incomplete is marked ([`Mark`]); what gives no row is counted ([`Tally`]).
//!
//! Memory: per observed thread that lives, at most 256 holds with 32 preemptions each, 16 interrupts, 64 culprits
//! of each part, 65,536 calls of 4096 functions, and for a polling thread 4096 stretches; per thread that waits for a lock or a
//! CPU, at most 1024 sums; of each process 65,536 locks, as many edges between those, and as many async tasks; of all, 65,536 scopes, requests and
//! holds of tasks that no thread runs. Nothing grows
//! with the length of the trace. `LIMITS.md` lists every bound and what is seen when it bites.

mod analysis;
mod blame;
mod breakdown;
mod chains;
mod dispatch;
mod doubts;
mod functions;
mod futexes;
mod gaps;
mod histograms;
mod holds;
mod kernel_locks;
mod loads;
mod npt;
mod requests;
mod rows;
mod sampling;
mod scopes;
mod tally;
mod tasks;
#[cfg(test)]
mod tests;
mod time;
#[cfg(any(test, feature = "timeline"))]
pub mod timeline;
pub mod unended;
mod waits;
mod wake_pairs;
pub mod world;

pub use analysis::*;
pub use ft_trace::Mark;
pub use functions::FunctionCounts;
pub use gaps::{Unaccounted, agreement};
pub use histograms::Histograms;
pub use holds::{Extensions, Unfinished};
pub use loads::{SwitchCell, WithoutRow, Worked};
pub use npt::LoopCounts;
pub use requests::{
    Cause, Deadline, NoRequest, Reactions, Recorded, RequestCounts, RequestKind, SLOWEST,
};
pub use rows::Rows;
pub use scopes::Unpaired;
pub use tally::{Counting, Samples, Tally, VERSION};
pub use tasks::TaskCounts;
pub use world::{
    Context, HeldUp, Incomplete, Overhead, Overlaps, Races, RingWaits, World, place_text,
};

use analysis::Audience;
use ft_trace::event::Event;
use ft_trace::tables::{NameRow, SiteRow, ThreadRow};

/// One run of analyses over a trace.
#[derive(Debug)]
pub struct Run<A = All> {
    world: World,
    analysis: A,
    rows: Rows,
}

impl Run {
    /// All analyses, of a trace of which nothing was read yet.
    pub fn new(context: Context) -> Self {
        Run::of(context)
    }
}

impl<A: Analysis> Run<A> {
    /// One analysis, of a trace of which nothing was read yet.
    pub fn of(context: Context) -> Self {
        Run { world: World::new(context, A::DRAWS), analysis: A::default(), rows: Rows::default() }
    }

    /// Takes what was learned of a trace that is still being recorded since the last time: for events to come.
    pub fn learn(
        &mut self,
        clock_bound_ns: i64,
        threads: &[ThreadRow],
        sites: &[SiteRow],
        names: &[NameRow],
    ) {
        self.world.context_mut().learn(clock_bound_ns, threads, sites, names);
    }

    /// Takes the next event, in the order of time. One that is older than its predecessor is counted and left out.
    pub fn push(&mut self, event: &Event) {
        let to = &mut Audience { analysis: &mut self.analysis, rows: &mut self.rows };
        self.world.push(event, to);
    }

    /// Hands over the rows that were finished since the last call.
    pub fn take_rows(&mut self) -> Rows {
        std::mem::take(&mut self.rows)
    }

    /// What is known now.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Rows that wait to be taken.
    pub fn pending(&self) -> usize {
        self.rows.len()
    }

    /// The analysis, for what it has found beside rows.
    pub fn analysis_mut(&mut self) -> &mut A {
        &mut self.analysis
    }

    /// Ends the trace: what is open is counted as incomplete.
    pub fn finish(mut self) -> (Rows, Tally) {
        let tally = self.end(i64::MIN);
        (self.rows, tally)
    }

    /// Ends the trace at the time `at`, or with its newest event if that is later: what is open lasts until then. The
    /// rows and what the analysis has found are there to be taken; a trace that has ended takes no more events.
    pub fn end(&mut self, at: i64) -> Tally {
        self.world.pass(at);
        let to = &mut Audience { analysis: &mut self.analysis, rows: &mut self.rows };
        let mut tally = self.world.finish(to);
        self.analysis.end(&self.world, &mut self.rows, &mut tally);
        tally
    }
}
