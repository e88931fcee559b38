//! What the events of locks do to the world: waits, holds and their ends.

use super::begun::Nest;
use super::held::{Acquisition, Ended, Hold, SEMAPHORE, Wait};
use super::locks::Holder;
use super::parts::Began;
use super::threads::Slot;
use super::turns::Spell;
use super::{Change, Outcome, Over, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::Name;
use ft_trace::tables::{SiteKind, SliceOutcome};

impl World {
    /// An event of a lock; the account of its thread is advanced to now.
    pub(super) fn lock<A: Analysis>(
        &mut self,
        slot: Slot,
        e: &LeanUserEvent,
        what: SiteKind,
        kind: Name,
        to: &mut Audience<'_, A>,
    ) {
        let (ts, lock) = (self.now, e.arg[0]);
        if matches!(what, SiteKind::LockRelease | SiteKind::CondWait) {
            self.comes_back(slot, lock);
        }
        let thread = &mut self.threads[slot];
        let bad = &mut self.tally.incomplete;
        match what {
            SiteKind::LockWait => self.lock_wait(slot, e, kind, to),
            SiteKind::LockAcquire | SiteKind::CondWake => {
                self.holds += 1;
                let (id, began) = (self.holds, Spell::of(thread, Began::at(ts, thread)));
                let depth_mark = thread.begun.mark(Nest::Locks);
                let a =
                    Acquisition { id, began, lock, word: e.arg[1], site: e.site, kind, depth_mark };
                let ended = match what {
                    SiteKind::CondWake => thread.locks.wake(a, bad),
                    _ => thread.locks.acquire(a, bad),
                };
                self.lock_acquired(slot, lock, ended, to);
            }
            SiteKind::LockAbandon => {
                if let Some(wait) = thread.locks.abandon(lock, bad) {
                    self.wait_over(slot, &wait, Outcome::Abandoned, to);
                }
            }
            SiteKind::LockRelease if kind.as_ref() == SEMAPHORE => {
                if let Some(hold) = &thread.locks.post(lock) {
                    let (thread, hold) = (&self.threads[slot], Some(hold));
                    to.tell(self, Change::Released { thread, lock, hold, in_order: true });
                }
            }
            _ => {
                let in_order = thread.locks.newest() == Some(lock);
                let hold = match what {
                    SiteKind::CondWait => thread.locks.park(lock, bad),
                    _ => thread.locks.release(lock, bad).map(|hold| {
                        // The third argument of a condition wait is its condition.
                        Hold { slice: SliceOutcome::told(e.arg[2]), ..hold }
                    }),
                };
                if hold.is_none() && self.locks.holder(thread.process, lock).is_none() {
                    thread.begun.ended_unseen(Nest::Locks);
                }
                let taken = self.locks.released(thread.process, lock, thread.key.tid);
                if let (Some(hold), Some(taken)) = (&hold, taken)
                    && (hold.began.ts..ts).contains(&taken)
                {
                    self.tally.overlaps.add(ts - taken);
                }
                let (thread, hold) = (&self.threads[slot], hold.as_ref());
                to.tell(self, Change::Released { thread, lock, hold, in_order });
            }
        }
    }

    fn lock_wait<A: Analysis>(
        &mut self,
        slot: Slot,
        e: &LeanUserEvent,
        kind: Name,
        to: &mut Audience<'_, A>,
    ) {
        let (ts, lock) = (self.now, e.arg[0]);
        let queued = kind.as_ref() != SEMAPHORE;
        self.tally.incomplete.semaphore_waits += u64::from(!queued);
        if let Some(before) = self.threads[slot].locks.wait_over(&mut self.tally.incomplete) {
            self.wait_over(slot, &before, Outcome::Unknown, to);
        }
        let thread = &mut self.threads[slot];
        let (word, site) = (e.arg[1], e.site);
        let task = thread.polls.innermost().map(|poll| poll.task);
        thread.locks.wait(Wait { ts, lock, word, site, kind, queued, task, asleep: None });
        if queued {
            self.locks.queued(thread.process, lock, thread.key.tid, ts);
            to.tell(self, Change::Queued { thread: &self.threads[slot] });
        }
    }

    fn lock_acquired<A: Analysis>(
        &mut self,
        slot: Slot,
        lock: i64,
        ended: Ended,
        to: &mut Audience<'_, A>,
    ) {
        if let Some(wait) = ended.wait {
            let end = if wait.lock == lock { Outcome::Acquired } else { Outcome::Unknown };
            self.wait_over(slot, &wait, end, to);
        }
        if let Some(over) = &ended.hold {
            let thread = &self.threads[slot];
            if over.lock != lock && !over.is_semaphore() {
                self.locks.released(thread.process, over.lock, thread.key.tid);
            }
            to.tell(self, Change::HoldLost { thread: &self.threads[slot], hold: over });
        }
        let thread = &self.threads[slot];
        let Some(hold) = thread.locks.last() else { return };
        if !hold.is_semaphore() {
            let holder = Holder {
                tid: thread.key.tid,
                lock,
                since: self.now,
                word: hold.word,
                site: hold.site,
                shared: hold.kind.ends_with("-read"),
                gone: false,
            };
            self.locks.acquired(thread.process, holder);
        }
        let thread = &self.threads[slot];
        if let Some(hold) = thread.locks.last() {
            to.tell(self, Change::Acquired { thread, hold });
        }
    }

    /// A thread waits no longer.
    pub(super) fn wait_over<A: Analysis>(
        &mut self,
        slot: Slot,
        wait: &Wait,
        end: Outcome,
        to: &mut Audience<'_, A>,
    ) {
        if wait.queued {
            let thread = &self.threads[slot];
            self.locks.left(thread.process, wait.lock, thread.key.tid);
            to.tell(self, Change::WaitOver { thread: &self.threads[slot], wait, end });
        }
    }

    /// What a thread holds, waits for and polls is over, or not known any more.
    pub(super) fn drop_locks<A: Analysis>(
        &mut self,
        slot: Slot,
        why: Over,
        to: &mut Audience<'_, A>,
    ) {
        // The trace's end was reported of all threads before.
        if why != Over::Trace {
            to.tell(self, Change::Dropping { thread: &self.threads[slot], why });
        }
        let mut parked = std::mem::take(&mut self.parked);
        let of_tasks = parked.drop(&self.threads[slot], why, self);
        self.parked = parked;
        let thread = &mut self.threads[slot];
        for poll in thread.polls.clear() {
            // What its turn has taken is not known.
            self.turns.forget(thread.process, poll.task);
        }
        let bad = &mut self.tally.incomplete;
        let locks = of_tasks.iter().filter(|hold| !hold.is_semaphore()).count() as u64;
        match why {
            Over::Loss => bad.held_at_loss += locks,
            _ => bad.never_released += locks,
        }
        let wait = thread.locks.waiting().cloned();
        let mut holds = match why {
            Over::Loss => thread.locks.lose(bad),
            _ => thread.locks.end(bad),
        };
        match why {
            Over::Loss => thread.begun.lose(),
            Over::Exec => thread.begun.anew(self.now),
            Over::Thread | Over::Trace => {}
        }
        holds.extend(of_tasks);
        self.lose_holds(slot, &holds, why, to);
        if let Some(wait) = wait {
            self.wait_over(slot, &wait, Outcome::Over(why), to);
        }
    }

    /// The ends of these will not be recorded.
    pub(super) fn lose_holds<A: Analysis>(
        &mut self,
        slot: Slot,
        holds: &[Hold],
        why: Over,
        to: &mut Audience<'_, A>,
    ) {
        let (process, tid) = (self.threads[slot].process, self.threads[slot].key.tid);
        for hold in holds {
            match why {
                _ if hold.is_semaphore() => {}
                Over::Thread | Over::Trace => self.locks.abandoned(process, hold.lock, tid),
                Over::Exec | Over::Loss => _ = self.locks.released(process, hold.lock, tid),
            }
            to.tell(self, Change::HoldLost { thread: &self.threads[slot], hold });
        }
    }
}
