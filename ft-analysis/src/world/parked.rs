//! What was begun in tasks and goes on while no thread runs them: scopes, requests, holds of locks.
//!
//! **Rule.** When a thread leaves a task, what was begun in that goes with the task, and comes to the thread that runs it next.
//! So what a thread is in, what it holds, and how deep, is what its own code and the tasks that it runs have begun, and never
//! what another task on it has.
//!
//! **Situations.**
//! - *A task is dropped*: what was begun in it ends on the thread that drops it.
//! - *A lock is released elsewhere on the thread* that ran the holder last, be it in another task: its hold ends there. So does
//!   a scope or a request; but none of a fiber's, which has a stack of its own, in another fiber.
//! - *A task is left while it waits for a lock*: the queue of a lock is one of threads, so the wait is counted and has no row. It is
//!   no wait of what the thread runs next.
//! - *Events of a thread are lost*: so is what tasks have begun which it ran last.
//!
//! Memory: [`MAX_PARKED`] of each kind.

use std::collections::BTreeMap;

use super::locks::Process;
use super::polls::{Left, Poll, TaskId};
use super::threads::Slot;
use super::{Change, Hold, Outcome, Over, Spell, Thread, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::ids::ThreadKey;

/// Scopes, requests, or holds of tasks that no thread runs; further ones are not known any more.
///
/// Limit: further ones have no row and are counted (`too_many`).
/// Shown by: `of_more_scopes_than_are_kept_of_tasks_the_further_ones_are_counted`.
pub(crate) const MAX_PARKED: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };

/// Something that goes on.
pub(crate) trait GoesOn {
    /// When it began, and in which task.
    fn spell(&self) -> Option<&Spell>;
}

impl GoesOn for Hold {
    fn spell(&self) -> Option<&Spell> {
        Some(&self.began)
    }
}

/// What goes on in tasks that no thread runs.
#[derive(Debug)]
pub(crate) struct Parked<T> {
    by_task: BTreeMap<(Process, TaskId), (ThreadKey, Vec<T>)>,
    kept: usize,
}

impl<T> Default for Parked<T> {
    fn default() -> Self {
        Parked { by_task: BTreeMap::new(), kept: 0 }
    }
}

impl<T: GoesOn> Parked<T> {
    /// Takes what goes with the task of a poll that a thread has left. What there is no room for is returned.
    pub(crate) fn leave(
        &mut self,
        thread: &Thread,
        poll: &Poll,
        how: Left,
        of: &mut Vec<T>,
    ) -> Vec<T> {
        if of.is_empty() {
            return Vec::new();
        }
        let Some(task) = poll.parks_as(thread, how) else { return Vec::new() };
        let goes = |item: &mut T| {
            item.spell().and_then(Spell::task).is_some_and(|task| poll.takes(thread, how, task))
        };
        let gone: Vec<T> = of.extract_if(.., goes).collect();
        if gone.is_empty() || self.kept + gone.len() > MAX_PARKED {
            return gone;
        }
        self.kept += gone.len();
        let of_task = self.by_task.entry((thread.process, task));
        let (last, kept) = of_task.or_insert_with(|| (thread.key, Vec::new()));
        *last = thread.key;
        kept.extend(gone);
        Vec::new()
    }

    /// What a task brings along that a thread runs now, and the thread that has run it last.
    pub(crate) fn come(&mut self, thread: &Thread, task: TaskId) -> Option<(ThreadKey, Vec<T>)> {
        if self.kept == 0 {
            return None;
        }
        let (last, items) = self.by_task.remove(&(thread.process, task))?;
        self.kept -= items.len();
        Some((last, items))
    }

    /// Takes the newest of these `of` what a thread is in. If there is none, and the thread is in no fiber, the newest of tasks that it has
    /// run last.
    pub(crate) fn take(
        &mut self,
        thread: &Thread,
        of: &mut Vec<T>,
        is: impl Fn(&T) -> bool,
    ) -> Option<T> {
        match of.iter().rposition(&is) {
            Some(at) => Some(of.remove(at)),
            None if thread.polls.fiber().is_none() => self.one(thread, is),
            None => None,
        }
    }

