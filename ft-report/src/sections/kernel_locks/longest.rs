//! The longest waits.

use serde::Serialize;

use super::label;
use ft_analysis::Mark;
use ft_trace::tables::{Decomposition, KernelLockWait, KernelWaitEnd};

/// One of the longest waits.
#[derive(Clone, Debug, Serialize)]
pub struct LongWait {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// The lock, as in the other tables.
    pub lock: String,
    /// Its kind.
    pub kind: String,
    /// How it ended.
    pub end: KernelWaitEnd,
    /// Where the time went.
    pub parts: Option<Decomposition>,
    /// Who woke it.
    pub waker: Option<String>,
    /// That thread's id.
    pub waker_tid: Option<i32>,
    /// The lock of the application that it held.
    pub hold: Option<String>,
    /// The request that it was in.
    pub request: Option<String>,
    /// How sure it is.
    pub mark: Mark,
}

impl From<&KernelLockWait> for LongWait {
    fn from(r: &KernelLockWait) -> Self {
        LongWait {
            ts: r.ts.0,
            dur_ns: r.dur,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            lock: label(r).to_string(),
            kind: r.kind.to_string(),
            end: r.end,
            parts: r.parts,
            waker: r.waker_comm.as_ref().map(ToString::to_string),
            waker_tid: r.waker_tid,
            hold: r.hold_name.as_ref().map(ToString::to_string),
            request: r.request.as_ref().map(ToString::to_string),
            mark: r.mark,
        }
    }
}
