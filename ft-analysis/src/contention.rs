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
//! Who held longest, and who was at the chain's end longest, is judged by sums of all turns ([`super::sums`]), counted for
//! all waiters at once ([`super::spans`]); a lock whose holder waits for another one looks at that one like a waiter.
//!
//! Memory: 65,536 locks, and beyond these as many as are held or waited for; for a lock that is waited for, its
//! waiters, and for each the threads and places that held it until the next waiter came, 1024 at most.

mod lock;

use std::collections::HashMap;

use crate::blame::Blame;
use crate::ledger::difference;
use crate::sums::Sums;
use crate::thread::Threads;
use ft_trace::ids::{Pid, ThreadKey, Tid};
use ft_trace::tables::Decomposition;
pub(crate) use lock::Held;
use lock::{Lock, Queue, Source, Turns, Waiter};

/// A lock of one process, by its address.
pub(crate) type Key = (Pid, i64);

/// Locks that are kept although nobody holds them or waits for them.
const MAX_LOCKS: usize = 1 << 16;

/// Locks in a chain; where a longer one would begin, the holder there is blamed for waiting, and the wait is marked.
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
    /// Something of it is not known, or did not fit.
    pub(crate) touched: bool,
}

/// Waiters that somebody delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Delayed {
    pub(crate) waiters: i32,
    pub(crate) sum_ns: i64,
    pub(crate) longest: Option<(Tid, i64)>,
}

