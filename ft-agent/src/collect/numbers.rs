//! Numbers of the threads of a process that lives in a PID namespace of its own.
//!
//! Only the threads themselves tell which number they have where, each in its `/proc/PID/task/TID/status`. A
//! process decides how many threads it has, and how often a number is asked for that none of them has; so each
//! is read once, one that is known is only checked, and all reading of one process is bounded: by [`BURST`], and
//! in the long run by [`PER_SECOND`], some 10 µs each. Beyond that a number stays unknown, which the trace
//! says ([`super::discover::unnumbered`]).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::discover::{inner, read, threads};

/// Files that are read at once, at most: as many threads can begin together.
///
/// Limit: such a thread is listed under minus its own number, unless the kernel's records give its number; a warning
/// says how many are.
/// Shown by: `what_is_asked_for_without_end_costs_a_bounded_number_of_files`.
const BURST: f64 = 4096.0;

/// Files that are read in a second in the long run.
///
/// Limit: as `BURST`.
const PER_SECOND: f64 = 1024.0;

/// Threads that can be listed for the price of a file.
const LISTED: f64 = 16.0;

/// What is known of one process.
#[derive(Debug)]
pub(super) struct Numbers {
    /// From the number that a thread has in its own namespace to the one in ours.
    known: HashMap<i32, i32>,
    /// Files that may be read now.
    left: f64,
    /// When that was so.
    at: Instant,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers { known: HashMap::new(), left: BURST, at: Instant::now() }
    }
}

impl Numbers {
    /// The thread of process `pid` that has the number `tid` in its own namespace, by its number in ours.
    pub(super) fn find(&mut self, pid: i32, tid: i32) -> Option<i32> {
        let now = Instant::now();
        self.left = BURST.min(self.left + (now - self.at).as_secs_f64() * PER_SECOND);
        self.at = now;
        if let Some(&outer) = self.known.get(&tid) {
            // It may have ended, and its number may be another's.
            if self.read(pid, outer)? == Some(tid) {
                return Some(outer);
            }
            self.known.remove(&tid);
        }
        let task = fs::metadata(format!("/proc/{pid}/task")).ok()?;
        // One link for each thread (proc_task_getattr in fs/proc/base.c).
        self.pay(task.nlink() as f64 / LISTED)?;
        let threads = threads(pid);
        let there: HashSet<i32> = threads.iter().copied().collect();
        self.known.retain(|_, outer| there.contains(outer));
        let read: HashSet<i32> = self.known.values().copied().collect();
        for outer in threads.into_iter().filter(|outer| !read.contains(outer)) {
            if let Some(inner) = self.read(pid, outer)? {
                self.known.insert(inner, outer);
            }
        }
        self.known.get(&tid).copied()
    }

    /// Number of a thread in its own namespace; the outer `None` when no more may be read.
    fn read(&mut self, pid: i32, outer: i32) -> Option<Option<i32>> {
        self.pay(1.0)?;
        Some(inner(&read(&format!("/proc/{pid}/task/{outer}/status"))))
    }

    fn pay(&mut self, files: f64) -> Option<()> {
        self.left -= files;
        (self.left >= 0.0).then_some(()).or_else(|| {
            self.left += files;
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn what_is_asked_for_without_end_costs_a_bounded_number_of_files() {
        let mut numbers = Numbers::default();
        let began = Instant::now();
        // No thread has these.
        for tid in 1..10_000 {
            assert_eq!(numbers.find(own(), tid), None);
        }
        let refilled = began.elapsed().as_secs_f64() * PER_SECOND;
        assert!(numbers.left <= 1.0 + refilled, "{} left", numbers.left);
        assert!(numbers.left >= 0.0);
    }

    #[test]
    fn what_is_known_is_checked() {
        let mut numbers = Numbers::default();
        // As if another thread had had that number, which has ended; or this one, which has another now.
        numbers.known.extend([(7, -1), (8, own())]);
        assert_eq!((numbers.find(own(), 7), numbers.find(own(), 8)), (None, None));
        assert!(numbers.known.is_empty());
    }
}
