//! What threads are in whose end is known at the begin: calls about futexes, and waits for locks of the kernel.
//!
//! Rows of both come at their begin and tell their length. What happens until the end comes between, so the end is put off
//! until the first event that is not before it. A call or a wait that never ended ends with its thread.

use std::collections::BTreeSet;

use super::threads::Slot;
use super::{Change, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::{LeanContention, LeanFutex};
use ft_trace::ids::ThreadKey;
use ft_trace::tables::{ContentionEnd, FutexResult};

/// Waits for locks of the kernel that enclose each other, of one thread. It has a few, with those of the interrupts on top of
/// it; damaged data can have more.
///
/// Limit: cannot be reached, like `MAX_ENCLOSED`. In damaged data the outermost ends when one too many begins.
/// Shown by: `more_waits_than_can_enclose_each_other_end_the_outermost`.
const MAX_WAITS: usize = 16;

/// What ends: a call, or a wait of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Wait(u64),
    Call,
}

/// When it ends, by time: of each thread that lives, at most a call and [`MAX_WAITS`].
pub(super) type Returns = BTreeSet<(i64, ThreadKey, What)>;

/// When something ends that is so long.
fn end(ts: i64, dur: i64) -> i64 {
    ts.saturating_add(dur.max(0))
}

impl World {
    /// A thread enters a call.
    pub(super) fn futex<A: Analysis>(&mut self, e: &LeanFutex, to: &mut Audience<'_, A>) {
        let Some(slot) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }, to) else { return };
        if self.threads[slot].calling.is_some() {
            // Only damaged data has two at a time.
            self.returned(slot, to);
        }
        self.threads[slot].calling = Some(*e);
        if e.result != FutexResult::Unfinished {
            self.returns.insert((end(e.ts.0, e.dur), self.threads[slot].key, What::Call));
        }
        to.tell(self, Change::Called { thread: &self.threads[slot], call: e });
    }

    /// A thread begins to wait for a lock of the kernel.
    pub(super) fn contention<A: Analysis>(&mut self, e: &LeanContention, to: &mut Audience<'_, A>) {
        let Some(slot) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }, to) else {
            self.tally.kernel_waits_of_others += 1;
            return;
        };
        let end = match e.end {
            ContentionEnd::EndOnly => {
                self.tally.kernel_waits_without_begin += 1;
                return;
            }
            ContentionEnd::Unfinished => i64::MAX,
            _ => end(e.ts.0, e.dur),
        };
        self.threads[slot].spent.waits.contends(e.ts.0, end, &e.kind);
        if let &[(end, id), ..] = &self.threads[slot].contends[..]
            && self.threads[slot].contends.len() == MAX_WAITS
        {
            self.contended(slot, end, id, to);
        }
        self.kernel_waits += 1;
        let id = self.kernel_waits;
        self.threads[slot].contends.push((end, id));
        self.returns.insert((end, self.threads[slot].key, What::Wait(id)));
        to.tell(self, Change::Contends { thread: &self.threads[slot], wait: e, id });
    }

    /// Whatever ends until `t` does so.
    #[inline]
    pub(super) fn return_until<A: Analysis>(&mut self, t: i64, to: &mut Audience<'_, A>) {
        while let Some(&(end, key, what)) = self.returns.first()
            && end <= t
        {
            self.now = self.now.max(end);
            match (self.runs(key, to), what) {
                (Some(slot), What::Call) => self.returned(slot, to),
                (Some(slot), What::Wait(id)) => self.contended(slot, end, id, to),
                (None, _) => drop(self.returns.pop_first()),
            }
        }
    }

    /// A thread's call is over.
    fn returned<A: Analysis>(&mut self, slot: Slot, to: &mut Audience<'_, A>) {
        let Some(call) = self.threads[slot].calling else { return };
        to.tell(self, Change::Returned { thread: &self.threads[slot], call: &call });
        self.forget_call(slot);
    }

    /// A thread's wait is over.
    fn contended<A: Analysis>(&mut self, slot: Slot, end: i64, id: u64, to: &mut Audience<'_, A>) {
        let thread = &mut self.threads[slot];
        thread.contends.retain(|(_, other)| *other != id);
        self.returns.remove(&(end, thread.key, What::Wait(id)));
        to.tell(self, Change::Contended { thread: &self.threads[slot], id });
    }

    /// A thread is in no call and in no wait.
    pub(super) fn forget_returns(&mut self, slot: Slot) {
        self.forget_call(slot);
        let thread = &mut self.threads[slot];
        for (end, id) in std::mem::take(&mut thread.contends) {
            self.returns.remove(&(end, thread.key, What::Wait(id)));
        }
    }

    fn forget_call(&mut self, slot: Slot) {
        let thread = &mut self.threads[slot];
        if let Some(call) = thread.calling.take() {
            self.returns.remove(&(end(call.ts.0, call.dur), thread.key, What::Call));
        }
    }
}
