//! Who had the CPU instead of holders.

use serde::Serialize;

use crate::document::{Share, Text, Thread};
use crate::stats::Own;
use crate::text;
use ft_trace::tables::PreemptionCause;

/// Sums of one thread that had the CPU instead, by its name, for one cause.
#[derive(Clone, Debug, Serialize)]
pub struct Preemptor {
    /// Name; empty when not known.
    pub comm: String,
    /// Why the holders did not run.
    pub cause: PreemptionCause,
    /// Thread; 0: the idle task; null when several have the name, or when it is not known.
    pub tid: Option<i32>,
    /// Kernel priority, when it last did it.
    pub prio: Option<i32>,
    /// Times that it had the CPU longest.
    pub times: u64,
    /// Sum of these times, ns.
    pub total_ns: i64,
    /// Of the sum, what it had the CPU itself.
    pub own_ns: i64,
    /// Longest time, ns.
    pub max_ns: i64,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Delay of the waiters for all locks that were held, ns.
    pub delayed_ns: i64,
}

impl Preemptor {
    pub(super) fn new(cause: PreemptionCause, tid: Option<i32>) -> Preemptor {
        Preemptor {
            comm: String::new(),
            cause,
            tid,
            prio: None,
            times: 0,
            total_ns: 0,
            own_ns: 0,
            max_ns: 0,
            agent_ns: Own::default(),
            delayed_ns: 0,
        }
    }

    /// As a thread.
    pub(super) fn thread(&self) -> Thread {
        Thread::of(self.tid, Some(&self.comm))
    }

    /// What kept the holders from running for `cause_ns` of `total_ns`, and how long with this thread.
    pub(in crate::sections) fn held_up(&self, cause_ns: i64, total_ns: i64) -> Text {
        text!(
            "{} of it {} ({} where {} had the CPU longest)",
            Share(cause_ns, total_ns),
            match self.cause {
                PreemptionCause::Preempted => "preempted",
                PreemptionCause::Woken => "woken and waiting for a CPU",
            },
            Share(self.total_ns, total_ns),
            self.thread()
        )
    }
}
