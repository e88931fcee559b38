//! What a waiter itself did while nobody held its lock.
//!
//! **Rule.** The blame of a lock counts for how long nobody was to blame, and the account of a waiter where its own time
//! went. The waiter is looked at when it leaves its CPU, when it is woken and when it has a CPU again; between two looks it
//! did one thing, and what the blame's count has grown by meanwhile was spent on that. So a wait costs one look for each
//! switch of its thread, however often the lock changes hands.
//!
//! **Situations.**
//! - *The lock was free for a part of the time between two looks*: with interrupts in it, which of them struck in that part is
//!   not known; they count as running here.
//! - *Several had the CPU while the waiter could run, and the lock was free for a part of that*: each had at least what
//!   cannot lie in the other part ([`Sums::merge_cut`](crate::world::Sums)).

use crate::world::{Shares, Wake};
use ft_trace::ids::{Name, Tid};
use ft_trace::tables::Decomposition;

/// How long nobody was to blame for the waits for a lock, and since when nobody holds it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Free {
    /// In all.
    pub(super) ns: i64,
    /// None while somebody holds it.
    pub(super) since: Option<i64>,
}

/// A waiter's own time while its lock was free, by what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Did {
    pub(super) asleep_ns: i64,
    pub(super) runnable_ns: i64,
    pub(super) running_ns: i64,
    pub(super) unknown_ns: i64,
}

impl Did {
    fn of(parts: Decomposition) -> Did {
        Did {
            asleep_ns: parts.blocked_ns,
            runnable_ns: parts.preempted_ns + parts.dispatch_ns,
            running_ns: parts.running_ns + parts.interrupts_ns(),
            unknown_ns: parts.unexplained_ns,
        }
    }

    /// Of time in which the thread did one thing and was perhaps lost from sight, so much.
    fn of_part(parts: Decomposition, ns: i64) -> Did {
        let did = Did::of(parts);
        let longest = did.asleep_ns.max(did.runnable_ns).max(did.running_ns).max(did.unknown_ns);
        match longest {
            n if n == did.asleep_ns => Did { asleep_ns: ns, ..Did::default() },
            n if n == did.runnable_ns => Did { runnable_ns: ns, ..Did::default() },
            n if n == did.running_ns => Did { running_ns: ns, ..Did::default() },
            _ => Did { unknown_ns: ns, ..Did::default() },
        }
    }

    fn add(&mut self, other: Did) {
        self.asleep_ns += other.asleep_ns;
        self.runnable_ns += other.runnable_ns;
        self.running_ns += other.running_ns;
        self.unknown_ns += other.unknown_ns;
    }
}

/// A wake-up of a waiter for the lock that was free.
#[derive(Clone, Debug)]
pub(super) struct Woken {
    pub(super) by: Tid,
    pub(super) comm: Name,
    /// From when the lock was free until then.
    pub(super) after_ns: i64,
}

/// One waiter, from the begin of its wait on.
#[derive(Debug)]
pub(super) struct Own {
    begun: i64,
    at: i64,
    account: Decomposition,
    free_ns: i64,
    pub(super) did: Did,
    /// Who had the CPU while it could run and the lock was free.
    pub(super) behind: Shares,
    /// The last time, if the lock was free from before it until the waiter ran.
    pub(super) woken: Option<Woken>,
}

impl Own {
    /// The wait begins.
    pub(super) fn new(now: i64, account: Decomposition, free: Free) -> Own {
        let (did, behind) = (Did::default(), Shares::default());
        Own { begun: now, at: now, account, free_ns: free.ns, did, behind, woken: None }
    }

    /// The waiter has done one thing until now; of how long, and for how much of that nobody was to blame.
    pub(super) fn look(&mut self, now: i64, account: Decomposition, free: Free) -> (i64, i64) {
        let (all, ns) = (now - self.at, free.ns - self.free_ns);
        let parts = account - self.account;
        self.did.add(if ns == all { Did::of(parts) } else { Did::of_part(parts, ns) });
        (self.at, self.account, self.free_ns) = (now, account, free.ns);
        (all, ns)
    }

    /// The waiter has a CPU again.
    pub(super) fn runs(
        &mut self,
        (all, ns): (i64, i64),
        free: Free,
        shares: &Shares,
        wake: Option<&Wake>,
    ) {
        if ns > 0 {
            self.behind.merge_cut(shares, ns, all);
        }
        let Some(wake) = wake else { return };
        // What was free before the wait is no loss of its own.
        let since = free.since.map(|since| since.max(self.begun));
        self.woken = since.filter(|since| *since <= wake.ts).map(|since| Woken {
            by: wake.waker_tid,
            comm: wake.waker_comm.clone(),
            after_ns: wake.ts - since,
        });
    }
}
