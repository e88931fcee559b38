//! Who holds each lock, and who waits for it.
//!
//! **Situations.**
//! - *An exclusive acquisition of a lock that others are said to hold*: their release was not recorded, or its
//!   time is off by the clock's error; they hold it no longer. If their release comes all the same, both holds *overlap*, which is
//!   counted ([`Overlaps`]): no lock lets that happen, so one of the times is wrong by that much, or what is recorded is no lock.
//! - *A holder that ended without a release* is kept, since nothing else tells why others wait for ever; until another
//!   process has the number of its own.
//! - *Condition waits* are waits for something else, and *semaphores* belong to nobody: neither is here.
//!
//! Memory: of each process 65,536 locks, and beyond these as many as are held or waited for; of all processes that have
//! ended, 65,536 locks together.

use std::collections::{HashMap, VecDeque};

use super::context::Program;
use super::sums::Keyed;
use ft_trace::ids::{Pid, SiteId, Tid};
use serde::{Deserialize, Serialize};

/// Locks of one process that are kept although nobody holds them or waits for them; its own, so that none makes
/// another's forgotten. And as many of all processes together of which no thread lives.
///
/// Limit: locks that only ended threads hold are forgotten: a later wait for one has no holder. Locks in use are kept
/// beyond the bound, and no process causes locks of a living one to be forgotten.
/// Shown by: `a_process_forgets_locks_of_its_own_and_no_others`.
const MAX_LOCKS: usize = 1 << 16;

/// Holders of one lock: readers that ended without a release would otherwise gather without limit.
///
/// Limit: waits for it are `lower bound`s until a thread holds it exclusively.
/// Shown by: `more_readers_than_are_kept_…`.
const MAX_HOLDERS: usize = 4096;

/// A hold, as others see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Holder {
    pub(crate) tid: Tid,
    pub(crate) lock: i64,
    pub(crate) since: i64,
    /// Place of the acquisition, as [`super::Hold::word`].
    pub(crate) word: i64,
    pub(crate) site: SiteId,
    pub(crate) shared: bool,
    /// The thread has ended.
    pub(crate) gone: bool,
}

/// Holds of one thread from one place are one to those that wait.
impl Keyed for Holder {
    type Key = (Tid, i64, i64);

    fn key(&self) -> Self::Key {
        (self.tid, self.lock, self.word)
    }
}

#[derive(Debug, Default)]
struct Lock {
    /// The one that came first comes first.
    holders: Vec<Holder>,
    /// Some of them did not fit.
    crowded: bool,
    /// When an acquisition last showed that others hold it no longer.
    displaced: Option<i64>,
    /// Threads in its queue, and since when.
    queue: Vec<(Tid, i64)>,
}

impl Lock {
    fn admit(&mut self, holder: Holder) {
        let excludes = |h: &Holder| !(h.shared && holder.shared) && h.tid != holder.tid;
        if self.holders.iter().any(excludes) {
            self.displaced = Some(holder.since);
        }
        if holder.shared {
            self.holders.retain(|h| h.shared);
            self.crowded |= self.holders.len() >= MAX_HOLDERS;
            self.holders.truncate(MAX_HOLDERS - 1);
        } else {
            self.holders.clear();
            self.crowded = false;
        }
        self.holders.push(holder);
    }

    /// Somebody waits for it, or holds it and lives.
    fn is_in_use(&self) -> bool {
        !self.queue.is_empty() || self.holders.iter().any(|h| !h.gone)
    }
}

/// Holds that another thread's hold of the same lock overlaps, though the lock lets one in after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overlaps {
    /// Holds that ended after another thread had acquired the lock.
    pub holds: u64,
    /// The longest of these overlaps, ns.
    pub longest_ns: i64,
}

impl Overlaps {
    /// There are none.
    pub fn is_none(&self) -> bool {
        self.holds == 0
    }

    pub(crate) fn add(&mut self, ns: i64) {
        self.holds += 1;
        self.longest_ns = self.longest_ns.max(ns);
    }
}

/// A process that has locks, or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Process(usize);

#[derive(Debug)]
struct OfProcess {
    /// Threads of it that are known.
    threads: usize,
    /// What it runs, by the newest of its events; not known after an exec.
    program: Option<Program>,
    locks: HashMap<i64, Lock>,
    /// Size at which locks that nobody uses are dropped.
    limit: usize,
}

/// All locks of all processes.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    by_pid: HashMap<Pid, Process>,
    processes: Vec<OfProcess>,
    /// Processes whose last known thread has ended, the newest last.
    ended: VecDeque<Process>,
}

impl Locks {
    /// A thread of `pid` begins.
    pub(crate) fn join(&mut self, pid: Pid) -> Process {
        let next = Process(self.processes.len());
        let process = *self.by_pid.entry(pid).or_insert(next);
        if process == next {
            let locks = HashMap::new();
            self.processes.push(OfProcess { threads: 0, program: None, locks, limit: MAX_LOCKS });
        }
        self.processes[process.0].threads += 1;
        process
    }

