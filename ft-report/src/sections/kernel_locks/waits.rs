//! Waits, summed up.

use serde::Serialize;

use crate::stats::{Distribution, Own, Tail};
use ft_analysis::Mark;
use ft_trace::tables::{Decomposition, KernelLockWait, KernelWaitEnd};

/// Waits, summed up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waits {
    /// Waits, of whatever end.
    pub waits: u64,
    /// Of these, lower bounds.
    pub doubtful: u64,
    /// Of these, given up.
    pub failed: u64,
    /// Of these, not over when the thread or the recording was.
    pub unfinished: u64,
    /// In all of them, ns.
    pub total_ns: i64,
    /// How long they are.
    #[serde(flatten)]
    pub tail: Tail,
    /// Where the time went: *running* is spinning.
    pub parts: Decomposition,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
}

/// Sums up waits.
#[derive(Debug, Default)]
pub(super) struct Sums {
    lengths: Distribution,
    waits: Waits,
}

impl Sums {
    pub(super) fn add(&mut self, r: &KernelLockWait) {
        let w = &mut self.waits;
        self.lengths.add(r.dur);
        w.waits += 1;
        w.doubtful += u64::from(r.mark == Mark::LowerBound);
        w.failed += u64::from(r.end == KernelWaitEnd::Failed);
        w.unfinished += u64::from(matches!(r.end, KernelWaitEnd::Thread | KernelWaitEnd::Trace));
        w.total_ns = w.total_ns.saturating_add(r.dur);
        w.agent_ns.add(r.agent_ns);
        if let Some(parts) = r.parts {
            w.parts += parts;
        }
    }

    /// What they sum up to.
    pub(super) fn waits(&mut self) -> Waits {
        Waits { tail: Tail::of(&mut self.lengths), ..std::mem::take(&mut self.waits) }
    }
}
