//! Requests that go on: those of a thread, and what becomes of those of a key ([`keyed`](super::keyed)).

use ft_trace::ids::{Name, ThreadKey};

use super::Requests;
use super::keyed::Key;
use super::probes::Probed;
use crate::analysis::Analysis;
use crate::scopes::MAX_OPEN;
use crate::world::{GoesOn, Left, Over, Poll, Spell, TaskId, Thread, World};

/// A request that goes on, or a scope within one.
#[derive(Debug)]
pub(super) struct Open {
    /// Name of the scope, of the event that begins it, or of what is probed.
    pub(super) name: Name,
    /// What was asked for; `None`: an outermost scope, or a call of what is probed.
    pub(super) asked: Option<usize>,
    /// It is a scope that is no request.
    pub(super) inner: bool,
    pub(super) scope: bool,
    pub(super) probe: Option<Probed>,
    /// It began in the poll of a task.
    pub(super) in_task: bool,
    /// Who began it, or was woken then; 0: an interrupt, whichever thread that struck.
    pub(super) thread: ThreadKey,
    pub(super) comm: Name,
    /// When it began, CLOCK_MONOTONIC ns.
    pub(super) ts: i64,
    /// Since when a cause would have counted in its place, had it been recorded; of what is no reaction, when it began.
    pub(super) oldest_since: i64,
    /// The account of its thread, or task, then; `None`: that has not begun it itself.
    pub(super) began: Option<Spell>,
    /// Its place among those that go on.
    pub(super) nth: u64,
}

impl GoesOn for Open {
    fn spell(&self) -> Option<&Spell> {
        self.began.as_ref()
    }
}

impl Requests {
    /// A thread runs a task, or drops it: it is in what that has begun.
    pub(super) fn comes(&mut self, thread: &Thread, task: TaskId) {
        if let Some((_, open)) = self.parked.come(thread, task) {
            self.threads.of(thread).extend(open);
        }
    }

    /// A thread has left a poll, and what its task has begun.
    pub(super) fn leaves(&mut self, thread: &Thread, poll: &Poll, how: Left) {
        let Some(open) = self.threads.get(thread) else { return };
        for lost in self.parked.leave(thread, poll, how, open) {
            self.counts.unpaired.too_many += u64::from(!lost.inner);
            self.forget(&lost);
        }
    }

    pub(super) fn begins(
        &mut self,
        thread: &Thread,
        name: &Name,
        asked: Option<usize>,
        world: &World,
    ) -> Open {
        self.begun += 1;
        Open {
            name: name.clone(),
            asked,
            inner: false,
            scope: false,
            probe: None,
            in_task: thread.polls.innermost().is_some(),
            thread: thread.key,
            comm: thread.comm.clone(),
            ts: world.now(),
            oldest_since: world.now(),
            began: Some(Spell::now(thread, world)),
            nth: self.begun,
        }
    }

    /// It goes on, unless it is no request. Without a kernel stream nobody asks what threads do meanwhile.
    pub(super) fn goes_on(&mut self, open: &Open, world: &World) {
        if !open.inner && world.context().has_kernel() {
            self.open.insert((open.ts, open.nth));
        }
    }

    /// It goes on no longer.
    pub(super) fn forget(&mut self, open: &Open) {
        self.open.remove(&(open.ts, open.nth));
        if !self.follows() {
            self.history.clear();
        }
    }

    pub(super) fn push(&mut self, thread: &Thread, open: Open, world: &World) {
        self.goes_on(&open, world);
        let all = self.threads.of(thread);
        let oldest = (all.len() == MAX_OPEN).then(|| all.remove(0));
        all.push(open);
        if let Some(oldest) = oldest {
            self.counts.unpaired.too_many += u64::from(!oldest.inner);
            self.forget(&oldest);
        }
    }

    /// The newest of these in which a thread is.
    pub(super) fn take(&mut self, thread: &Thread, is: impl Fn(&Open) -> bool) -> Option<Open> {
        self.parked.take(thread, self.threads.of(thread), is)
    }

    pub(super) fn push_keyed(&mut self, key: Key, open: Open, world: &World) {
        self.goes_on(&open, world);
        if let Some((kind, oldest)) = self.keyed.push(key, open) {
            match self.reactions.get_mut(&kind) {
                Some(reactions) => reactions.too_many += 1,
                None => self.counts.unpaired.too_many += 1,
            }
            self.forget(&oldest);
        }
    }

    /// What a thread is in has no end that will be recorded; but the kernel tells of calls of probed functions, whatever of
    /// the thread's own events is lost.
    pub(super) fn dropped(&mut self, thread: &Thread, why: Over, world: &World) {
        let mut open = self.remove(thread, |open| why != Over::Loss || open.probe.is_none());
        open.extend(self.parked.drop(thread, why, world));
        let n = open.iter().filter(|open| !open.inner).count() as u64;
        self.counts.unpaired.dropped(n, why);
        open.iter().for_each(|open| self.forget(open));
    }

    /// Takes away those that a thread is in and that `gone` says so of, in their order.
    pub(super) fn remove(&mut self, thread: &Thread, gone: impl Fn(&Open) -> bool) -> Vec<Open> {
        let Some(open) = self.threads.get(thread) else { return Vec::new() };
        open.extract_if(.., |open| gone(open)).collect()
    }
}
