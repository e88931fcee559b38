//! Holders that could have run and did not: preempted in the critical section.
//!
//! **Goal.** One row for each time that a thread held a lock, was runnable, and had no CPU: who had it instead, which
//! waiters that delayed, and what the hold still ran afterwards.
//!
//! **Definition.** The time begins when a holder is switched out in state `R`, or when it is woken from a sleep within
//! the hold, and ends when it is switched in. The two causes are *preempted* and *woken*; they are the parts *preempted*
//! and *dispatch* of the hold's decomposition. A waiter is delayed by the part of this time in which it waited for
//! that lock. What the hold *ran after* is the time on a CPU, interrupts included, from then to the release: had
//! the scheduler granted that much before it took the CPU, the hold would have ended first. A sleep on the way
//! is not part of it, since a grant ends with one.
//!
//! **Situations.**
//! - *Nested locks*: a row for each lock that is held; the one of the lock acquired last is marked, and sums over
//!   preemptors and threads count only these.
//! - *The hold has no recorded end* (still held at the end, loss): the time is whole and has a row, but what ran
//!   after it is not known.
//! - *The time has no recorded end*, or scheduler records were lost in it: no row; counted in [`Unfinished`].
//! - *A semaphore* is known to be a lock only when it is posted: no row.
//!
//! Memory: 32 for each lock that is held, the first of each cause and the last ones. Others are told before the release
//! is known.

use serde::{Deserialize, Serialize};

use crate::contention::Delayed;
use crate::displaced::Share;
use crate::locks::Hold;
use crate::thread::Thread;
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{Decomposition, LockPreemption, PreemptionCause};

/// Times that are kept for one hold.
const MAX_KEPT: usize = 32;

/// Times off the CPU within holds that give no row; each counts once, however many locks were held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unfinished {
    /// The thread or the recording ended before the thread ran again.
    pub at_end: u64,
    /// Switches were lost or not recorded meanwhile.
    pub at_loss: u64,
}

/// A holder runs again.
#[derive(Clone, Debug)]
pub(crate) struct Preemption {
    pub(crate) ts: i64,
    pub(crate) end: i64,
    pub(crate) woken: bool,
    pub(crate) by: Option<Share>,
    pub(crate) innermost: bool,
    pub(crate) delayed: Delayed,
    /// The holder's time on a CPU until then.
    pub(crate) on_cpu_ns: i64,
    pub(crate) touched: bool,
}

/// Of one hold, those whose row waits for the release.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preemptions {
    kept: Vec<(i32, Preemption)>,
    /// How many there were: preempted, woken.
    counts: [i32; 2],
}

/// Time of an account on a CPU.
pub(crate) fn on_cpu_ns(account: &Decomposition) -> i64 {
    account.running_ns + account.hardirq_ns + account.softirq_ns + account.vector_ns
}

impl Preemptions {
    /// Adds one; returns the oldest but the first of each cause, and its number, when there are too many.
    pub(crate) fn add(&mut self, preemption: Preemption) -> Option<(i32, Preemption)> {
        let full = self.kept.len() == MAX_KEPT;
        let oldest = self.kept.iter().position(|(nth, _)| full && *nth > 1);
        let oldest = oldest.map(|i| self.kept.remove(i));
        let count = &mut self.counts[usize::from(preemption.woken)];
        *count = count.saturating_add(1);
        self.kept.push((*count, preemption));
        oldest
    }

    /// Takes all that are kept.
    pub(crate) fn take(&mut self) -> Vec<(i32, Preemption)> {
        std::mem::take(&mut self.kept)
    }
}

/// The row of one of `hold`'s; `released` is the holder's time on a CPU until the release.
pub(crate) fn row(
    thread: &Thread,
    hold: &Hold,
    (nth, p): (i32, Preemption),
    (lock_name, place): (Name, Name),
    released: Option<i64>,
) -> LockPreemption {
    let by = p.by.as_ref();
    LockPreemption {
        ts: Nanos(p.ts),
        dur: p.end - p.ts,
        pid: thread.key.pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        lock: hold.lock,
        lock_name,
        kind: hold.kind.clone(),
        site: hold.site,
        place,
        depth: hold.depth,
        depth_mark: hold.depth_mark,
        innermost: p.innermost,
        cause: if p.woken { PreemptionCause::Woken } else { PreemptionCause::Preempted },
        nth,
        preemptor_tid: by.map(|s| s.who.thread.tid.0),
        preemptor_comm: by.map(|s| s.who.comm.clone()),
        preemptor_prio: by.map(|s| s.who.prio),
        preemptor_ns: by.map(|s| s.ns),
        waiters: p.delayed.waiters,
        delayed_ns: p.delayed.sum_ns,
        longest_waiter_tid: p.delayed.longest.map(|(tid, _)| tid.0),
        longest_waiter_ns: p.delayed.longest.map(|(_, ns)| ns),
        ran_after_ns: released.map(|at| at - p.on_cpu_ns),
        mark: Mark::lower_bound_if(p.touched),
    }
}
