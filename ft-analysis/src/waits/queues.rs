//! The queues of all locks that are waited for, and whom each wait is blamed on.
//!
//! **Rule.** At each moment a lock that is waited for has one *source* of blame: its holder's time account
//! (`world/account.rs`); or, while the holder waits for a lock itself, the blame of that lock; or nobody. A lock's
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
//!   blame on; that one counts it as time in the cycle. The waits in it are remembered.
//! - *A holder that ended without a release* is blamed for nothing.
//!
//! Who held longest, and who was at the chain's end longest, is judged by sums of all turns (`world/sums.rs`), counted for
//! all waiters at once (`world/spans.rs`); a lock whose holder waits for another one looks at that one like a waiter.
//!
//! Memory: for a lock that is waited for, its waiters, and for each the threads and places that held it until the next
//! waiter came, 1024 at most.

use std::collections::HashMap;

use super::blame::Blame;
use super::own::Free;
use super::queue::{self, BlameSource, Queue, Turns, Waiter};
use crate::world::{Holder, Process, Sums, Thread, World};
use ft_trace::ids::{Pid, ThreadKey, Tid};

/// Locks in a chain; where a longer one would begin, the holder there is blamed for waiting, and the wait is marked.
///
/// Limit: the last holder is blamed for waiting; every wait behind it is a `lower bound`.
/// Shown by: `a_chain_of_any_length_sums_…`.
const MAX_CHAIN: usize = 64;

/// A process, at the time of an event.
pub(super) struct Here<'a> {
    world: &'a World,
    pid: Pid,
    process: Process,
}

impl<'a> Here<'a> {
    /// The process of a thread.
    pub(super) fn of(thread: &Thread, world: &'a World) -> Here<'a> {
        Here { world, pid: thread.key.pid, process: thread.process }
    }

    fn now(&self) -> i64 {
        self.world.now()
    }

    fn thread(&self, tid: Tid) -> Option<&'a Thread> {
        self.world.thread(self.pid, tid)
    }

    /// The account of a thread, as it grows into the blame of a lock that the thread holds.
    fn account(&self, tid: Tid) -> Option<Blame> {
        let thread = self.thread(tid)?;
        let (parts, agent_ns) = (thread.account(self.now()), self.world.agent_ns(thread));
        Some(Blame { parts, agent_ns, ..Blame::default() })
    }

    /// The lock whose queue the thread is in.
    fn waits_for(&self, tid: Tid) -> Option<i64> {
        self.thread(tid)?.locks.queued().map(|wait| wait.lock)
    }

    fn unseen(&self, tid: Tid) -> i64 {
        self.thread(tid).map_or(i64::MIN, |t| t.unseen)
    }

    /// Who holds a lock, and lives.
    fn holder(&self, lock: i64) -> Option<Holder> {
        self.world.locks().holder(self.process, lock).filter(|h| !h.gone).copied()
    }
}

/// Where a lock's account stood when a wait began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    blame: Blame,
    /// Acquisitions, without those of the present holders.
    acquisitions: i64,
}

/// What is known of a wait at its end.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) blame: Blame,
    pub(super) holders: i64,
    pub(super) chain: i32,
    /// Acquisitions by others that had not waited as long.
    pub(super) overtaken: u32,
    /// Who held the lock longest, and how long.
    pub(super) holder: Option<(Holder, i64)>,
    /// Who was at the end of the chain longest.
    pub(super) root: Option<(Holder, i64)>,
    /// Something of it is not known, or did not fit.
    pub(super) touched: bool,
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

/// All locks that are waited for, of all processes.
#[derive(Debug, Default)]
pub(super) struct Queues {
    queues: HashMap<(Pid, i64), Box<Queue>>,
    /// Threads that wait in a circle, and the least number of those in it.
    pub(super) cycles: HashMap<ThreadKey, Tid>,
}

impl Queues {
    /// Somebody has acquired a lock.
    pub(super) fn acquired(&mut self, lock: i64, here: &Here<'_>) {
        self.changed(lock, here);
        if let Some(queue) = self.queue_mut(lock, here) {
            queue.acquisitions += 1;
        }
    }

    /// A thread of its queue is about to have a lock, before those that came earlier.
    pub(super) fn overtakes(&mut self, lock: i64, tid: Tid, here: &Here<'_>) {
        let queue = self.queue_mut(lock, here);
        if let Some(turns) = queue.and_then(|q| q.waiters.since(&Waiter::Thread(tid))) {
            turns.overtaken += 1;
        }
    }

    /// A thread has a lock without having waited for it, before all that do.
    pub(super) fn overtakes_all(&mut self, lock: i64, here: &Here<'_>) {
        if self.queues.is_empty() {
            return;
        }
        if let Some(turns) = self.queue_mut(lock, here).and_then(|queue| queue.waiters.now()) {
            turns.overtaken += 1;
        }
    }

