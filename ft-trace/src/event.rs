//! What the analyses see: the rows of all event tables as one stream ordered by time.
//!
//! Tie rule: events of equal `ts` come in the order of [`Event::rank`] (a loss before what it may have
//! hidden; a thread is born, woken, moved, enters the kernel, is switched to, interrupted, and then runs), and events of
//! equal `ts` and rank in the order in which they were recorded.

use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, ThreadKey, Tid};
#[cfg(feature = "store")]
use crate::row;
use crate::tables::{Irq, LossRow, SchedMigrate, SchedSwitch, SchedWaking, TaskEvent, UserEvent};

/// The columns of [`UserEvent`] that analyses need; reading the others would cost most of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeanUserEvent {
    /// Time.
    pub ts: Nanos,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU, or [`Cpu::UNKNOWN`].
    pub cpu: Cpu,
    /// Row of `sites`.
    pub site: SiteId,
    /// Columns `arg0` … `arg2`, 0 where null. Arguments of type TSC are CLOCK_MONOTONIC nanoseconds.
    pub arg: [i64; 3],
}

#[cfg(feature = "store")]
row!(
    "user_events",
    LeanUserEvent { ts: Nanos, pid: Pid, tid: Tid, cpu: Cpu, site: SiteId, arg: [i64; 3] }
);

impl From<&UserEvent> for LeanUserEvent {
    fn from(e: &UserEvent) -> Self {
        let arg = std::array::from_fn(|i| e.arg[i].unwrap_or(0));
        LeanUserEvent { ts: e.ts, pid: e.pid, tid: e.tid, cpu: e.cpu, site: e.site, arg }
    }
}

impl LeanUserEvent {
    /// Thread that recorded it.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey { pid: self.pid, tid: self.tid }
    }
}

/// The columns of a system call that analyses need.
#[derive(Clone, Debug, PartialEq)]
pub struct LeanSyscall {
    /// Entry.
    pub ts: Nanos,
    /// Exit minus entry.
    pub dur: i64,
    /// Caller.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// Name.
    pub name: Name,
}

#[cfg(feature = "store")]
row!("syscalls", LeanSyscall { ts: Nanos, dur: i64, tid: Tid, pid: Pid, name: Name });

/// The columns of a wait for a lock of the kernel that analyses need.
#[derive(Clone, Debug, PartialEq)]
pub struct LeanContention {
    /// Begin of the wait.
    pub ts: Nanos,
    /// End minus begin.
    pub dur: i64,
    /// Waiter.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
    /// `mutex`, `rwsem-write`, …
    pub kind: Name,
}

#[cfg(feature = "store")]
row!("contention", LeanContention { ts: Nanos, dur: i64, tid: Tid, pid: Pid, kind: Name });

/// The columns of a page fault that analyses need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeanFault {
    /// Time.
    pub ts: Nanos,
    /// Thread.
    pub tid: Tid,
    /// Its process.
    pub pid: Pid,
}

#[cfg(feature = "store")]
row!("page_faults", LeanFault { ts: Nanos, tid: Tid, pid: Pid });

/// One event of the merged stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// From `loss`; `ts` is the first loss.
    Loss(LossRow),
    /// From `task_events`.
    Task(TaskEvent),
    /// From `sched_waking`.
    Waking(SchedWaking),
    /// From `sched_migrate`.
    Migrate(SchedMigrate),
    /// From `syscalls`; `ts` is the entry, and `dur` is known already.
    Syscall(LeanSyscall),
    /// From `contention`; `ts` is the begin, and `dur` is known already.
    Contention(LeanContention),
    /// From `page_faults`.
    Fault(LeanFault),
    /// From `sched_switch`.
    Switch(SchedSwitch),
    /// From `irq`; `ts` is the entry, and `dur` is known already.
    Irq(Irq),
    /// From `user_events`.
    User(LeanUserEvent),
}

impl Event {
    /// Time by which the stream is ordered.
    pub fn ts(&self) -> Nanos {
        match self {
            Event::Loss(e) => e.ts,
            Event::Task(e) => e.ts,
            Event::Waking(e) => e.ts,
            Event::Migrate(e) => e.ts,
            Event::Syscall(e) => e.ts,
            Event::Contention(e) => e.ts,
            Event::Fault(e) => e.ts,
            Event::Switch(e) => e.ts,
            Event::Irq(e) => e.ts,
            Event::User(e) => e.ts,
        }
    }

    /// Order among events of equal time.
    pub fn rank(&self) -> u8 {
        match self {
            Event::Loss(_) => 0,
            Event::Task(_) => 1,
            Event::Waking(_) => 2,
            Event::Migrate(_) => 3,
            Event::Syscall(_) => 4,
            Event::Contention(_) => 5,
            Event::Fault(_) => 6,
            Event::Switch(_) => 7,
            Event::Irq(_) => 8,
            Event::User(_) => 9,
        }
    }
}
