//! Which locks a thread holds, how deep, and for how long (Feather-Trace, section 3).
//!
//! **Goal.** One row for each hold of a lock whose acquisition and release were both recorded.
//!
//! **Rule.** Per thread, a list of what it holds. An acquisition appends; its *depth* is the number of locks
//! on the list at that moment (paper, section 3: a request has depth *n* if *n* locks are already held). A
//! release takes the newest entry of its lock, wherever it stands, so locks need not be released in
//! reverse order. The critical section runs from the acquisition to the release; the wait does not belong
//! to it. Depth counts the holds that were recorded, and has a mark of its own: a lower bound where the thread may hold a lock whose
//! acquisition was not ([`super::begun`]).
//!
//! **Situations that give no row** are counted by reason, [`Incomplete`] (paper, section 3.2).
//! - *Released, never acquired*: acquired before the recording or during a loss.
//! - *Acquired, never released*: still held when the thread or the recording ended.
//! - *Records of this thread were lost*: what it held then may have been released meanwhile; forgotten.
//! - *Acquired again by its holder*: only a shared lock can be, so the release of the older hold is missing
//!   (its trigger was off, or the program jumped over it).
//!
//! **A semaphore** is a lock where one thread waits and posts; elsewhere it counts items or signals them,
//! and what is taken is not given back. So it makes a hold only if its thread posts it after taking it. It
//! never adds to the depth of a lock, and nothing about it is incomplete.
//!
//! **A condition wait** releases its lock and acquires it again: two holds, both marked. The time between
//! is a wait for the condition, not for the lock, and counts as no lock's wait.

use super::polls::TaskId;
use super::turns::Spell;
use ft_trace::Mark;
use ft_trace::ids::{Name, SiteId};
use ft_trace::tables::{LockKind, SliceOutcome};
use serde::{Deserialize, Serialize};

/// Holds and waits that were recorded in part, by reason. They are in no statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Incomplete {
    /// Released, but the acquisition was not recorded.
    pub release_only: u64,
    /// Acquired, but the thread or the recording ended before a release.
    pub never_released: u64,
    /// Held when records of the thread were lost.
    pub held_at_loss: u64,
    /// Acquired a second time without a release in between.
    pub acquired_again: u64,
    /// One of more than 256 locks held by one thread.
    pub too_many: u64,
    /// Waited for, but the acquisition was not recorded.
    pub wait_only: u64,
    /// Waited for, and given up: a time-out, or the lock refused.
    pub abandoned: u64,
    /// Waits for semaphores: nobody holds one, so nobody is to blame.
    pub semaphore_waits: u64,
}

impl Incomplete {
    /// Holds that are in no statistic (waits are not holds).
    pub fn holds(&self) -> u64 {
        self.release_only
            + self.never_released
            + self.held_at_loss
            + self.acquired_again
            + self.too_many
    }
}

/// The word of semaphores, in the names of sites.
pub(crate) const SEMAPHORE: &str = LockKind::Semaphore.word();

/// Locks that one thread can hold at a time; more comes from damaged data or releases that never record.
///
/// Limit: the oldest hold has no row and is counted (`too_many`); depths above 255 are too small accordingly.
/// Shown by: `memory_is_bounded` in `held/tests.rs`.
const MAX_HELD: usize = 256;

/// A hold that goes on.
#[derive(Clone, Debug)]
pub struct Hold {
    /// No two holds of a trace have the same.
    pub(crate) id: u64,
    pub(crate) began: Spell,
    pub(crate) lock: i64,
    /// `ft_user::layout::place_word` of the acquisition.
    pub(crate) word: i64,
    pub(crate) site: SiteId,
    pub(crate) kind: Name,
    pub(crate) depth: i32,
    pub(crate) depth_mark: Mark,
    pub(crate) wait_ns: i64,
    pub(crate) condition: bool,
    /// What its release tells of a time-slice extension.
    pub(crate) slice: SliceOutcome,
}

impl Hold {
    /// Whether it is of a semaphore.
    pub(crate) fn is_semaphore(&self) -> bool {
        &*self.kind == SEMAPHORE
    }
}

/// An acquisition, as recorded.
#[derive(Clone, Debug)]
pub(crate) struct Acquisition {
    pub(crate) id: u64,
    pub(crate) began: Spell,
    pub(crate) lock: i64,
    pub(crate) word: i64,
    pub(crate) site: SiteId,
    pub(crate) kind: Name,
    /// Mark of its depth.
    pub(crate) depth_mark: Mark,
}

/// A wait that goes on.
#[derive(Clone, Debug)]
pub struct Wait {
    pub(crate) ts: i64,
    pub(crate) lock: i64,
    /// As [`Hold::word`].
    pub(crate) word: i64,
    pub(crate) site: SiteId,
    pub(crate) kind: Name,
    /// The thread is in the queue of a lock; a semaphore has none.
    pub(crate) queued: bool,
    /// The task that began it.
    pub(crate) task: Option<TaskId>,
    /// The longest sleep in it of which there is a call chain: how long, and the chain.
    pub(crate) asleep: Option<(i64, i64)>,
}

/// What an acquisition has ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// The thread's wait, for this lock or another.
    pub(crate) wait: Option<Wait>,
    /// A hold without a release.
    pub(crate) hold: Option<Hold>,
}

/// What one thread holds and waits for.
#[derive(Debug, Default)]
pub(crate) struct Held {
    held: Vec<Hold>,
    wait: Option<Wait>,
    /// Lock that its condition wait released, and the kind of that hold.
    parked: Option<(i64, Name)>,
}

