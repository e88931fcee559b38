//! Sums of waits: by lock, by place, by the thread that waited, and by the one to blame.

use serde::Serialize;

use super::free::Free;
use crate::stats::{Bins, Distribution, Own, Tail};
use ft_trace::tables::{Decomposition, LockWait};

/// Waits for one lock, or for locks of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockWaits {
    /// Process; 0 over all.
    pub pid: i32,
    /// Name of the lock; empty over all.
    pub lock: String,
    /// What the waiters wanted.
    pub kind: String,
    /// Waits.
    pub waits: u64,
    /// Sum, ns.
    pub total_ns: i64,
    /// Average, ns.
    pub mean_ns: f64,
    /// Percentiles.
    #[serde(flatten)]
    pub tail: Tail,
    /// Who waited longest.
    pub max_tid: i32,
    /// Histogram: (lower edge in ns, waits) of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
    /// What the threads to blame did.
    pub parts: Decomposition,
    /// Nobody was known to hold the lock, ns.
    pub no_holder_ns: i64,
    /// What the waiters did then.
    pub free: Free,
    /// Threads waited for each other, ns.
    pub cycle_ns: i64,
    /// Of all, the holder waited for a lock itself, ns.
    pub holder_waits_ns: i64,
    /// Of `total_ns`, while the threads to blame waited for a CPU, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
}

/// Waits of one place for one lock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlaceWaits {
    /// Process.
    pub pid: i32,
    /// Name of the lock.
    pub lock: String,
    /// Where it is acquired.
    pub place: String,
    /// Waits.
    pub waits: u64,
    /// Sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
    /// Who waited longest.
    pub max_tid: i32,
    /// Name of that thread.
    pub max_comm: String,
    /// The place that held the lock in the longest wait.
    pub held_at: Option<String>,
}

/// Waits of one thread for one lock, or for locks of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThreadWaits {
    /// Process.
    pub pid: i32,
    /// Name of the lock.
    pub lock: String,
    /// Thread that waited.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Waits.
    pub waits: u64,
    /// Sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
}

/// Waits that one thread is to blame for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RootWaits {
    /// Process.
    pub pid: i32,
    /// Name of the thread that was longest at the end of the chain of holders.
    pub comm: String,
    /// The lock that it held.
    pub lock: String,
    /// Where it had acquired that.
    pub place: String,
    /// Waits.
    pub waits: u64,
    /// How long it was to blame in these, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
}

/// What is counted of one lock while rows come.
#[derive(Debug, Default)]
pub(super) struct LockWaitSums {
    sums: LockWaits,
    lengths: Distribution,
    bins: Bins,
}

impl LockWaitSums {
    pub(super) fn add(&mut self, r: &LockWait) {
        let s = &mut self.sums;
        if r.dur > self.lengths.max() {
            s.max_tid = r.tid.0;
        }
        self.lengths.add(r.dur);
        self.bins.add(r.dur);
        if let Some(parts) = r.parts {
            s.parts += parts;
        }
        s.no_holder_ns += r.no_holder_ns;
        s.free.add(r);
        s.cycle_ns += r.cycle_ns;
        s.holder_waits_ns += r.holder_waits_ns;
        s.agent_ns.add(r.agent_ns);
    }

    pub(super) fn finish(mut self, pid: i32, lock: &str, kind: &str) -> LockWaits {
        LockWaits {
            pid,
            lock: lock.to_owned(),
            kind: kind.to_owned(),
            waits: self.lengths.count(),
            total_ns: self.lengths.sum(),
            mean_ns: self.lengths.mean(),
            tail: Tail::of(&mut self.lengths),
            histogram_100ns: self.bins.iter().collect(),
            ..self.sums
        }
    }
}
