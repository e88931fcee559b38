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

/// Of time in which a thread did one thing and was perhaps lost from sight, so much: as what it did longest.
fn part_of(time: Decomposition, ns: i64) -> Decomposition {
    let (asleep, unknown) = (time.blocked_ns, time.unexplained_ns);
    let runnable = time.runnable_ns();
    let running = time.running_ns + time.interrupts_ns();
    let mut part = Decomposition::default();
    *match asleep.max(runnable).max(running).max(unknown) {
        n if n == asleep => &mut part.blocked_ns,
        n if n == runnable => &mut part.preempted_ns,
        n if n == running => &mut part.running_ns,
        _ => &mut part.unexplained_ns,
    } = ns;
    part
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
    /// Its time while the lock was free. What is told apart is how long it was asleep, could run (*preempted* or
    /// *dispatch*), ran (with interrupts), and what is not known.
    pub(super) did: Decomposition,
    /// Who had the CPU while it could run and the lock was free.
    pub(super) behind: Shares,
    /// The last time, if the lock was free from before it until the waiter ran.
    pub(super) woken: Option<Woken>,
}

impl Own {
    /// The wait begins.
    pub(super) fn new(now: i64, account: Decomposition, free: Free) -> Own {
        let (did, behind) = (Decomposition::default(), Shares::default());
        Own { begun: now, at: now, account, free_ns: free.ns, did, behind, woken: None }
    }

    /// The waiter has done one thing until now; of how long, and for how much of that nobody was to blame.
    pub(super) fn look(&mut self, now: i64, account: Decomposition, free: Free) -> (i64, i64) {
        let (all, ns) = (now - self.at, free.ns - self.free_ns);
        let parts = account - self.account;
        self.did += if ns == all { parts } else { part_of(parts, ns) };
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
