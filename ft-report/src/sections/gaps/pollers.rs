//! The gaps of each polling thread, by cause.

use serde::Serialize;

use crate::stats::{Bins, Distribution, OTHERS, Own, Tail};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::tables::{Decomposition, Gap};

/// Causes, in the order of the tables.
pub(super) const CAUSES: [&str; 8] = [
    "switched-out",
    "blocked",
    "hardirq",
    "softirq",
    "vector",
    "steal",
    "unexplained",
    "no account",
];

/// The gaps of one thread.
#[derive(Clone, Debug, Serialize)]
pub struct Poller {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Gaps.
    pub gaps: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// Histogram: (lower edge in ns, gaps) of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
    /// What the gap time consisted of.
    pub parts: Decomposition,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// By cause.
    pub causes: Vec<GapCauseSum>,
}

/// Gaps of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct GapCauseSum {
    /// Cause; `no account` without a kernel's account.
    pub cause: &'static str,
    /// Gaps.
    pub gaps: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
}

/// The cause as one of [`CAUSES`].
pub(super) fn cause(gap: &Gap) -> usize {
    let known = gap.cause.and_then(|c| CAUSES.iter().position(|k| *k == c.word()));
    known.unwrap_or(CAUSES.len() - 1)
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) gaps: u64,
    pub(super) total_ns: i64,
    pub(super) max_ns: i64,
    pub(super) agent_ns: Own,
}

impl Sum {
    pub(super) fn add(&mut self, r: &Gap) {
        let ns = r.dur;
        self.gaps += 1;
        self.agent_ns.add(r.agent_ns);
        // An application may claim gaps that overlap, and so have a larger sum than there was time.
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }
}

#[derive(Debug, Default)]
pub(super) struct PollerSums {
    pub(super) comm: Option<Name>,
    pub(super) gaps: Distribution,
    pub(super) bins: Bins,
    pub(super) parts: Decomposition,
    pub(super) agent_ns: Own,
    pub(super) causes: [Sum; CAUSES.len()],
}

pub(super) fn poller(((pid, tid), mut c): ((Pid, Tid), PollerSums)) -> Poller {
    let causes = CAUSES.into_iter().zip(c.causes).filter(|(_, s)| s.gaps > 0);
    let causes = causes.map(|(cause, s)| GapCauseSum {
        cause,
        gaps: s.gaps,
        total_ns: s.total_ns,
        max_ns: s.max_ns,
    });
    Poller {
        pid: pid.0,
        tid: tid.0,
        comm: match (tid, c.comm) {
            (Tid(0), _) => OTHERS.to_owned(),
            (_, comm) => comm.as_deref().unwrap_or_default().to_owned(),
        },
        gaps: c.gaps.count(),
        total_ns: c.gaps.sum(),
        tail: Tail::of(&mut c.gaps),
        histogram_100ns: c.bins.iter().collect(),
        parts: c.parts,
        agent_ns: c.agent_ns,
        causes: causes.collect(),
    }
}
