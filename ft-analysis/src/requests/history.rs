//! What threads did and who woke them, kept as far back as a request that goes on may need it.

use std::collections::{HashMap, VecDeque};

use crate::world::{Stretch, Unknown};
use ft_trace::Mark;
use ft_trace::ids::{Name, ThreadKey, Tid};
use ft_trace::tables::Part;

/// Pieces of threads' time, and wake-ups, that are kept at once. Of more, the older half of the time that they cover is
/// forgotten: a path that leads there ends in a piece that is unknown.
const MAX_REMEMBERED: usize = 1 << 19;

/// How often at least what no request needs is forgotten, in pieces.
const SWEEP: usize = 4096;

/// Who or what woke a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Waker {
    /// A thread that is observed.
    Thread(ThreadKey),
    /// A timer's interrupt.
    Timer(Name),
    /// Another interrupt.
    Device(Name),
    /// A thread that is not observed.
    Outside(Name, Tid),
    /// It is not known, for a reason.
    Unknown(Unknown),
}

/// A thread was woken.
#[derive(Clone, Debug)]
pub(super) struct Wake {
    pub(super) ts: i64,
    pub(super) waker: Waker,
    /// It is its birth.
    pub(super) birth: bool,
    pub(super) mark: Mark,
}

/// What one thread did.
#[derive(Debug, Default)]
pub(super) struct Past {
    steps: VecDeque<Stretch>,
    wakes: VecDeque<Wake>,
}

impl Past {
    /// The piece that ends at `t` or goes on there; else, when the last one before it ended.
    pub(super) fn before(&self, t: i64) -> Result<&Stretch, i64> {
        let after = self.steps.partition_point(|step| step.from < t);
        match after.checked_sub(1).map(|i| &self.steps[i]) {
            Some(step) if step.to >= t => Ok(step),
            Some(step) => Err(step.to),
            None => Err(i64::MIN),
        }
    }

    /// Since when it is blocked without having been woken, of a piece that ends at `t`; at least `floor`.
    pub(super) fn blocked_since(&self, t: i64, floor: i64) -> i64 {
        let after = self.steps.partition_point(|step| step.from < t);
        let mut since = t;
        for step in self.steps.range(..after).rev() {
            let goes_on = step.part == Part::Blocked && (since == t || step.to == since);
            if !goes_on || since <= floor || (since < t && self.wake(since).is_some()) {
                break;
            }
            since = step.from;
        }
        since.max(floor)
    }

    /// Who woke it at `t`.
    pub(super) fn wake(&self, t: i64) -> Option<&Wake> {
        let at = self.wakes.partition_point(|wake| wake.ts < t);
        self.wakes.get(at).filter(|wake| wake.ts == t)
    }

    fn len(&self) -> usize {
        self.steps.len() + self.wakes.len()
    }

    fn forget(&mut self, before: i64) {
        while self.steps.pop_front_if(|step| step.to <= before).is_some() {}
        while self.wakes.pop_front_if(|wake| wake.ts <= before).is_some() {}
    }
}

/// What all threads did.
#[derive(Debug)]
pub(super) struct History {
    threads: HashMap<ThreadKey, Past>,
    /// How much there is.
    kept: usize,
    /// How much there may be before it is swept.
    until: usize,
    /// What was before is forgotten although a request may need it.
    pub(super) since: i64,
    /// Pieces that were reported so far.
    pub(super) told: u64,
    most: usize,
}

impl Default for History {
    fn default() -> Self {
        History::new(MAX_REMEMBERED)
    }
}

impl History {
    /// One that keeps so much.
    pub(super) fn new(most: usize) -> History {
        let threads = HashMap::new();
        History { threads, kept: 0, until: SWEEP, since: i64::MIN, told: 0, most }
    }

    /// What a thread did.
    pub(super) fn of(&self, thread: ThreadKey) -> Option<&Past> {
        self.threads.get(&thread)
    }

    /// A piece of a thread's time is over; `needed`: since when requests go on.
    pub(super) fn add(&mut self, stretch: &Stretch, needed: i64) {
        self.told += 1;
        let past = self.threads.entry(stretch.thread).or_default();
        if let Some(last) = past.steps.back_mut()
            // What was reported twice, or in another order, comes from damaged data.
            && (stretch.from < last.to || last.extend(stretch))
        {
            return;
        }
        past.steps.push_back(stretch.clone());
        self.grew(needed, stretch.to);
    }

    /// A thread is woken.
    pub(super) fn woken(&mut self, thread: ThreadKey, wake: Wake, needed: i64) {
        let ts = wake.ts;
        let past = self.threads.entry(thread).or_default();
        // Of two at one time, the first has woken it.
        if past.wakes.back().is_none_or(|last| last.ts < ts) {
            past.wakes.push_back(wake);
            self.grew(needed, ts);
        }
    }

    fn grew(&mut self, needed: i64, now: i64) {
        self.kept += 1;
        if self.kept < self.until {
            return;
        }
        self.forget(needed);
        while self.kept > self.most / 2 {
            let oldest = |past: &Past| past.steps.front().map(|step| step.from);
            let first = self.threads.values().filter_map(oldest).min().unwrap_or(now);
            let middle = first.max(needed) + (now - first.max(needed)).max(0) / 2 + 1;
            self.since = middle.max(self.since);
            self.forget(middle);
        }
        self.until = (2 * self.kept).max(SWEEP + self.threads.len()).min(self.most);
    }

    /// Forgets what was over before.
    pub(super) fn forget(&mut self, before: i64) {
        self.threads.retain(|_, past| {
            past.forget(before);
            past.len() > 0
        });
        self.kept = self.threads.values().map(Past::len).sum();
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.threads.clear();
        (self.kept, self.until) = (0, SWEEP);
    }
}
