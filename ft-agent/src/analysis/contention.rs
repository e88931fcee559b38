//! Who holds each lock, who waits for it, and whose fault the wait is.
//!
//! **Goal.** For a wait for a lock, tell who held the lock meanwhile, who in the end was to blame, and what that
//! thread did; the parts must sum to the wait to the nanosecond.
//!
//! **Rule.** At each moment a lock that is waited for has one *source* of blame: its holder's time account
//! ([`super::ledger`]); or, while the holder waits for a lock itself, the blame of that lock; or nobody. A lock's
//! [`Blame`] accumulates what its source accumulates, and is settled when the source changes. A wait's
//! decomposition is the blame at its end minus the blame at its start: it sums by construction, and costs
//! the same however many others wait, and however many switches and interrupts lie in it.
//!
//! **Situations.**
//! - *Several holders in turn*: each counts for its time; between a release and the next acquisition nobody holds
//!   the lock.
//! - *Several readers at once*: the one that came first is blamed, until it releases; then the next. A holder that
//!   waits while others read is not in the chain then.
//! - *A chain that leads back to where it began*: a deadlock. Each lock but the one that closes the circle passes the
//!   blame on; that one counts it as time in the cycle. The waits remember that they are in it.
//! - *An exclusive acquisition of a lock that others are said to hold*: their release was not recorded, or its
//!   time is off by the clock's error; they hold it no longer.
//! - *A holder that ended without a release* is kept, since nothing else tells why others wait for ever; it is
//!   blamed for nothing.
//! - *Condition waits* are waits for something else, and *semaphores* belong to nobody: neither is here. A thread
//!   that waits for one is blocked.
//!
//! Memory: 65,536 locks, and beyond these as many as are held or waited for; for a lock that is waited for, its
//! waiters and the last 64 changes of its source. Who held longest is judged by these.

mod lock;

use std::collections::HashMap;

use crate::analysis::blame::Blame;
use crate::analysis::ledger::difference;
use crate::analysis::thread::Threads;
use crate::model::{Pid, ThreadKey, Tid};
use crate::store::rows::Decomposition;
pub(crate) use lock::Held;
use lock::{Lock, MAX_STRETCHES, Queue, Source, Stretch, longest};

/// A lock of one process, by its address.
pub(crate) type Key = (Pid, i64);

/// Locks that are kept although nobody holds them or waits for them.
const MAX_LOCKS: usize = 1 << 16;

/// Locks in a chain; where a longer one would begin, the holder there is blamed for waiting.
const MAX_CHAIN: usize = 64;

/// The threads at the time of an event.
pub(crate) struct Moment<'a> {
    pub(crate) now: i64,
    pub(crate) threads: &'a mut Threads,
}

impl Moment<'_> {
    /// The account of a thread, advanced to now.
    fn account(&mut self, pid: Pid, tid: Tid) -> Option<Decomposition> {
        let thread = self.threads.get_mut(&ThreadKey { pid, tid })?;
        thread.advance(self.now);
        Some(thread.account.total())
    }

    /// The lock whose queue the thread is in.
    fn waits_for(&self, pid: Pid, tid: Tid) -> Option<i64> {
        self.threads.get(&ThreadKey { pid, tid })?.locks.queued_for()
    }

    fn unseen(&self, pid: Pid, tid: Tid) -> i64 {
        self.threads.get(&ThreadKey { pid, tid }).map_or(i64::MIN, |t| t.unseen)
    }
}

/// Where a lock's account stood when a wait began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    blame: Blame,
    /// Acquisitions, without those of the present holders.
    acquisitions: i64,
}

/// What is known of a wait at its end.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) blame: Blame,
    pub(crate) holders: i64,
    pub(crate) chain: i32,
    /// Who held the lock longest, and how long.
    pub(crate) holder: Option<(Held, i64)>,
    /// Who was at the end of the chain longest.
    pub(crate) root: Option<(Held, i64)>,
    pub(crate) unseen: i64,
}

/// Waiters that somebody delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Delayed {
    pub(crate) waiters: i32,
    pub(crate) sum_ns: i64,
    pub(crate) longest: Option<(Tid, i64)>,
}

/// All locks of all processes.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    locks: HashMap<Key, Lock>,
    /// Size at which locks that nobody uses are dropped.
    limit: usize,
}

impl Locks {
    /// A thread has acquired a lock.
    pub(crate) fn acquired(&mut self, pid: Pid, held: Held, at: &mut Moment<'_>) {
        if self.locks.len() >= self.limit.max(MAX_LOCKS) {
            self.locks
                .retain(|_, lock| lock.queue.is_some() || lock.holders.iter().any(|h| !h.gone));
            self.limit = 2 * self.locks.len();
        }
        let key = (pid, held.lock);
        let lock = self.locks.entry(key).or_default();
        if lock.queue.is_none() {
            return lock.admit(held);
        }
        self.change(key, at, |lock| lock.admit(held));
    }

