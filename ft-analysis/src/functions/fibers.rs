//! User-level threads: fibers, each with calls of its own, that threads run by turns.
//!
//! **Rule.** A switch that is told parks the calls of the fiber that the thread ran, and goes on with those of the one that it runs now;
//! time passes for a call only while its fiber runs. A fiber that another thread has run brings its calls along: what
//! they have taken there is in that thread's rows, what they take from now on in this one's.
//!
//! **A fiber's first call** can begin before the switch to it is told, since the call is what tells it. Such a begin does not fit the calls
//! of the fiber before: it lies above the innermost, or [`FAR`] below, or the thread
//! runs no fiber and no call is known. Its place is decided by the next event: directly followed by a
//! switch to a fiber without calls, it was that fiber's.
//!
//! **Situations.**
//! - *No fiber* (a switch to 0): the thread runs on its own stack.
//! - *The thread ends, or its events are lost*: so do all calls that its fibers have left open, without an end.
//! - *Too many calls are parked*: those of a fiber that is parked then have ended there (`too_many`).

use std::collections::HashMap;

use super::stack::Stack;
use super::{Call, Calls, Functions, Which};
use crate::world::{Began, Process, TaskId, Thread, World};
use ft_trace::ids::Tid;
use ft_user::layout::Frame;

/// Calls of fibers that a thread has parked.
///
/// Limit: the calls of a fiber that is parked then end there, and are counted (`too_many`); all rows of the thread are
/// `lower bound`s. A fiber whose thread is forgotten leaves its calls without an end there (`unfinished`, `censored`).
/// Shown by: not shown.
const MAX_PARKED: usize = 1 << 16;

/// Calls that a fiber takes to another thread; more end where they were.
///
/// Limit: they stay without an end where they were (`unfinished`, `censored`).
/// Shown by: not shown.
const MAX_MOVED: usize = 4096;

/// A call that lies so far below the one that made it, in units of 16 bytes, is on another stack: few functions have frames of a page.
const FAR: u64 = 4096 / 16;

/// The fibers of one thread.
#[derive(Debug, Default)]
pub(super) struct Fibers {
    /// Which it runs; `None`: its own stack.
    current: Option<TaskId>,
    parked: HashMap<Option<TaskId>, Stack>,
    /// Calls that are parked.
    calls: usize,
    /// A begin whose place is not decided.
    held: Option<(Which, Option<Frame>, Began)>,
}

impl Fibers {
    /// Takes away all parked calls.
    pub(super) fn all(&mut self) -> Vec<Stack> {
        (self.calls, self.current) = (0, None);
        self.parked.drain().map(|(_, stack)| stack).collect()
    }

    fn take(&mut self, fiber: Option<TaskId>) -> Option<Stack> {
        let stack = self.parked.remove(&fiber)?;
        self.calls -= stack.open.len();
        Some(stack)
    }
}

impl Calls {
    /// Waits with a begin whose place only the next event decides; false if that is clear.
    pub(super) fn hold(&mut self, which: &Which, frame: Option<Frame>, now: &Began) -> bool {
        self.begin_held();
        let Some(new) = frame else { return false };
        let fits = match self.stack.open.back().map(|call| call.frame) {
            // Of functions that are inlined into each other the frame is one.
            Some(Some(innermost)) => {
                (0..FAR).contains(&innermost.height().wrapping_sub(new.height()))
            }
            Some(None) => true,
            // A fiber that has told that it runs has made it; the thread's own stack may have calls that are not known.
            None => self.fibers.current.is_some(),
        };
        if !fits {
            self.fibers.held = Some((which.clone(), frame, *now));
        }
        !fits
    }

    /// The begin that was waited with was one of the calls that go on.
    pub(super) fn begin_held(&mut self) {
        if let Some((which, frame, at)) = self.fibers.held.take() {
            self.enter(which, frame, &at);
        }
    }

    /// Goes on with another fiber, which brings these calls along, if it does.
    fn change(&mut self, to: Option<TaskId>, brought: Option<Stack>, now: &Began) {
        if to == self.fibers.current {
            return self.begin_held();
        }
        let stack = brought.or_else(|| self.fibers.take(to)).unwrap_or_default();
        let held = self.fibers.held.take();
        // Before it tells that it runs, a fiber without calls may have begun its first.
        let (own, others) = match held {
            Some(begin) if to.is_some() && stack.open.is_empty() => (Some(begin), None),
            held => (None, held),
        };
        if let Some((which, frame, at)) = others {
            self.enter(which, frame, &at);
        }
        let at = own.as_ref().map_or(*now, |(_, _, at)| *at);
        self.settle(0, &at);
        self.last = at;
        let before = std::mem::replace(&mut self.stack, stack);
        self.park(before);
        self.fibers.current = to;
        if let Some((which, frame, at)) = own {
            self.enter(which, frame, &at);
        }
    }

    /// The fiber that it runs, runs no longer.
    fn park(&mut self, stack: Stack) {
        if stack.open.is_empty() {
            return;
        }
        if self.fibers.calls + stack.open.len() > MAX_PARKED {
            let present = std::mem::replace(&mut self.stack, stack);
            while let Some(call) = self.stack.open.pop_back() {
                self.sums[call.function].counts.too_many += 1;
                self.over(call);
            }
            self.stack = present;
            self.overflowed = true;
            return;
        }
        self.fibers.calls += stack.open.len();
        self.fibers.parked.insert(self.fibers.current, stack);
    }

    /// A fiber goes to another thread with its calls. What they have taken so far is told here.
    fn give(&mut self, fiber: TaskId) -> Option<Vec<(Which, Option<Frame>)>> {
        let mut stack = self.fibers.take(Some(fiber))?;
        if stack.open.len() > MAX_MOVED {
            let present = std::mem::replace(&mut self.stack, stack);
            self.drop_stack();
            self.stack = present;
            return None;
        }
        let open = std::mem::take(&mut stack.open);
        for &call in &open {
            if let Some(total) = stack.ended(call) {
                self.sums[call.function].total += total;
            }
        }
        let of = |call: &Call| (self.sums[call.function].which.clone(), call.frame);
        Some(open.iter().map(of).collect())
    }

    /// The calls that a fiber brings along.
    fn receive(&mut self, calls: Vec<(Which, Option<Frame>)>, now: &Began) -> Stack {
        let mut stack = Stack::default();
        for (which, frame) in calls {
            stack.push(Call { function: self.function(which, now), frame });
        }
        stack
    }
}

/// Which thread ran each fiber last.
pub(super) type Homes = HashMap<(Process, TaskId), Tid>;

impl Functions {
    /// A thread runs a fiber from now on, or none: 0.
    pub(super) fn switch(
        &mut self,
        thread: &Thread,
        (source, number): TaskId,
        now: &Began,
        world: &World,
    ) {
        let to = (number != 0).then_some((source, number));
        let Some(fiber) = to else {
            if let Some(calls) = self.threads.get(thread) {
                calls.change(None, None, now);
            }
            return;
        };
        let key = thread.key();
        let home = self.homes.get(&(thread.process, fiber)).copied();
        let elsewhere = home.filter(|tid| *tid != key.tid);
        let from = elsewhere.and_then(|tid| world.thread(key.pid, tid));
        let given = from.and_then(|from| self.threads.get(from)?.give(fiber));
        let calls = self.threads.of(thread);
        let brought = given.map(|given| calls.receive(given, now));
        calls.change(to, brought, now);
        if self.homes.len() >= MAX_PARKED {
            self.homes.clear();
        }
        self.homes.insert((thread.process, fiber), key.tid);
    }
}