    /// For how long nobody was to blame for the waits for a lock, and since when nobody holds it.
    pub(super) fn free(&mut self, lock: i64, here: &Here<'_>) -> Free {
        self.settle(lock, here);
        let free = |queue: &Queue| Free { ns: queue.blame.no_holder_ns, since: queue.free_since };
        self.queue(lock, here).map_or(Free::default(), free)
    }

    /// Who holds a lock, or whether its holder waits, is not what it was until now.
    pub(super) fn changed(&mut self, lock: i64, here: &Here<'_>) {
        // Of most locks there is no queue at all.
        if !self.queues.is_empty() && self.queue(lock, here).is_some() {
            self.settle(lock, here);
            self.aim(lock, here);
        }
    }

    /// A thread, which waits, joins the queue of a lock.
    pub(super) fn join(&mut self, lock: i64, thread: &Thread, here: &Here<'_>) -> Start {
        if self.queue(lock, here).is_none() {
            self.queues.insert((here.pid, lock), Box::new(Queue::new(here.now())));
            self.aim(lock, here);
        } else {
            self.settle(lock, here);
        }
        if let Some(queue) = self.queue_mut(lock, here) {
            queue.waiters.begin(Waiter::Thread(thread.key.tid), here.now());
        }
        self.redirect(thread, here);
        let (holders, _) = here.world.locks().holders(here.process, lock);
        let queue = self.queue(lock, here);
        queue.map_or_else(Start::default, |queue| Start {
            blame: queue.blame,
            acquisitions: queue.acquisitions as i64 - holders as i64,
        })
    }

    /// What to say of the wait of a thread that joined the queue at `start`.
    pub(super) fn judge(
        &mut self,
        lock: i64,
        tid: Tid,
        start: &Start,
        here: &Here<'_>,
    ) -> Option<Verdict> {
        self.settle(lock, here);
        let queue = self.queue(lock, here)?;
        let seen = queue.seen_by(Waiter::Thread(tid))?;
        let longest = |sums: &Sums<Holder>| sums.longest().map(|sum| (sum.who, sum.ns));
        Some(Verdict {
            blame: queue.blame - start.blame,
            holders: queue.acquisitions as i64 - start.acquisitions,
            chain: seen.chain,
            overtaken: seen.overtaken,
            holder: longest(&seen.holders),
            root: longest(&seen.roots),
            touched: seen.touched || !seen.holders.is_exact() || !seen.roots.is_exact(),
        })
    }

    /// A thread, which waits no longer, leaves the queue of a lock.
    pub(super) fn leave(&mut self, lock: i64, thread: &Thread, here: &Here<'_>) {
        self.redirect(thread, here);
        let Some(queue) = self.queue_mut(lock, here) else { return };
        queue.waiters.end(&Waiter::Thread(thread.key.tid));
        if queue.threads().next().is_none() {
            self.look_away(lock, here);
            self.queues.remove(&(here.pid, lock));
        }
    }

    /// A circle is open: the others in it wait for someone who does not.
    pub(super) fn open(&mut self, cycle: Tid, here: &Here<'_>) {
        let in_it = |key: &ThreadKey, of: &mut Tid| key.pid == here.pid && *of == cycle;
        let others: Vec<ThreadKey> = self.cycles.extract_if(in_it).map(|(key, _)| key).collect();
        for thread in others.into_iter().filter_map(|key| here.thread(key.tid)) {
            self.redirect(thread, here);
        }
    }

    /// The holder of some locks begins or ceases to wait.
    fn redirect(&mut self, thread: &Thread, here: &Here<'_>) {
        thread.locks.locks().for_each(|hold| self.changed(hold.lock, here));
    }

    fn queue(&self, lock: i64, here: &Here<'_>) -> Option<&Queue> {
        self.queues.get(&(here.pid, lock)).map(|queue| &**queue)
    }

    fn queue_mut(&mut self, lock: i64, here: &Here<'_>) -> Option<&mut Queue> {
        self.queues.get_mut(&(here.pid, lock)).map(|queue| &mut **queue)
    }

    /// Brings the blame of a lock to now, and before it that of all locks that its chain leads to.
    fn settle(&mut self, mut lock: i64, here: &Here<'_>) {
        let mut chain = Vec::new();
        while let Some(Queue { source: BlameSource::Lock(next, _), .. }) = self.queue(lock, here) {
            chain.push(lock);
            lock = *next;
        }
        self.settle_one(lock, here);
        chain.into_iter().rev().for_each(|lock| self.settle_one(lock, here));
    }

