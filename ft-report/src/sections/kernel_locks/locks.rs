//! Waits by the lock of the kernel.

use std::cmp::Reverse;

use serde::Serialize;

use super::waits::{Sums, Waits};
use super::{MAX_KERNEL_GROUPS, label};
use crate::stats::{Groups, Key, OTHERS};
use ft_trace::ids::Name;
use ft_trace::tables::KernelLockWait;

/// Waits for one lock, or for those that one function wants.
#[derive(Clone, Debug, Serialize)]
pub struct KernelLock {
    /// The variable of the kernel; `None`: it is in allocated memory, and what has the same caller is one here.
    pub name: Option<String>,
    /// The function that wanted it; of a variable, one of them; `None` when not known.
    pub caller: Option<String>,
    /// Further functions that wanted it, at least.
    pub other_callers: u64,
    /// `mutex`, `spinlock`, …
    pub kind: String,
    /// The waits.
    #[serde(flatten)]
    pub waits: Waits,
    /// The thread of the longest.
    pub thread: String,
    /// That thread's id.
    pub tid: i32,
    /// When the longest began, CLOCK_MONOTONIC ns.
    pub longest_ts: i64,
}

/// A lock, its kind, and whether it is a variable.
type LockKey = (Name, Name, bool);

impl Key for LockKey {
    fn others(&self) -> Self {
        (OTHERS.into(), "".into(), true)
    }
}

#[derive(Debug, Default)]
struct OfLock {
    sums: Sums,
    caller: Option<Name>,
    other_callers: u64,
    longest: Option<(i64, i64, Name, i32)>,
}

impl OfLock {
    fn add(&mut self, r: &KernelLockWait) {
        self.sums.add(r);
        match (&self.caller, &r.caller) {
            (None, Some(caller)) => self.caller = Some(caller.clone()),
            (Some(known), Some(caller)) => self.other_callers += u64::from(known != caller),
            _ => {}
        }
        if self.longest.as_ref().is_none_or(|(dur, ..)| *dur < r.dur) {
            self.longest = Some((r.dur, r.ts.0, r.comm.clone(), r.tid.0));
        }
    }

    fn lock(mut self, (name, kind, is_variable): LockKey) -> KernelLock {
        let (_, longest_ts, thread, tid) = self.longest.unwrap_or((0, 0, "".into(), 0));
        // Of what is called by its address, no caller is known.
        let named = is_variable || self.caller.is_none();
        KernelLock {
            name: named.then(|| name.to_string()),
            caller: self.caller.map(|caller| caller.to_string()),
            other_callers: self.other_callers,
            kind: kind.to_string(),
            waits: self.sums.waits(),
            thread: thread.to_string(),
            tid,
            longest_ts,
        }
    }
}

/// Sums up waits by lock.
#[derive(Debug, Default)]
pub(super) struct Locks(Groups<MAX_KERNEL_GROUPS, LockKey, OfLock>);

impl Locks {
    pub(super) fn add(&mut self, r: &KernelLockWait) {
        self.0.entry((label(r), r.kind.clone(), r.name.is_some())).add(r);
    }

    /// The most time first.
    pub(super) fn finish(self) -> Vec<KernelLock> {
        self.0.into_ranked(
            |(key, sums)| sums.lock(key),
            |l| (Reverse(l.waits.total_ns), (l.name.clone(), l.caller.clone(), l.kind.clone())),
        )
    }
}
