//! One lock: who holds it, who waits for it, and what of the time of the wait is known.

use std::collections::VecDeque;

use crate::analysis::blame::Blame;
use crate::model::{SiteId, Tid};
use crate::store::rows::Decomposition;

/// Holders of one lock: readers that ended without a release would otherwise gather without limit.
const MAX_HOLDERS: usize = 4096;

/// Changes of a lock's source that are remembered.
pub(super) const MAX_STRETCHES: usize = 64;

/// A hold, as others see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) tid: Tid,
    pub(crate) lock: i64,
    pub(crate) since: i64,
    /// Place of the acquisition, as [`crate::analysis::locks::Hold::word`].
    pub(crate) word: i64,
    pub(crate) site: SiteId,
    pub(crate) shared: bool,
    /// The thread has ended.
    pub(crate) gone: bool,
}

impl Held {
    fn is_from(&self, other: &Held) -> bool {
        (self.tid, self.lock, self.word) == (other.tid, other.lock, other.word)
    }
}

/// What a lock's blame grows by.
#[derive(Debug)]
pub(super) enum Source {
    Nobody,
    /// The holder's account, which stood at this when the blame was settled.
    Holder(Decomposition),
    /// The lock that the holder waits for, whose blame stood at this.
    Lock(i64, Blame),
    /// The holder waits for this lock, if only through others.
    Cycle,
}

/// A time in which the source was the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) holder: Held,
    /// None: a lock of the chain was held by nobody.
    pub(super) root: Option<Held>,
    pub(super) chain: i32,
}

/// What there is of a lock only while it is waited for.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) waiters: Vec<(Tid, i64)>,
    /// Up to `settled`.
    pub(super) blame: Blame,
    pub(super) settled: i64,
    /// The holder that `source` comes from.
    pub(super) blamed: Option<Held>,
    pub(super) source: Source,
    pub(super) recent: VecDeque<Stretch>,
    /// Acquisitions since the first waiter came.
    pub(super) acquisitions: u64,
    /// When a missing switch of a holder was noticed last.
    pub(super) unseen: i64,
}

#[derive(Debug, Default)]
pub(super) struct Lock {
    /// The one that came first comes first.
    pub(super) holders: Vec<Held>,
    pub(super) queue: Option<Box<Queue>>,
}

/// Which hold took most of the time, and how much; of equals the first.
pub(super) fn longest(
    stretches: &[Stretch],
    of: impl Fn(&Stretch) -> Option<Held>,
) -> Option<(Held, i64)> {
    let mut sums: Vec<(Held, i64)> = Vec::new();
    for (held, ns) in stretches.iter().filter_map(|s| Some((of(s)?, s.to - s.from))) {
        match sums.iter_mut().find(|(h, _)| h.is_from(&held)) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((held, ns)),
        }
    }
    sums.into_iter().rev().max_by_key(|(_, ns)| *ns)
}

impl Lock {
    pub(super) fn admit(&mut self, held: Held) {
        if held.shared {
            self.holders.retain(|h| h.shared);
            self.holders.truncate(MAX_HOLDERS - 1);
        } else {
            self.holders.clear();
        }
        self.holders.push(held);
        if let Some(queue) = &mut self.queue {
            queue.acquisitions += 1;
        }
    }

    pub(super) fn dismiss(&mut self, tid: Tid) {
        if let Some(i) = self.holders.iter().rposition(|h| h.tid == tid) {
            self.holders.remove(i);
        }
    }
}

impl Queue {
    pub(super) fn new(tid: Tid, now: i64) -> Self {
        Queue {
            waiters: vec![(tid, now)],
            blame: Blame::default(),
            settled: now,
            blamed: None,
            source: Source::Nobody,
            recent: VecDeque::new(),
            acquisitions: 0,
            unseen: i64::MIN,
        }
    }
}
