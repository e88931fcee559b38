//! One lock that is waited for: who waits for it, and what of the time of the wait is known.

use super::blame::Blame;
use crate::world::{Count, Holder, Spans, Sums};
use ft_trace::ids::Tid;

/// What a lock's blame grows by.
#[derive(Debug)]
pub(super) enum BlameSource {
    Nobody,
    /// The holder's account, which stood at this when the blame was settled.
    Holder(Blame),
    /// The lock that the holder waits for, whose blame stood at this.
    Lock(i64, Blame),
    /// The holder waits for this lock, if only through others.
    Cycle,
}

/// Who looks at what happens to a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Waiter {
    /// A thread in its queue.
    Thread(Tid),
    /// A lock whose holder is in its queue.
    Lock(i64),
}

/// Who had a lock while it was waited for.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Holders that waited for no lock: each was the end of the chain.
    ends: Sums<Holder>,
    /// Holders that waited for a lock themselves.
    links: Sums<Holder>,
    /// Who was at the end of the chain meanwhile; for the time in which nobody held its last lock, and in a circle, no
    /// one.
    beyond: Sums<Holder>,
    /// Threads in the longest chain.
    pub(super) chain: i32,
    /// Acquisitions by those that began to wait in this time, and by those that did not wait at all.
    pub(super) overtaken: u32,
    /// Records of one that was at the end of a chain are missing, or the chain was too long to follow.
    pub(super) touched: bool,
}

impl Turns {
    /// The holder was the end of the chain.
    pub(super) fn end(&mut self, holder: &Holder, from: i64, ns: i64) {
        self.ends.add(holder, from, ns);
        self.chain = self.chain.max(1);
    }

    /// The holder waited for a lock; what is known of that, if anything.
    pub(super) fn link(&mut self, holder: &Holder, from: i64, ns: i64, beyond: Option<&Verdict>) {
        self.links.add(holder, from, ns);
        let chain = beyond.map_or(0, |beyond| beyond.chain);
        self.chain = self.chain.max(1 + chain);
        if let Some(beyond) = beyond {
            self.beyond.merge(&beyond.roots);
            self.touched |= beyond.touched;
        }
    }
}

impl Count for Turns {
    fn merge(&mut self, later: &Self) {
        self.ends.merge(&later.ends);
        self.links.merge(&later.links);
        self.beyond.merge(&later.beyond);
        self.chain = self.chain.max(later.chain);
        self.overtaken = self.overtaken.saturating_add(later.overtaken);
        self.touched |= later.touched;
    }
}

/// What one that looked has seen.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) holders: Sums<Holder>,
    /// Who was at the ends of the chains.
    pub(super) roots: Sums<Holder>,
    pub(super) chain: i32,
    pub(super) overtaken: u32,
    pub(super) touched: bool,
}

/// What there is of a lock only while it is waited for.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) waiters: Spans<Waiter, Turns>,
    /// Up to `settled`.
    pub(super) blame: Blame,
    pub(super) settled: i64,
    /// The holder that `source` comes from.
    pub(super) blamed: Option<Holder>,
    pub(super) source: BlameSource,
    /// Since when nobody is known to hold it.
    pub(super) free_since: Option<i64>,
    /// The source is not what it should be: the chain is too long, or there were too many holders.
    pub(super) doubtful: bool,
    /// Acquisitions since the first waiter came.
    pub(super) acquisitions: u64,
}

impl Queue {
    /// Nobody waits yet.
    pub(super) fn new(now: i64) -> Self {
        Queue {
            waiters: Spans::default(),
            blame: Blame::default(),
            settled: now,
            blamed: None,
            source: BlameSource::Nobody,
            free_since: None,
            doubtful: false,
            acquisitions: 0,
        }
    }

    /// The threads in it, and since when.
    pub(super) fn threads(&self) -> impl Iterator<Item = (Tid, i64)> {
        self.waiters.iter().filter_map(|span| match span.who {
            Waiter::Thread(tid) => Some((tid, span.since)),
            Waiter::Lock(_) => None,
        })
    }

    /// What there was since `who` began to look.
    pub(super) fn seen_by(&self, who: Waiter) -> Option<Verdict> {
        let (_, turns) = self.waiters.seen_by(&who)?;
        let holders = Sums::total(turns.clone().flat_map(|t| [&t.ends, &t.links]));
        // In most waits no holder waits itself.
        let roots = match turns.clone().all(|t| t.links.is_empty()) {
            true => holders.clone(),
            false => Sums::total(turns.clone().flat_map(|t| [&t.ends, &t.beyond])),
        };
        Some(Verdict {
            holders,
            roots,
            chain: turns.clone().map(|t| t.chain).max().unwrap_or(0),
            overtaken: turns.clone().fold(0, |n, t| n.saturating_add(t.overtaken)),
            touched: turns.clone().any(|t| t.touched),
        })
    }
}
