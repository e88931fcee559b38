//! Records of the scheduler.

use super::{COMM_LEN, Header};

/// `sched_switch`: `prev` leaves the CPU, `next` gets it. `header.tid` is `prev`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Common part.
    pub header: Header,
    /// Process id of the task that leaves.
    pub prev_tgid: u32,
    /// Kernel priority of the task that leaves: 0..=98 real-time, 100..=139 normal, -1 deadline.
    pub prev_prio: i32,
    /// `prev_state` of the tracepoint: 0 running, 1 interruptible, 2 uninterruptible, …; see
    /// [`Switch::PREEMPTED`] and [`Switch::BEING_WOKEN`].
    pub prev_state: u32,
    /// Thread id of the task that comes.
    pub next_tid: u32,
    /// Process id of the task that comes.
    pub next_tgid: u32,
    /// Kernel priority of the task that comes.
    pub next_prio: i32,
    /// Name of the task that leaves.
    pub prev_comm: [u8; COMM_LEN],
    /// Name of the task that comes.
    pub next_comm: [u8; COMM_LEN],
}

impl Switch {
    /// Set in `prev_state` when the tracepoint said that the switch was a preemption.
    pub const PREEMPTED: u32 = 1 << 31;
    /// Set in `prev_state` when the task goes to sleep and somebody is about to wake it already: it can run again as
    /// soon as it is off the CPU. Its waking was recorded before, or follows at once.
    ///
    /// The waker holds `pi_lock` from before its `sched_waking` until the wake-up is done; until it has enqueued the
    /// task, which it cannot before the switch, it has set the state to `TASK_WAKING`. Only while the scheduler looks
    /// for work on other CPUs, without the lock of its queue, can a wake-up be done altogether: then the state is
    /// `TASK_RUNNING` (`try_to_wake_up`, `ttwu_runnable`, `__schedule`: kernel/sched/core.c). A waking that the task
    /// had undone before, by setting its state, has left none of these.
    pub const BEING_WOKEN: u32 = 1 << 30;
}

/// `sched_waking` or `sched_wakeup_new`: `header.tid` (or an interrupt on top of it) wakes `tid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waking {
    /// Common part; `tid` is the waker.
    pub header: Header,
    /// Thread that is woken.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Its kernel priority.
    pub prio: i32,
    /// CPU on which it last ran (the tracepoint fires before a CPU is chosen).
    pub target_cpu: u32,
}

/// `sched_migrate_task`: `tid` moves from `from_cpu` to `to_cpu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrate {
    /// Common part.
    pub header: Header,
    /// Thread that moves.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Where it was.
    pub from_cpu: u32,
    /// Where it goes.
    pub to_cpu: u32,
}
