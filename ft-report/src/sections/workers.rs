//! Workers of a load, for the reports that have a line for each.

use serde::Serialize;

use crate::document::Thread;
use crate::stats::Groups;
use ft_analysis::Mark;
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::tables::{LoadWorker, Policy};

/// Workers with a line of their own; further ones are in one of others.
///
/// Limit: one row of others.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_WORKERS: usize = 16_384;

/// Something of each worker.
pub(super) type ByWorker<V> = Groups<MAX_WORKERS, (Pid, Tid), V>;

/// By what other threads and interrupts are called: as many of these.
pub(super) type ByCulprit<V> = Groups<MAX_WORKERS, Name, V>;

/// Which worker a line is of. By this order lines are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WorkerId {
    /// Process.
    pub pid: i32,
    /// Its number in the load; -1 where it was not recorded that it announced itself.
    pub worker: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
}

impl WorkerId {
    pub(super) fn new((pid, tid): (Pid, Tid), named: Option<(i32, &Name)>) -> WorkerId {
        WorkerId {
            pid: pid.0,
            worker: named.map_or(-1, |(worker, _)| worker),
            tid: tid.0,
            comm: named.map_or_else(String::new, |(_, comm)| comm.to_string()),
        }
    }

    /// As a cell of a table.
    pub(super) fn thread(&self) -> Thread {
        Thread::of(Some(self.tid), Some(&self.comm))
    }
}

/// A worker as it announced itself.
#[derive(Clone, Debug, Serialize)]
pub struct Announced {
    /// Which.
    #[serde(flatten)]
    pub id: WorkerId,
    /// What it does.
    pub workload: &'static str,
    /// How it is scheduled.
    pub policy: &'static str,
    /// Real-time priority, or nice value.
    pub priority: i32,
    /// How far the counts of the worker can be believed.
    pub mark: Mark,
}

impl Announced {
    /// `None`: of a thread it was not recorded, or of those that have no line of their own.
    pub(super) fn new(thread: (Pid, Tid), row: Option<&LoadWorker>) -> Announced {
        Announced {
            id: WorkerId::new(thread, row.map(|w| (w.worker, &w.comm))),
            workload: row.map_or("", |w| w.workload.word()),
            policy: row.map_or(Policy::Unknown, |w| w.policy).word(),
            priority: row.map_or(0, |w| w.priority),
            mark: row.map_or(Mark::Censored, |w| w.mark),
        }
    }
}