    /// The newest of these of tasks that the thread has run last.
    fn one(&mut self, thread: &Thread, is: impl Fn(&T) -> bool) -> Option<T> {
        if self.kept == 0 {
            return None;
        }
        let tasks = self.by_task.range_mut(all_of(thread.process));
        let own = tasks.filter(|(_, (last, _))| *last == thread.key);
        let since = |item: &T| item.spell().map(|spell| spell.ts);
        let found = own.filter_map(|(task, (_, items))| {
            let at = items.iter().rposition(&is)?;
            Some((since(&items[at]), at, *task, items))
        });
        let (_, at, task, items) = found.max_by_key(|(since, ..)| *since)?;
        self.kept -= 1;
        let one = items.remove(at);
        if items.is_empty() {
            self.by_task.remove(&task);
        }
        Some(one)
    }

    /// Those of tasks that the thread has run last.
    pub(crate) fn of_thread(&self, thread: &Thread) -> impl Iterator<Item = &T> {
        let tasks = self.by_task.range(all_of(thread.process));
        tasks.filter(|(_, (last, _))| *last == thread.key).flat_map(|(_, (_, items))| items)
    }

    /// Takes away what has no end that will be recorded, when this becomes of all that a thread is in.
    pub(crate) fn drop(&mut self, thread: &Thread, why: Over, world: &World) -> Vec<T> {
        let all = match why {
            Over::Exec => true,
            Over::Thread => world.is_alone(thread),
            // At the end of the trace each thread ends, after this.
            Over::Trace | Over::Loss => false,
        };
        if self.kept == 0 || why == Over::Thread && !all {
            return Vec::new();
        }
        let own =
            |_: &(Process, TaskId), (last, _): &mut (ThreadKey, Vec<T>)| all || *last == thread.key;
        let gone = self.by_task.extract_if(all_of(thread.process), own);
        let gone: Vec<T> = gone.flat_map(|(_, (_, items))| items).collect();
        self.kept -= gone.len();
        gone
    }
}

/// The tasks of a process.
fn all_of(process: Process) -> std::ops::RangeInclusive<(Process, TaskId)> {
    (process, (i32::MIN, i64::MIN))..=(process, (i32::MAX, i64::MAX))
}

impl World {
    /// A thread has left a poll: what its task holds goes with it.
    pub(super) fn parks<A: Analysis>(
        &mut self,
        slot: Slot,
        poll: &Poll,
        how: Left,
        to: &mut Audience<'_, A>,
    ) {
        let thread = &mut self.threads[slot];
        let wait = thread.locks.waiting().and_then(|wait| wait.task);
        if wait.is_some_and(|task| poll.takes(thread, how, task))
            && let Some(wait) = thread.locks.wait_over(&mut self.tally.incomplete)
        {
            self.wait_over(slot, &wait, Outcome::Unknown, to);
        }
        let mut held = self.threads[slot].locks.take_all();
        let gone = self.parked.leave(&self.threads[slot], poll, how, &mut held);
        self.threads[slot].locks.put_back(held);
        self.tally.incomplete.too_many += gone.iter().filter(|h| !h.is_semaphore()).count() as u64;
        self.lose_holds(slot, &gone, Over::Loss, to);
    }

    /// A thread runs a task: what that holds, the thread does.
    pub(super) fn brings<A: Analysis>(
        &mut self,
        slot: Slot,
        task: TaskId,
        to: &mut Audience<'_, A>,
    ) {
        let thread = &self.threads[slot];
        let Some((last, holds)) = self.parked.come(thread, task) else { return };
        if last != thread.key {
            for hold in &holds {
                self.locks.moved(thread.process, hold.lock, (last.tid, thread.key.tid));
                let from = self.thread(last.pid, last.tid);
                to.tell(self, Change::HoldMoved { from, thread: &self.threads[slot], hold });
            }
        }
        self.threads[slot].locks.put_back(holds);
    }

    /// A thread is about to release a lock that is held by a task which it has run last.
    pub(super) fn comes_back(&mut self, slot: Slot, lock: i64) {
        let thread = &self.threads[slot];
        if thread.locks.all().iter().all(|hold| hold.lock != lock)
            && let Some(hold) = self.parked.one(thread, |hold| hold.lock == lock)
        {
            self.threads[slot].locks.put_back(vec![hold]);
        }
    }
}