/// What a lock sees where its holder waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chain {
    /// Nobody is known to wait there.
    Ends,
    /// Somebody holds that lock, or nobody.
    Goes,
    /// The chain leads back.
    Circle,
    /// More than [`MAX_CHAIN`] locks.
    TooLong,
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
        if lock.queue.is_none() {
            lock.queue = Some(Box::new(Queue::new(at.now)));
            self.aim(key, at);
        } else {
            self.settle(key, at);
        }
        if let Some(queue) = self.queue_mut(key) {
            queue.waiters.begin(Waiter::Thread(tid), at.now);
        }
        self.redirect(key.0, held, at);
        let Some(Lock { holders, queue: Some(queue), .. }) = self.locks.get(&key) else {
            unreachable!("it has just been made")
        };
        let acquisitions = queue.acquisitions as i64 - holders.len() as i64;
        Start { blame: queue.blame, acquisitions }
    }

    /// What to say of the wait of a thread that joined the queue at `start`.
    pub(crate) fn judge(
        &mut self,
        key: Key,
        tid: Tid,
        start: &Start,
        at: &mut Moment<'_>,
    ) -> Option<Verdict> {
        self.settle(key, at);
        let queue = self.queue(key)?;
        let seen = queue.seen_by(Waiter::Thread(tid))?;
        let longest = |sums: &Sums<Held>| sums.longest().map(|sum| (sum.who, sum.ns));
        Some(Verdict {
            blame: queue.blame - start.blame,
            holders: queue.acquisitions as i64 - start.acquisitions,
            chain: seen.chain,
            holder: longest(&seen.holders),
            root: longest(&seen.roots),
            touched: seen.touched || !seen.holders.is_exact() || !seen.roots.is_exact(),
        })
    }

    /// A thread, which holds `held`, leaves the queue of a lock. [`Moment::waits_for`] tells so already.
    pub(crate) fn leave(&mut self, key: Key, tid: Tid, held: &[i64], at: &mut Moment<'_>) {
        self.redirect(key.0, held, at);
        let Some(queue) = self.queue_mut(key) else { return };
        queue.waiters.end(&Waiter::Thread(tid));
        if queue.threads().next().is_none() {
            self.look_away(key);
            if let Some(lock) = self.locks.get_mut(&key) {
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
        for (tid, from) in self.queue(key).into_iter().flat_map(Queue::threads) {
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

    fn queue_mut(&mut self, key: Key) -> Option<&mut Queue> {
        self.locks.get_mut(&key)?.queue.as_deref_mut()
    }

    /// Brings the blame of a lock to now, and before it that of all locks that its chain leads to.
    fn settle(&mut self, (pid, mut lock): Key, at: &mut Moment<'_>) {
        let mut chain = Vec::new();
        while let Some(Queue { source: Source::Lock(next, _), .. }) = self.queue((pid, lock)) {
            chain.push(lock);
            lock = *next;
        }
        self.settle_one((pid, lock), at);
        chain.into_iter().rev().for_each(|lock| self.settle_one((pid, lock), at));
    }

    /// Adds what the source has accumulated. The lock that the holder waits for is settled.
    fn settle_one(&mut self, key: Key, at: &mut Moment<'_>) {
        let Some(queue) = self.queue(key).filter(|q| q.settled < at.now) else { return };
        let beyond = match queue.source {
            Source::Lock(next, _) => self.look((key.0, next), key.1, at.now),
            _ => None,
        };
        let Some(queue) = self.queue_mut(key) else { return };
        let (from, ns) = (queue.settled, at.now - queue.settled);
        let mut unused = Turns::default();
        let turns = queue.waiters.now().unwrap_or(&mut unused);
        let mut grown = Blame::default();
        match (&mut queue.source, &queue.blamed) {
            (Source::Nobody, _) | (_, None) => grown.no_holder_ns = ns,
            (Source::Holder(then), Some(holder)) => match at.account(key.0, holder.tid) {
                Some(now) => {
                    grown.parts = difference(&now, then);
                    *then = now;
                    turns.end(holder, from, ns);
                    turns.touched |= queue.doubtful || at.unseen(key.0, holder.tid) >= from;
                }
                None => grown.no_holder_ns = ns,
            },
            (Source::Lock(_, then), Some(holder)) => {
                match &beyond {
                    Some((blame, _)) => {
                        grown = *blame - *then;
                        *then = *blame;
                    }
                    None => grown.no_holder_ns = ns,
                }
                turns.link(holder, from, ns, beyond.as_ref().map(|(_, seen)| seen));
                turns.touched |= queue.doubtful;
                grown.holder_waits_ns = ns;
            }
            (Source::Cycle, Some(holder)) => {
                turns.link(holder, from, ns, None);
                (grown.cycle_ns, grown.holder_waits_ns) = (ns, ns);
            }
        }
        queue.blame += grown;
        queue.settled = at.now;
    }

    /// What the lock `who`, whose holder waits for `key`, sees there since it looked last, and the blame.
    fn look(&mut self, key: Key, who: i64, now: i64) -> Option<(Blame, lock::Verdict)> {
        let queue = self.queue_mut(key)?;
        let who = Waiter::Lock(who);
        let seen = queue.seen_by(who)?;
        queue.waiters.end(&who);
        queue.waiters.begin(who, now);
        Some((queue.blame, seen))
    }

    /// A lock looks no longer at the one that its holder waited for.
    fn look_away(&mut self, key: Key) {
        if let Some(Queue { source: Source::Lock(next, _), .. }) = self.queue(key) {
            let next = (key.0, *next);
            if let Some(queue) = self.queue_mut(next) {
                queue.waiters.end(&Waiter::Lock(key.1));
            }
        }
    }

    /// Finds the source from now on. The blame is settled.
    fn aim(&mut self, key: Key, at: &mut Moment<'_>) {
        if self.queue(key).is_none() {
            return;
        }
        self.look_away(key);
        let blamed = self.holder(key).filter(|h| !h.gone);
        let waits_for = blamed.and_then(|h| at.waits_for(key.0, h.tid));
        let chain = waits_for.map_or(Chain::Ends, |next| self.chain((key.0, next), key.1));
        let source = match (blamed, waits_for, &chain) {
            (None, ..) => Source::Nobody,
            (_, Some(next), Chain::Circle) => {
                self.remember_cycle(key, next, at);
                Source::Cycle
            }
            (_, Some(next), Chain::Goes) => {
                self.settle((key.0, next), at);
                let blame = self.queue_mut((key.0, next)).map_or(Blame::default(), |queue| {
                    queue.waiters.begin(Waiter::Lock(key.1), at.now);
                    queue.blame
                });
                Source::Lock(next, blame)
            }
            (Some(h), ..) => at.account(key.0, h.tid).map_or(Source::Nobody, Source::Holder),
        };
        if let Some(Lock { queue: Some(queue), crowded, .. }) = self.locks.get_mut(&key) {
            queue.blamed = blamed;
            queue.source = source;
            queue.doubtful = *crowded || chain == Chain::TooLong;
        }
    }

    /// Where the chain from one lock leads, seen from another, whose holder waits for it.
    fn chain(&self, (pid, mut lock): Key, from: i64) -> Chain {
        for _ in 0..MAX_CHAIN {
            if lock == from {
                return Chain::Circle;
            }
            match self.queue((pid, lock)).map(|q| &q.source) {
                Some(Source::Lock(next, _)) => lock = *next,
                Some(_) => return Chain::Goes,
                None => return Chain::Ends,
            }
        }
        Chain::TooLong
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
}
