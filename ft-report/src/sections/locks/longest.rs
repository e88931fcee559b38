//! The longest holds.

use serde::Serialize;

use crate::document::{Interval, Lock, Place, Table, Thread};
use crate::stats::{Own, own, parts};
use ft_analysis::Mark;
use ft_trace::tables::{CriticalSection, Decomposition};

/// One of the longest holds.
#[derive(Clone, Debug, Serialize)]
pub struct LongHold {
    /// Acquisition, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Address of the lock.
    #[serde(skip)]
    pub address: i64,
    /// Lock.
    pub lock: String,
    /// Its kind.
    pub kind: String,
    /// Where it was acquired.
    pub place: String,
    /// Holder.
    pub tid: i32,
    /// Locks held already.
    pub depth: i32,
    /// Where the time went.
    pub parts: Option<Decomposition>,
    /// Who ran most while the holder was preempted.
    pub preemptor: Option<String>,
    /// That thread's id.
    pub preemptor_tid: Option<i32>,
    /// How long that thread had the CPU meanwhile, ns.
    pub preemptor_ns: Option<i64>,
    /// Of `dur_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// How sure it is.
    pub mark: Mark,
}

impl From<&CriticalSection> for LongHold {
    fn from(r: &CriticalSection) -> Self {
        LongHold {
            ts: r.ts.0,
            dur_ns: r.dur,
            address: r.lock,
            lock: r.lock_name.to_string(),
            kind: r.kind.to_string(),
            place: r.place.to_string(),
            tid: r.tid.0,
            depth: r.depth,
            parts: r.parts,
            preemptor: r.preemptor_comm.as_ref().map(ToString::to_string),
            preemptor_tid: r.preemptor_tid,
            preemptor_ns: r.preemptor_ns,
            agent_ns: Own(r.agent_ns),
            mark: r.mark,
        }
    }
}

impl LongHold {
    /// Where it lies in the trace.
    pub(in crate::sections) fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: Some(self.address) }
    }

    /// Who preempted the holder longest; nobody, where it was not preempted.
    pub(in crate::sections) fn preemptor(&self) -> Option<Thread> {
        let preempted = self.parts.is_some_and(|p| p.preempted_ns > 0) || self.preemptor.is_some();
        preempted.then(|| Thread::of(self.preemptor_tid, self.preemptor.as_deref()))
    }
}

/// The table of them.
pub(super) fn table(holds: &[LongHold], decomposed: bool) -> Table {
    let t = Table::of(holds)
        .marks(|h| h.mark)
        .column("lock", |h| Lock::named(&h.lock))
        .column("place", |h| Place(&h.place))
        .column("hold", |h| h.interval())
        .when(decomposed, |t| {
            parts::durations(t, |h| h.parts).column("preemptor", |h| h.preemptor())
        });
    own::beside(t, |h| (h.agent_ns, h.dur_ns)).titled("The longest holds")
}
