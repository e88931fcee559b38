//! What the rows and lanes of the picture are, by number.

use std::collections::HashMap;

use ft_trace::ids::{Pid, ThreadKey, Tid};

use super::survey::{LockKey, Survey};

/// CPUs with a row.
///
/// Limit: as `MAX_THREADS` of `survey.rs`.
pub(super) const MAX_CPUS: usize = 64;

/// Lanes of a CPU, and of a thread; their order is that of `LANES` in `script/codec.js`.
pub(super) const CPU_LANES: usize = 2;
const THREAD_LANES: usize = 7;

/// Lanes of a thread.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    State,
    Holds,
    Waits,
    Scopes,
    Gaps,
    Events,
    Wakes,
}

/// What the rows of the picture are, by number: CPUs, threads (the last is all that have no row), locks.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) cpus: usize,
    pub(super) threads: HashMap<ThreadKey, usize>,
    pub(super) locks: HashMap<LockKey, usize>,
}

impl Rows {
    pub(super) fn new(cpus: usize, survey: &Survey) -> Rows {
        let numbered = |(i, key): (usize, ThreadKey)| (key, i);
        let threads = survey.threads.rows.iter().map(|(key, _)| *key).enumerate().map(numbered);
        let locks = survey.locks.rows.iter().map(|(key, _)| *key).zip(0..);
        Rows { cpus: cpus.min(MAX_CPUS), threads: threads.collect(), locks: locks.collect() }
    }

    /// Threads, with the row of the others.
    pub(super) fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    pub(super) fn locks(&self) -> usize {
        self.locks.len()
    }

    /// Number of an observed thread.
    pub(super) fn thread(&self, pid: Pid, tid: Tid) -> usize {
        self.threads.get(&ThreadKey { pid, tid }).copied().unwrap_or(self.threads.len())
    }

    /// Number of a thread plus 1, or 0 where it has no row.
    pub(super) fn reference(&self, pid: Pid, tid: Tid) -> u32 {
        self.threads.get(&ThreadKey { pid, tid }).map_or(0, |&row| row as u32 + 1)
    }

    /// Row of the first thread, and of the first lock, in the buckets.
    pub(super) fn level_of_thread(&self, thread: usize) -> usize {
        self.cpus + thread
    }

    pub(super) fn level_of_lock(&self, lock: usize) -> usize {
        self.cpus + self.threads() + lock
    }

    /// Rows of the buckets.
    pub(super) fn levels(&self) -> usize {
        self.cpus + self.threads() + self.locks()
    }

    pub(super) fn lane(&self, thread: usize, lane: Lane) -> usize {
        CPU_LANES * self.cpus + THREAD_LANES * thread + lane as usize
    }

    /// Lanes of a window.
    pub(super) fn lanes(&self) -> usize {
        CPU_LANES * self.cpus + THREAD_LANES * self.threads()
    }

    /// Rows of the buckets in the order in which they are written.
    pub(super) fn level_rows(&self, cpus: &[usize], others: bool) -> Vec<usize> {
        let threads = self.threads() - usize::from(!others);
        let threads = (0..threads).map(|t| self.level_of_thread(t));
        let locks = (0..self.locks()).map(|l| self.level_of_lock(l));
        cpus.iter().copied().chain(threads).chain(locks).collect()
    }

    /// Lanes of a window in the order in which they are written.
    pub(super) fn window_lanes(&self, cpus: &[usize], others: bool) -> Vec<usize> {
        let of_cpus = cpus.iter().flat_map(|cpu| CPU_LANES * cpu..CPU_LANES * (cpu + 1));
        let threads = self.threads() - usize::from(!others);
        let of_threads = self.lane(0, Lane::State)..self.lane(threads, Lane::State);
        of_cpus.chain(of_threads).collect()
    }
}