    /// Adds what the source has accumulated. The lock that the holder waits for is settled.
    fn settle_one(&mut self, lock: i64, here: &Here<'_>) {
        let Some(queue) = self.queue(lock, here).filter(|q| q.settled < here.now()) else { return };
        let beyond = match queue.source {
            BlameSource::Lock(next, _) => self.look(next, lock, here),
            _ => None,
        };
        let Some(queue) = self.queue_mut(lock, here) else { return };
        let (from, ns) = (queue.settled, here.now() - queue.settled);
        let mut unused = Turns::default();
        let turns = queue.waiters.now().unwrap_or(&mut unused);
        let mut grown = Blame::default();
        match (&mut queue.source, &queue.blamed) {
            (BlameSource::Nobody, _) | (_, None) => grown.no_holder_ns = ns,
            (BlameSource::Holder(then), Some(holder)) => match here.account(holder.tid) {
                Some(now) => {
                    grown = now - *then;
                    *then = now;
                    turns.end(holder, from, ns);
                    turns.touched |= queue.doubtful || here.unseen(holder.tid) >= from;
                }
                None => grown.no_holder_ns = ns,
            },
            (BlameSource::Lock(_, then), Some(holder)) => {
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
            (BlameSource::Cycle, Some(holder)) => {
                turns.link(holder, from, ns, None);
                (grown.cycle_ns, grown.holder_waits_ns) = (ns, ns);
            }
        }
        queue.blame += grown;
        queue.settled = here.now();
    }

    /// What the lock `who`, whose holder waits for `lock`, sees there since it looked last, and the blame.
    fn look(&mut self, lock: i64, who: i64, here: &Here<'_>) -> Option<(Blame, queue::Verdict)> {
        let queue = self.queue_mut(lock, here)?;
        let who = Waiter::Lock(who);
        let seen = queue.seen_by(who)?;
        queue.waiters.end(&who);
        queue.waiters.begin(who, here.now());
        Some((queue.blame, seen))
    }

    /// A lock looks no longer at the one that its holder waited for.
    fn look_away(&mut self, lock: i64, here: &Here<'_>) {
        if let Some(&Queue { source: BlameSource::Lock(next, _), .. }) = self.queue(lock, here)
            && let Some(queue) = self.queue_mut(next, here)
        {
            queue.waiters.end(&Waiter::Lock(lock));
        }
    }

    /// Finds the source from now on. The blame is settled.
    fn aim(&mut self, lock: i64, here: &Here<'_>) {
        self.look_away(lock, here);
        let blamed = here.holder(lock);
        let waits_for = blamed.and_then(|h| here.waits_for(h.tid));
        let chain = waits_for.map_or(Chain::Ends, |next| self.chain(next, lock, here));
        let source = match (blamed, waits_for, &chain) {
            (None, ..) => BlameSource::Nobody,
            (_, Some(next), Chain::Circle) => {
                self.remember_cycle(lock, next, here);
                BlameSource::Cycle
            }
            (_, Some(next), Chain::Goes) => {
                self.settle(next, here);
                let blame = self.queue_mut(next, here).map_or(Blame::default(), |queue| {
                    queue.waiters.begin(Waiter::Lock(lock), here.now());
                    queue.blame
                });
                BlameSource::Lock(next, blame)
            }
            (Some(h), ..) => here.account(h.tid).map_or(BlameSource::Nobody, BlameSource::Holder),
        };
        let (_, crowded) = here.world.locks().holders(here.process, lock);
        if let Some(queue) = self.queue_mut(lock, here) {
            queue.blamed = blamed;
            queue.free_since = match source {
                BlameSource::Nobody => queue.free_since.or(Some(here.now())),
                _ => None,
            };
            queue.source = source;
            queue.doubtful = crowded || chain == Chain::TooLong;
        }
    }

    /// Where the chain from one lock leads, seen from another, whose holder waits for it.
    fn chain(&self, mut lock: i64, from: i64, here: &Here<'_>) -> Chain {
        for _ in 0..MAX_CHAIN {
            if lock == from {
                return Chain::Circle;
            }
            match self.queue(lock, here).map(|q| &q.source) {
                Some(BlameSource::Lock(next, _)) => lock = *next,
                Some(_) => return Chain::Goes,
                None => return Chain::Ends,
            }
        }
        Chain::TooLong
    }

    /// The holder of `lock` waits for `next`, from which a chain leads back to `lock`: its threads wait in a circle.
    fn remember_cycle(&mut self, lock: i64, mut next: i64, here: &Here<'_>) {
        let mut circle: Vec<Tid> = here.holder(lock).map(|h| h.tid).into_iter().collect();
        while next != lock {
            let Some(queue) = self.queue(next, here) else { return };
            circle.extend(queue.blamed.map(|h| h.tid));
            let BlameSource::Lock(beyond, _) = queue.source else { return };
            next = beyond;
        }
        let Some(&least) = circle.iter().min() else { return };
        for tid in circle.into_iter().filter(|&tid| here.waits_for(tid).is_some()) {
            self.cycles.insert(ThreadKey { pid: here.pid, tid }, least);
        }
    }
}