impl Held {
    /// The thread found a lock taken and begins to wait.
    pub(crate) fn wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    /// Something shows that the wait is over, if there is one; how it ended was not recorded.
    pub(crate) fn wait_over(&mut self, bad: &mut Incomplete) -> Option<Wait> {
        bad.wait_only += u64::from(self.wait.is_some());
        self.wait.take()
    }

    /// The thread slept for `dur` at the end of a call chain: in its wait, if there is one.
    pub(crate) fn slept(&mut self, dur: i64, stack: i64) {
        if let Some(wait) = &mut self.wait
            && wait.asleep.is_none_or(|(longest, _)| dur > longest)
        {
            wait.asleep = Some((dur, stack));
        }
    }

    /// The wait for `lock` ended without it.
    pub(crate) fn abandon(&mut self, lock: i64, bad: &mut Incomplete) -> Option<Wait> {
        let wait = self.wait.take_if(|w| w.lock == lock);
        bad.abandoned += u64::from(wait.is_some());
        wait
    }

    /// The wait for the lock whose queue it is in.
    pub(crate) fn queued(&self) -> Option<&Wait> {
        self.wait.as_ref().filter(|w| w.queued)
    }

    /// What it waits for.
    pub(crate) fn waiting(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// The thread has a lock.
    pub(crate) fn acquire(&mut self, a: Acquisition, bad: &mut Incomplete) -> Ended {
        let wait = self.wait.take();
        let waited = wait.as_ref().filter(|w| w.lock == a.lock).map(|w| a.began.ts - w.ts);
        bad.wait_only += u64::from(wait.is_some() && waited.is_none());
        let hold = self.hold(a, waited.unwrap_or(0), false, bad);
        Ended { wait, hold }
    }

    /// The thread has the lock of its condition wait again.
    pub(crate) fn wake(&mut self, mut a: Acquisition, bad: &mut Incomplete) -> Ended {
        if let Some((lock, kind)) = self.parked.take()
            && lock == a.lock
        {
            a.kind = kind;
        }
        Ended { wait: None, hold: self.hold(a, 0, true, bad) }
    }

    /// Returns a hold that the new one shows to be over.
    fn hold(
        &mut self,
        a: Acquisition,
        wait_ns: i64,
        condition: bool,
        bad: &mut Incomplete,
    ) -> Option<Hold> {
        let mut over = None;
        if !a.kind.ends_with("-read")
            && let Some(i) = self.held.iter().rposition(|h| h.lock == a.lock)
        {
            let hold = self.held.remove(i);
            bad.acquired_again += u64::from(!hold.is_semaphore());
            over = Some(hold);
        }
        if self.held.len() == MAX_HELD {
            let hold = self.held.remove(0);
            bad.too_many += u64::from(!hold.is_semaphore());
            over = Some(hold);
        }
        self.held.push(Hold {
            id: a.id,
            began: a.began,
            lock: a.lock,
            word: a.word,
            site: a.site,
            kind: a.kind,
            depth: self.locks().count() as i32,
            depth_mark: a.depth_mark,
            wait_ns,
            condition,
            slice: SliceOutcome::None,
        });
        over
    }

    /// Takes all that is held, to put back what stays.
    pub(crate) fn take_all(&mut self) -> Vec<Hold> {
        std::mem::take(&mut self.held)
    }

    /// These are held, too: by a task that the thread runs now.
    pub(crate) fn put_back(&mut self, holds: Vec<Hold>) {
        if self.held.is_empty() {
            self.held = holds;
        } else {
            self.held.extend(holds);
            self.held.sort_by_key(|hold| hold.id);
        }
    }

    /// What is held, without semaphores.
    pub(crate) fn locks(&self) -> impl DoubleEndedIterator<Item = &Hold> + Clone {
        self.held.iter().filter(|h| !h.is_semaphore())
    }

    /// What is held, semaphores too.
    pub(crate) fn all(&self) -> &[Hold] {
        &self.held
    }

    /// What was acquired last of what is held, be it a semaphore.
    pub(crate) fn last(&self) -> Option<&Hold> {
        self.held.last()
    }

    /// The lock that was acquired last of those that are held.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.locks().next_back().map(|h| h.lock)
    }

    /// The thread posts a semaphore; the hold that this ends, if it has taken it before.
    pub(crate) fn post(&mut self, semaphore: i64) -> Option<Hold> {
        let i = self.held.iter().rposition(|h| h.lock == semaphore)?;
        Some(self.held.remove(i))
    }

    /// The thread gives a lock back; the hold that this ends.
    pub(crate) fn release(&mut self, lock: i64, bad: &mut Incomplete) -> Option<Hold> {
        let Some(i) = self.held.iter().rposition(|h| h.lock == lock) else {
            bad.release_only += 1;
            return None;
        };
        Some(self.held.remove(i))
    }

    /// The thread gives a lock back to wait for a condition; the hold that this ends.
    pub(crate) fn park(&mut self, lock: i64, bad: &mut Incomplete) -> Option<Hold> {
        let mut hold = self.release(lock, bad)?;
        hold.condition = true;
        self.parked = Some((lock, hold.kind.clone()));
        Some(hold)
    }

    /// Records of the thread were lost: nothing is known of what it holds. Returns that.
    pub(crate) fn lose(&mut self, bad: &mut Incomplete) -> Vec<Hold> {
        bad.held_at_loss += self.locks().count() as u64;
        self.forget(bad)
    }

    /// The thread, or the recording, has ended. Returns what it held.
    pub(crate) fn end(&mut self, bad: &mut Incomplete) -> Vec<Hold> {
        bad.never_released += self.locks().count() as u64;
        self.forget(bad)
    }

    fn forget(&mut self, bad: &mut Incomplete) -> Vec<Hold> {
        bad.wait_only += u64::from(self.wait.is_some());
        std::mem::take(self).held
    }
}

#[cfg(test)]
mod tests;