    /// A thread gives a lock back, or what it holds is not known any more.
    pub(crate) fn released(&mut self, key: Key, tid: Tid, at: &mut Moment<'_>) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        if lock.queue.is_none() {
            return lock.dismiss(tid);
        }
        self.change(key, at, |lock| lock.dismiss(tid));
    }

    /// A thread ends and holds a lock.
    pub(crate) fn abandoned(&mut self, key: Key, tid: Tid, at: &mut Moment<'_>) {
        self.change(key, at, |lock| {
            lock.holders.iter_mut().filter(|h| h.tid == tid).for_each(|h| h.gone = true);
        });
    }

    /// Settles the blame, changes who holds the lock, and finds whom to blame from now on.
    fn change(&mut self, key: Key, at: &mut Moment<'_>, change: impl FnOnce(&mut Lock)) {
        self.settle(key, at);
        if let Some(lock) = self.locks.get_mut(&key) {
            change(lock);
        }
        self.aim(key, at);
    }

    /// A thread, which holds `held`, joins the queue of a lock. [`Moment::waits_for`] tells so already.
    pub(crate) fn wait(&mut self, key: Key, tid: Tid, held: &[i64], at: &mut Moment<'_>) -> Start {
        let lock = self.locks.entry(key).or_default();
        match &mut lock.queue {
            Some(queue) => queue.waiters.push((tid, at.now)),
            None => {
                lock.queue = Some(Box::new(Queue::new(tid, at.now)));
                self.aim(key, at);
            }
        }
        self.redirect(key.0, held, at);
        let blame = self.blame(key, at);
        let Some(Lock { holders, queue: Some(queue) }) = self.locks.get(&key) else {
            unreachable!("it has just been made")
        };
        let acquisitions = queue.acquisitions as i64 - holders.len() as i64;
        Start { blame, acquisitions }
    }

    /// What to say of the wait of a thread that is in the queue since `since`.
    pub(crate) fn judge(
        &self,
        key: Key,
        since: i64,
        start: &Start,
        at: &mut Moment<'_>,
    ) -> Verdict {
        let stretches = self.stretches(key, since, at.now, MAX_CHAIN);
        let queue = self.queue(key);
        let acquisitions = queue.map_or(0, |q| q.acquisitions as i64);
        let blamed = queue.and_then(|q| q.blamed).map_or(i64::MIN, |h| at.unseen(key.0, h.tid));
        Verdict {
            blame: self.blame(key, at) - start.blame,
            holders: acquisitions - start.acquisitions,
            chain: stretches.iter().map(|s| s.chain).max().unwrap_or(0),
            holder: longest(&stretches, |s| Some(s.holder)),
            root: longest(&stretches, |s| s.root),
            unseen: queue.map_or(i64::MIN, |q| q.unseen).max(blamed),
        }
    }

    /// A thread, which holds `held`, leaves the queue of a lock. [`Moment::waits_for`] tells so already.
    pub(crate) fn leave(&mut self, key: Key, tid: Tid, held: &[i64], at: &mut Moment<'_>) {
        self.redirect(key.0, held, at);
        let Some(lock) = self.locks.get_mut(&key) else { return };
        if let Some(queue) = &mut lock.queue {
            queue.waiters.retain(|w| w.0 != tid);
            if queue.waiters.is_empty() {
                lock.queue = None;
            }
        }
    }

    /// Their holder begins or ceases to wait.
    pub(crate) fn redirect(&mut self, pid: Pid, held: &[i64], at: &mut Moment<'_>) {
        for &lock in held {
            self.change((pid, lock), at, |_| ());
        }
    }

    /// Who is in the queue of a lock, as far as it was during the time from `since` on.
    pub(crate) fn delayed(&self, key: Key, since: i64, now: i64) -> Delayed {
        let mut delayed = Delayed::default();
        for &(tid, from) in self.queue(key).iter().flat_map(|q| &q.waiters) {
            let ns = now - from.max(since);
            delayed.waiters += 1;
            delayed.sum_ns += ns;
            if delayed.longest.is_none_or(|(_, longest)| ns > longest) {
                delayed.longest = Some((tid, ns));
            }
        }
        delayed
    }

    /// Who holds a lock: the one that is blamed, or one that has ended.
    pub(crate) fn holder(&self, key: Key) -> Option<Held> {
        let holders = &self.locks.get(&key)?.holders;
        holders.iter().find(|h| !h.gone).or(holders.first()).copied()
    }

    fn queue(&self, key: Key) -> Option<&Queue> {
        self.locks.get(&key)?.queue.as_deref()
    }

    /// Blame of a lock from when its first waiter came to now.
    fn blame(&self, key: Key, at: &mut Moment<'_>) -> Blame {
        let (mut sum, mut next) = (Blame::default(), key.1);
        let mut waits = None;
        while let Some(queue) = self.queue((key.0, next)) {
            let ns = at.now - queue.settled;
            sum += queue.blame;
            let holder_waits = matches!(queue.source, Source::Lock(..) | Source::Cycle);
            waits.get_or_insert(queue.blame.holder_waits_ns + if holder_waits { ns } else { 0 });
            match &queue.source {
                Source::Lock(lock, then) => {
                    sum = sum - *then;
                    next = *lock;
                    continue;
                }
                Source::Cycle => sum.cycle_ns += ns,
                Source::Nobody => sum.no_holder_ns += ns,
                Source::Holder(then) => match queue.blamed.and_then(|h| at.account(key.0, h.tid)) {
                    Some(now) => {
                        sum += Blame { parts: difference(&now, then), ..Blame::default() };
                    }
                    None => sum.no_holder_ns += ns,
                },
            }
            break;
        }
        sum.holder_waits_ns = waits.unwrap_or(0);
        sum
    }

    /// Adds what the source has accumulated.
    fn settle(&mut self, key: Key, at: &mut Moment<'_>) {
        if self.queue(key).is_none() {
            return;
        }
        let (blame, present) = (self.blame(key, at), self.present(key, at.now, MAX_CHAIN));
        let Some(queue) = self.locks.get_mut(&key).and_then(|l| l.queue.as_mut()) else { return };
        queue.blame = blame;
        queue.settled = at.now;
        for stretch in present {
            if queue.recent.len() == MAX_STRETCHES {
                queue.recent.pop_front();
            }
            queue.recent.push_back(stretch);
            let root = stretch.root.unwrap_or(stretch.holder);
            queue.unseen = queue.unseen.max(at.unseen(key.0, root.tid));
        }
    }

    /// Finds the source from now on. The blame is settled.
    fn aim(&mut self, key: Key, at: &mut Moment<'_>) {
        if self.queue(key).is_none() {
            return;
        }
        let blamed = self.holder(key).filter(|h| !h.gone);
        let waits_for = blamed.and_then(|h| at.waits_for(key.0, h.tid));
        let leads = waits_for.and_then(|next| Some((next, self.leads((key.0, next), key.1)?)));
        let source = match (blamed, leads) {
            (None, _) => Source::Nobody,
            (_, Some((next, true))) => {
                self.remember_cycle(key, next, at);
                Source::Cycle
            }
            (_, Some((next, false))) => Source::Lock(next, self.blame((key.0, next), at)),
            (Some(h), None) => at.account(key.0, h.tid).map_or(Source::Nobody, Source::Holder),
        };
        if let Some(queue) = self.locks.get_mut(&key).and_then(|l| l.queue.as_mut()) {
            queue.blamed = blamed;
            queue.source = source;
        }
    }

    /// Whether the chain from one lock leads to another; nothing when it is too long to tell.
    fn leads(&self, (pid, mut lock): Key, to: i64) -> Option<bool> {
        for _ in 0..MAX_CHAIN {
            if lock == to {
                return Some(true);
            }
            match self.queue((pid, lock))?.source {
                Source::Lock(next, _) => lock = next,
                _ => return Some(false),
            }
        }
        None
    }

    /// The holder of `key` waits for `next`, from which a chain leads back to `key`: its threads wait in a circle.
    fn remember_cycle(&self, key: Key, mut next: i64, at: &mut Moment<'_>) {
        let mut circle: Vec<Tid> = self.holder(key).map(|h| h.tid).into_iter().collect();
        while next != key.1 {
            let Some(queue) = self.queue((key.0, next)) else { return };
            circle.extend(queue.blamed.map(|h| h.tid));
            let Source::Lock(beyond, _) = queue.source else { return };
            next = beyond;
        }
        let least = circle.iter().copied().min();
        for tid in circle {
            if let Some(thread) = at.threads.get_mut(&ThreadKey { pid: key.0, tid }) {
                thread.locks.waits_in(least);
            }
        }
    }

    /// What there was since the blame was settled, with the chain as it was then.
    fn present(&self, key: Key, now: i64, longest_chain: usize) -> Vec<Stretch> {
        let Some((queue, holder)) = self.queue(key).and_then(|q| Some((q, q.blamed?))) else {
            return Vec::new();
        };
        let own = Stretch { from: queue.settled, to: now, holder, root: Some(holder), chain: 1 };
        let (Source::Lock(next, _), 1..) = (&queue.source, longest_chain) else {
            return vec![own];
        };
        let mut present = Vec::new();
        let mut from = own.from;
        for s in self.stretches((key.0, *next), own.from, now, longest_chain - 1) {
            if s.from > from {
                present.push(Stretch { from, to: s.from, root: None, ..own });
            }
            present.push(Stretch { holder, chain: s.chain + 1, ..s });
            from = s.to;
        }
        if from < now {
            present.push(Stretch { from, root: None, ..own });
        }
        present
    }

    /// Who held the lock from `since` to `now`, and who was at the ends of the chains.
    fn stretches(&self, key: Key, since: i64, now: i64, longest_chain: usize) -> Vec<Stretch> {
        let recent = self.queue(key).into_iter().flat_map(|q| q.recent.iter().copied());
        recent
            .chain(self.present(key, now, longest_chain))
            .map(|s| Stretch { from: s.from.max(since), ..s })
            .filter(|s| s.from < s.to)
            .collect()
    }
}
