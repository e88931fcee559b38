//! The calls in which a thread is, or a user-level thread (a fiber) that it runs: each has a stack of its own, and time passes in the one
//! that runs.

use std::collections::{HashMap, VecDeque};

use super::{Call, Time};

/// Calls within each other.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// The innermost last.
    pub(super) open: VecDeque<Call>,
    inside: HashMap<usize, Inside>,
    /// For how long it has run with a call.
    ran: Time,
}

/// Calls of one function.
#[derive(Debug)]
struct Inside {
    calls: usize,
    /// What `ran` was at the begin of the outermost.
    since: Time,
}

impl Stack {
    /// A call begins.
    pub(super) fn push(&mut self, call: Call) {
        let since = self.ran;
        let inside = self.inside.entry(call.function).or_insert(Inside { calls: 0, since });
        inside.calls += 1;
        self.open.push_back(call);
    }

    /// A call that is open no longer has ended; the total time of its function, if that was the outermost call of it.
    pub(super) fn ended(&mut self, call: Call) -> Option<Time> {
        let inside = self.inside.get_mut(&call.function)?;
        inside.calls -= 1;
        if inside.calls > 0 {
            return None;
        }
        let since = inside.since;
        self.inside.remove(&call.function);
        Some(self.ran.without(since))
    }

    /// Calls of a function in which it is.
    pub(super) fn calls_of(&self, function: usize) -> usize {
        self.inside.get(&function).map_or(0, |inside| inside.calls)
    }

    /// It has run for that long.
    pub(super) fn run(&mut self, time: Time) {
        self.ran += time;
    }
}
