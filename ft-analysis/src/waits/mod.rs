//! Who waits for whom, and whose fault it is.
//!
//! **Goal.** For a wait for a lock, say who held the lock meanwhile, who in the end was to blame, and what that
//! thread did; the parts must sum to the wait to the nanosecond. How the blame is found, [`blame`] and [`queues`] say. A
//! wait that had not ended when the thread or the recording did has a row of another table, with its circle if it is in
//! one.

mod blame;
mod own;
mod queue;
mod queues;
mod rows;
mod spared;

use crate::analysis::Analysis;
use crate::world::{Change, Hold, Outcome, Over, PerThread, Shares, Thread, Wait, Wake, World};
use crate::{Rows, Tally};
use own::Own;
use queues::{Here, Queues, Start};
use spared::{Gains, Spared};

/// Makes the tables `lock_waits` and `unfinished_waits`.
#[derive(Debug, Default)]
pub struct Waits {
    queues: Queues,
    waiters: PerThread<Option<Box<Waiter>>>,
    gains: Gains,
    /// The lock that a thread has waited for and is about to have.
    comes: PerThread<Option<i64>>,
    rows: u64,
}

/// A thread that waits.
#[derive(Debug)]
struct Waiter {
    /// Where the account of the lock stood when the wait began.
    start: Start,
    own: Own,
    spared: Spared,
}

impl Analysis for Waits {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Acquired { thread, hold } if !hold.is_semaphore() => {
                let here = Here::of(thread, world);
                if self.comes.of(thread).take() != Some(hold.lock) {
                    self.queues.overtakes_all(hold.lock, &here);
                }
                self.queues.acquired(hold.lock, &here);
            }
            Change::Released { thread, lock, hold, .. } => {
                self.queues.changed(lock, &Here::of(thread, world));
                let earliest = hold.and_then(|hold| self.gains.earliest(thread, hold, world));
                self.free(thread, lock, hold, earliest, world);
            }
            Change::HoldLost { thread, hold } if !hold.is_semaphore() => {
                self.queues.changed(hold.lock, &Here::of(thread, world));
                self.gains.forget(thread, hold);
                self.free(thread, hold.lock, Some(hold), None, world);
            }
            Change::HoldMoved { from, thread, hold } if !hold.is_semaphore() => {
                self.queues.changed(hold.lock, &Here::of(thread, world));
                if let Some(from) = from {
                    self.gains.forget(from, hold);
                }
            }
            Change::Queued { thread } => self.queued(thread, world),
            Change::Switched { prev: Some(thread), .. } => self.look(thread, world, None),
            // Whoever can run already goes on to be without a CPU, or to have one.
            Change::Waking { thread, .. } if !thread.is_runnable() => {
                self.look(thread, world, None);
            }
            Change::Dispatched { thread, shares, wake, .. } => {
                self.look(thread, world, Some((shares, wake)));
            }
            Change::WaitOver { thread, wait, end } => {
                if let Some(Some(waiter)) = self.waiters.get(thread) {
                    let known = waiter.spared.filter(|_| end != Outcome::Unknown);
                    self.gains.add(thread, wait, known);
                }
                if end == Outcome::Acquired {
                    self.waited(thread, wait, world, rows);
                }
                self.over(thread, wait, end, world);
            }
            Change::Dropping { thread, why } if why != Over::Loss => {
                self.unfinished(thread, why, world, rows);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.waits = self.rows;
    }
}

impl Waits {
    /// A thread joins the queue of the lock that it waits for.
    fn queued(&mut self, thread: &Thread, world: &World) {
        let Some(wait) = thread.locks.queued() else { return };
        let here = Here::of(thread, world);
        let start = self.queues.join(wait.lock, thread, &here);
        let free = self.queues.free(wait.lock, &here);
        let own = Own::new(world.now(), thread.account(world.now()), free);
        let spared = Some(0);
        *self.waiters.of(thread) = Some(Box::new(Waiter { start, own, spared }));
    }

    /// A hold of a lock is over, which could have ended at `earliest` if that is known: those that wait are spared the rest,
    /// unless others still have the lock.
    fn free(
        &mut self,
        thread: &Thread,
        lock: i64,
        hold: Option<&Hold>,
        earliest: Option<i64>,
        world: &World,
    ) {
        let is_shared = hold.is_none_or(|hold| hold.kind.ends_with("-read"));
        if is_shared && world.locks().holders(thread.process, lock).0 > 0 {
            return;
        }
        for &(tid, from) in world.locks().queue(thread.process, lock) {
            if let Some(waiter) = world.thread(thread.key.pid, tid)
                && let Some(Some(waiter)) = self.waiters.get(waiter)
            {
                let more = earliest.map(|earliest| world.now() - earliest.max(from));
                waiter.spared = waiter.spared.zip(more).map(|(ns, more)| ns + more.max(0));
            }
        }
    }

    /// A thread that may wait begins to do something else; it has a CPU, after others had it.
    fn look(&mut self, thread: &Thread, world: &World, runs: Option<(&Shares, Option<&Wake>)>) {
        let Some(wait) = thread.locks.queued() else { return };
        let Some(Some(waiter)) = self.waiters.get(thread) else { return };
        let free = self.queues.free(wait.lock, &Here::of(thread, world));
        let now = world.now();
        let looked = waiter.own.look(now, thread.account(now), free);
        if let Some((shares, wake)) = runs {
            waiter.own.runs(looked, free, shares, wake);
        }
    }

    /// The row of a wait that has ended with the lock.
    fn waited(&mut self, thread: &Thread, wait: &Wait, world: &World, rows: &mut Rows) {
        let Some(waiter) = self.waiters.of(thread).take() else { return };
        let Waiter { start, mut own, spared } = *waiter;
        let here = Here::of(thread, world);
        let Some(verdict) = self.queues.judge(wait.lock, thread.key.tid, &start, &here) else {
            return;
        };
        let free = self.queues.free(wait.lock, &here);
        own.look(world.now(), thread.account(world.now()), free);
        self.queues.overtakes(wait.lock, thread.key.tid, &here);
        *self.comes.of(thread) = Some(wait.lock);
        let unseen = thread.unseen >= wait.ts || verdict.touched;
        // Who was to blame has been seen before; so what is not known of it was lost, if only before the wait began.
        let hidden = world.context().kernel && verdict.blame.parts.unexplained_ns > 0;
        let touched = unseen || hidden || world.losses().process_since(thread.key.pid, wait.ts);
        self.rows += 1;
        rows.lock_waits.push(rows::row(thread, wait, &verdict, &own, spared, touched, world));
    }

    /// A thread is in the queue of a lock no longer.
    fn over(&mut self, thread: &Thread, wait: &Wait, end: Outcome, world: &World) {
        let here = Here::of(thread, world);
        let cycle = self.queues.cycles.remove(&thread.key);
        self.queues.leave(wait.lock, thread, &here);
        // Where it has ended, the others still wait in the circle that it was in.
        let stays = matches!(end, Outcome::Over(Over::Thread | Over::Exec | Over::Trace));
        if let Some(cycle) = cycle
            && !stays
        {
            self.queues.open(cycle, &here);
        }
    }

    /// The row of a wait that goes on when its thread or the trace ends.
    fn unfinished(&mut self, thread: &Thread, why: Over, world: &World, rows: &mut Rows) {
        if let Some(wait) = thread.locks.queued() {
            let cycle = self.queues.cycles.get(&thread.key).copied();
            rows.unfinished_waits.push(rows::unfinished(thread, wait, why, cycle, world));
        }
    }
}
