//! What could be spared, summed over holds and over waits.

use serde::Serialize;

use crate::stats::Own;
use ft_analysis::Mark;
use ft_trace::tables::{GrantBar, LockWait, WhatIf};

/// Lengths of time-slice extensions, ns: the least, which is what Linux 7.0 grants by default, and the most
/// (Documentation/userspace-api/rseq.rst), with two between.
pub(super) const GRANTS_NS: [i64; 4] = [5_000, 10_000, 20_000, 50_000];

/// Waits for locks, and what all holders of their chains having a CPU of their own spares of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainSums {
    /// Waits of which it is known.
    pub waits: u64,
    /// Of these, with more than one holder in a row.
    pub chained: u64,
    /// How long they lasted, ns.
    pub waited_ns: i64,
    /// What is spared of that, at most, ns.
    pub own_cpu_ns: i64,
    /// Waits of which it is not known: records are missing.
    pub unknown: u64,
}

impl ChainSums {
    pub(super) fn add(&mut self, r: &LockWait) {
        match r.own_cpu_ns.filter(|_| r.mark <= Mark::Disturbed) {
            Some(ns) => {
                self.waits += 1;
                self.chained += u64::from(r.chain > 1);
                self.waited_ns += r.dur;
                self.own_cpu_ns += ns;
            }
            None => self.unknown += 1,
        }
    }
}

/// Sums over holds whose holder could have run and did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// How many.
    pub holds: u64,
    /// Of these, for reading: of what would have been spared behind them nothing is known.
    pub for_reading: u64,
    /// Time in which the holders could run and did not; of nested holds each counts, ns.
    pub lost_ns: i64,
    /// Of this, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Holds behind which somebody waited until the release.
    pub waited_for: u64,
    /// Waiters of all of them. A thread whose wait is behind several holds, one after the other, counts for each.
    pub waiters: u64,
    /// How long they had waited then, from when the holder had no CPU for the first time, ns.
    pub waited_ns: i64,
    /// What keeps extensions from letting holds end.
    pub barred: Barred,
    /// What an extension of each length spares, at most.
    pub grants: Vec<Granted>,
    /// Of the waiters, those with a real-time priority higher than the holder's.
    pub urgent_waiters: u64,
    /// How long these had waited, counted as `waited_ns`.
    pub urgent_ns: i64,
    /// What inherited priority spares of that, at most, ns.
    pub inherited_ns: i64,
    /// What a priority above all ordinary threads spares, at most, ns.
    pub prioritized_ns: i64,
    /// What a CPU of its own spares, at most, ns.
    pub own_cpu_ns: i64,
}

/// Holds that no extension can let end, by the first reason that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Barred {
    /// They slept.
    pub slept: u64,
    /// They were in the kernel when they lost the CPU.
    pub in_kernel: u64,
    /// They made a system call afterwards.
    pub called: u64,
}

/// What extensions of one length do, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Granted {
    /// Length, ns.
    pub grant_ns: i64,
    /// Holds that end in it.
    pub ended: u64,
    /// What is spared behind them, ns.
    pub spared_ns: i64,
}

/// Sums of one lock, or of locks of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockSums {
    /// Process.
    pub pid: i32,
    /// Name of the lock.
    pub lock: String,
    /// Its kind.
    pub kind: String,
    /// What they are.
    #[serde(flatten)]
    pub sums: Sums,
}

impl Sums {
    pub(super) fn add(&mut self, r: &WhatIf) {
        let parts = r.parts.unwrap_or_default();
        let count = |n: Option<i32>| u64::try_from(n.unwrap_or(0)).unwrap_or(0);
        self.holds += 1;
        self.for_reading += u64::from(r.waiters.is_none());
        self.lost_ns += parts.runnable_ns();
        self.agent_ns.add(r.agent_ns);
        self.waited_for += u64::from(count(r.waiters) > 0);
        self.waiters += count(r.waiters);
        self.waited_ns += r.waited_ns.unwrap_or(0);
        self.grant(r.bar, parts.running_ns, r.run_on_ns.unwrap_or(0));
        self.urgent_waiters += count(r.urgent);
        self.urgent_ns += r.urgent_ns.unwrap_or(0);
        self.inherited_ns += r.inherited_ns.unwrap_or(0);
        self.prioritized_ns += r.prioritized_ns.unwrap_or(0);
        self.own_cpu_ns += r.own_cpu_ns.unwrap_or(0);
    }

    fn grant(&mut self, bar: GrantBar, needed_ns: i64, spared_ns: i64) {
        if self.grants.is_empty() {
            let new = |grant_ns| Granted { grant_ns, ..Granted::default() };
            self.grants = GRANTS_NS.map(new).into();
        }
        match bar {
            GrantBar::Sleep => self.barred.slept += 1,
            GrantBar::Kernel => self.barred.in_kernel += 1,
            GrantBar::Call => self.barred.called += 1,
            GrantBar::Nothing => {
                for grant in self.grants.iter_mut().filter(|grant| needed_ns <= grant.grant_ns) {
                    grant.ended += 1;
                    grant.spared_ns += spared_ns;
                }
            }
        }
    }

    /// What an extension of this length spares.
    pub(super) fn spared_by(&self, grant_ns: i64) -> i64 {
        let same = self.grants.iter().find(|grant| grant.grant_ns == grant_ns);
        same.map_or(0, |grant| grant.spared_ns)
    }
}
