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

use crate::analysis::Analysis;
use crate::world::{Change, Hold, Over, PerThread, Share, Shares, Thread, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::ids::{Nanos, Tid};
use ft_trace::tables::{Decomposition, LockPreemption, PreemptionCause};

/// Times that are kept for one hold.
///
/// Limit: if there are more, `ran_after_ns` is null in all but 32: the first of each cause and the last ones.
/// Shown by: `of_many_those_after_the_first_are_told_without_what_ran_after`.
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
struct Preemption {
    ts: i64,
    end: i64,
    woken: bool,
    by: Option<Share>,
    stack: Option<i64>,
    innermost: bool,
    delayed: Delayed,
    agent_ns: Option<i64>,
    /// The holder's time on a CPU until then.
    on_cpu_ns: i64,
    mark: Mark,
}

/// Waiters that somebody delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Delayed {
    waiters: i32,
    sum_ns: i64,
    longest: Option<(Tid, i64)>,
}

/// Of one hold, those whose row waits for the release.
#[derive(Debug, Default)]
struct Kept {
    kept: Vec<(i32, Preemption)>,
    /// How many there were: preempted, woken.
    counts: [i32; 2],
}

impl Kept {
    /// Adds one; returns the oldest but the first of each cause, and its number, when there are too many.
    fn add(&mut self, preemption: Preemption) -> Option<(i32, Preemption)> {
        let full = self.kept.len() == MAX_KEPT;
        let oldest = self.kept.iter().position(|(nth, _)| full && *nth > 1);
        let oldest = oldest.map(|i| self.kept.remove(i));
        let count = &mut self.counts[usize::from(preemption.woken)];
        *count = count.saturating_add(1);
        self.kept.push((*count, preemption));
        oldest
    }
}

/// Makes the table `lock_preemptions`.
#[derive(Debug, Default)]
pub struct Preemptions {
    /// Of the holds in which there were some.
    open: PerThread<Vec<(u64, Kept)>>,
    seen: u64,
    unfinished: Unfinished,
}

impl Analysis for Preemptions {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Dispatched { thread, after, shares, .. } if after.is_runnable() => {
                self.runs_again(thread, shares, world, rows);
            }
            Change::Unseen { thread } => {
                self.unfinished.at_loss += u64::from(thread.is_held_up());
            }
            Change::Dropping { thread, why } if why != Over::Loss => {
                self.unfinished.at_end += u64::from(thread.is_held_up());
            }
            Change::Released { thread, hold: Some(hold), .. } => {
                self.over(thread, hold, true, world, rows);
            }
            Change::HoldLost { thread, hold }
            | Change::HoldMoved { from: Some(thread), hold, .. } => {
                self.over(thread, hold, false, world, rows);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.preemptions = self.seen;
        tally.unfinished_preemptions = self.unfinished;
    }
}

impl Preemptions {
    /// A thread runs again, which could have run before.
    fn runs_again(&mut self, thread: &Thread, shares: &Shares, world: &World, rows: &mut Rows) {
        if thread.locks.locks().next().is_none() {
            return;
        }
        self.seen += 1;
        let (since, woken) = thread.runnable;
        let lost = world.losses().kernel_since(since) || thread.doubtful_since(since);
        let on_cpu_ns = on_cpu_ns(&thread.account(world.now()));
        let open = self.open.of(thread);
        for (i, hold) in thread.locks.locks().rev().enumerate() {
            let preemption = Preemption {
                ts: since,
                end: world.now(),
                woken,
                by: shares.longest().cloned(),
                stack: thread.left_at,
                innermost: i == 0,
                delayed: delayed(thread, hold, since, world),
                agent_ns: world.agent_share(shares),
                on_cpu_ns,
                mark: Mark::lower_bound_if(lost || !shares.is_exact())
                    .max(thread.disturbed.mark(since)),
            };
            let at = open.iter().position(|(id, _)| *id == hold.id).unwrap_or_else(|| {
                open.push((hold.id, Kept::default()));
                open.len() - 1
            });
            if let Some(oldest) = open[at].1.add(preemption) {
                rows.lock_preemptions.push(row(thread, hold, oldest, None, world));
            }
        }
    }

    /// A hold is over; `released`: its end was recorded.
    fn over(
        &mut self,
        thread: &Thread,
        hold: &Hold,
        released: bool,
        world: &World,
        rows: &mut Rows,
    ) {
        let Some(open) = self.open.get(thread) else { return };
        let Some(at) = open.iter().position(|(id, _)| *id == hold.id) else { return };
        let on_cpu_ns = released.then(|| on_cpu_ns(&thread.account(world.now())));
        for preemption in open.swap_remove(at).1.kept {
            rows.lock_preemptions.push(row(thread, hold, preemption, on_cpu_ns, world));
        }
    }
}

/// Time of an account on a CPU.
fn on_cpu_ns(account: &Decomposition) -> i64 {
    account.running_ns + account.hardirq_ns + account.softirq_ns + account.vector_ns
}

/// Who is in the queue of a lock, as far as it was during the time from `since` on.
fn delayed(thread: &Thread, hold: &Hold, since: i64, world: &World) -> Delayed {
    let mut delayed = Delayed::default();
    for &(tid, from) in world.locks().queue(thread.process, hold.lock) {
        let ns = world.now() - from.max(since);
        delayed.waiters += 1;
        delayed.sum_ns += ns;
        if delayed.longest.is_none_or(|(_, longest)| ns > longest) {
            delayed.longest = Some((tid, ns));
        }
    }
    delayed
}

/// The row of one of `hold`'s; `released` is the holder's time on a CPU until the release.
fn row(
    thread: &Thread,
    hold: &Hold,
    (nth, p): (i32, Preemption),
    released: Option<i64>,
    world: &World,
) -> LockPreemption {
    let (by, context, pid) = (p.by.as_ref(), world.context(), thread.key.pid);
    LockPreemption {
        ts: Nanos(p.ts),
        dur: p.end - p.ts,
        pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        lock: hold.lock,
        lock_name: context.lock_name(pid, hold.lock, hold.site, hold.word),
        kind: hold.kind.clone(),
        site: hold.site,
        place: context.place(pid, hold.site, hold.word),
        depth: hold.depth,
        depth_mark: hold.depth_mark,
        innermost: p.innermost,
        cause: if p.woken { PreemptionCause::Woken } else { PreemptionCause::Preempted },
        nth,
        stack: p.stack,
        preemptor_tid: by.map(|s| s.who.thread.tid.0),
        preemptor_comm: by.map(|s| s.who.comm.clone()),
        preemptor_prio: by.map(|s| s.who.prio),
        preemptor_ns: by.map(|s| s.ns),
        waiters: p.delayed.waiters,
        delayed_ns: p.delayed.sum_ns,
        longest_waiter_tid: p.delayed.longest.map(|(tid, _)| tid.0),
        longest_waiter_ns: p.delayed.longest.map(|(_, ns)| ns),
        ran_after_ns: released.map(|at| at - p.on_cpu_ns),
        agent_ns: p.agent_ns,
        mark: p.mark,
    }
}
