//! What the analyses see: the rows of all event tables as one stream ordered by time.
//!
//! Tie rule: events of equal `ts` come in the order of [`Event::rank`] (a loss before what it may have
//! hidden; a thread is born, woken, moved, switched to, interrupted, and then runs), and events of
//! equal `ts` and rank in the order in which they were recorded.

use crate::model::{Cpu, Nanos, Pid, SiteId, Tid};
use crate::store::rows::{
    Irq, LossRow, SchedMigrate, SchedSwitch, SchedWaking, TaskEvent, UserEvent,
};
use crate::store::schema::row;

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
            Event::Switch(_) => 4,
            Event::Irq(_) => 5,
            Event::User(_) => 6,
        }
    }
}
