//! In which calls about futexes threads are.
//!
//! Rows of calls come at their entry and tell their length. What happens until the return comes between, so a return is
//! put off until the first event that is not before it. A call that never returned ends with its thread.

use std::collections::BTreeSet;

use super::threads::Slot;
use super::{Change, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::LeanFutex;
use ft_trace::ids::ThreadKey;
use ft_trace::tables::FutexResult;

/// When the calls return that threads are in, by time: at most one of each thread that lives.
pub(super) type Returns = BTreeSet<(i64, ThreadKey)>;

/// When a call returns.
fn end(call: &LeanFutex) -> i64 {
    call.ts.0.saturating_add(call.dur.max(0))
}

impl World {
    /// A thread enters a call.
    pub(super) fn futex<A: Analysis>(&mut self, e: &LeanFutex, to: &mut Audience<'_, A>) {
        let Some(slot) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }) else { return };
        if self.threads[slot].calling.is_some() {
            // Only damaged data has two at a time.
            self.returned(slot, to);
        }
        self.threads[slot].calling = Some(*e);
        if e.result != FutexResult::Unfinished {
            self.returns.insert((end(e), self.threads[slot].key));
        }
        to.tell(self, Change::Called { thread: &self.threads[slot], call: e });
    }

    /// Whatever returns until `t` does so.
    #[inline]
    pub(super) fn return_until<A: Analysis>(&mut self, t: i64, to: &mut Audience<'_, A>) {
        while let Some(&(end, key)) = self.returns.first()
            && end <= t
        {
            self.now = self.now.max(end);
            match self.runs(key) {
                Some(slot) => self.returned(slot, to),
                None => drop(self.returns.pop_first()),
            }
        }
    }

    /// A thread's call is over.
    fn returned<A: Analysis>(&mut self, slot: Slot, to: &mut Audience<'_, A>) {
        let Some(call) = self.threads[slot].calling else { return };
        to.tell(self, Change::Returned { thread: &self.threads[slot], call: &call });
        self.forget_call(slot);
    }

    /// A thread is in no call.
    pub(super) fn forget_call(&mut self, slot: Slot) {
        let thread = &mut self.threads[slot];
        if let Some(call) = thread.calling.take() {
            self.returns.remove(&(end(&call), thread.key));
        }
    }
}