    /// A thread of a process ends.
    pub(crate) fn leave(&mut self, process: Process) {
        let of = &mut self.processes[process.0];
        of.threads -= 1;
        if of.threads > 0 {
            return;
        }
        // Only who ended without a release still tells something: to a thread that may yet be seen.
        of.locks.retain(|_, lock| !lock.holders.is_empty());
        of.locks.shrink_to_fit();
        if of.locks.is_empty() {
            return;
        }
        self.ended.retain(|earlier| *earlier != process);
        self.ended.push_back(process);
        let mut kept: usize = self.ended.iter().map(|p| self.of(*p).locks.len()).sum();
        while kept > MAX_LOCKS
            && let Some(oldest) = self.ended.pop_front()
        {
            let oldest = &mut self.processes[oldest.0];
            kept -= oldest.locks.len();
            if oldest.threads == 0 {
                oldest.locks = HashMap::new();
            }
        }
    }

    /// An event of this program; whether an earlier one had the process's number until now.
    pub(crate) fn begins(&mut self, process: Process, program: Program) -> bool {
        let newest = &mut self.processes[process.0].program;
        let is_another = newest.is_some_and(|before| before < program);
        *newest = (*newest).max(Some(program));
        is_another
    }

    /// The kernel has recorded that the process executes another program: the next event is the first of that.
    pub(crate) fn executes(&mut self, process: Process) {
        self.processes[process.0].program = None;
    }

    /// All that is known of a process's locks is over.
    pub(crate) fn forget(&mut self, process: Process) {
        self.processes[process.0].locks = HashMap::new();
    }

    fn of(&self, process: Process) -> &OfProcess {
        &self.processes[process.0]
    }

    /// Threads of a process that are known.
    pub(crate) fn threads_of(&self, process: Process) -> usize {
        self.of(process).threads
    }

    fn lock(&self, process: Process, lock: i64) -> Option<&Lock> {
        self.of(process).locks.get(&lock)
    }

    fn lock_mut(&mut self, process: Process, lock: i64) -> Option<&mut Lock> {
        self.processes[process.0].locks.get_mut(&lock)
    }

    /// A thread has acquired a lock.
    pub(crate) fn acquired(&mut self, process: Process, holder: Holder) {
        let of = &mut self.processes[process.0];
        if of.locks.len() >= of.limit {
            of.locks.retain(|_, lock| lock.is_in_use());
            of.limit = MAX_LOCKS.max(2 * of.locks.len());
        }
        of.locks.entry(holder.lock).or_default().admit(holder);
    }

    /// A thread gives a lock back, or what it holds is not known any more. When another one has acquired the lock, if this one
    /// was said to hold it no longer.
    pub(crate) fn released(&mut self, process: Process, lock: i64, tid: Tid) -> Option<i64> {
        let lock = self.lock_mut(process, lock)?;
        match lock.holders.iter().rposition(|h| h.tid == tid) {
            Some(i) => {
                lock.holders.remove(i);
                None
            }
            None => lock.displaced,
        }
    }

    /// A task that holds a lock has gone from one thread to another.
    pub(crate) fn moved(&mut self, process: Process, lock: i64, (from, to): (Tid, Tid)) {
        let holders = self.lock_mut(process, lock).into_iter().flat_map(|lock| &mut lock.holders);
        if let Some(holder) = holders.rev().find(|holder| holder.tid == from) {
            (holder.tid, holder.gone) = (to, false);
        }
    }

    /// A thread ends and holds a lock.
    pub(crate) fn abandoned(&mut self, process: Process, lock: i64, tid: Tid) {
        if let Some(lock) = self.lock_mut(process, lock) {
            lock.holders.iter_mut().filter(|h| h.tid == tid).for_each(|h| h.gone = true);
        }
    }

    /// A thread joins the queue of a lock.
    pub(crate) fn queued(&mut self, process: Process, lock: i64, tid: Tid, now: i64) {
        self.processes[process.0].locks.entry(lock).or_default().queue.push((tid, now));
    }

    /// A thread leaves the queue of a lock.
    pub(crate) fn left(&mut self, process: Process, lock: i64, tid: Tid) {
        if let Some(lock) = self.lock_mut(process, lock) {
            lock.queue.retain(|(waiter, _)| *waiter != tid);
        }
    }

    /// Threads in the queue of a lock, and since when.
    pub(crate) fn queue(&self, process: Process, lock: i64) -> &[(Tid, i64)] {
        self.lock(process, lock).map_or(&[], |lock| &lock.queue)
    }

    /// Who holds a lock: of those that live the one that came first, or one that has ended.
    pub(crate) fn holder(&self, process: Process, lock: i64) -> Option<&Holder> {
        let holders = &self.lock(process, lock)?.holders;
        holders.iter().find(|h| !h.gone).or(holders.first())
    }

    /// How many hold a lock, and whether there were more than are kept.
    pub(crate) fn holders(&self, process: Process, lock: i64) -> (usize, bool) {
        self.lock(process, lock).map_or((0, false), |lock| (lock.holders.len(), lock.crowded))
    }
}
