//! Tables of the kernel groups that are recorded unless told otherwise: scheduler, interrupts, processes.

use crate::ids::{Cpu, Name, Nanos, Pid, ThreadKey, Tid};
use crate::words::words;

words! {
    /// State in which a thread left the CPU, by the kernel's letters (`TASK_STATE_TO_CHAR_STR`, include/linux/sched.h).
    /// With an unknown one it is asleep: it was not taken from the CPU, and waits.
    pub enum TaskState {
        /// Runnable.
        Runnable = "R",
        /// Runnable, and the CPU was taken from it.
        Preempted = "R+",
        /// Sleeping until an event or a signal.
        Sleeping = "S",
        /// Sleeping until an event; no signal wakes it.
        Uninterruptible = "D",
        /// Stopped by a signal.
        Stopped = "T",
        /// Stopped by a tracer.
        Traced = "t",
        /// Dead.
        Dead = "X",
        /// Dead, and its parent has not asked yet.
        Zombie = "Z",
        /// A thread of the kernel that is parked.
        Parked = "P",
        /// A thread of the kernel that is idle.
        Idle = "I",
        _ => Sleeping
    }
}

impl TaskState {
    /// It can go on running.
    pub fn is_runnable(self) -> bool {
        matches!(self, TaskState::Runnable | TaskState::Preempted)
    }

    /// It never runs again.
    pub fn is_dead(self) -> bool {
        matches!(self, TaskState::Dead | TaskState::Zombie)
    }
}

words! {
    /// Kind of an interrupt handler.
    pub enum IrqKind {
        /// The handlers of an interrupt line.
        Hard = "hard",
        /// A softirq.
        Soft = "soft",
        /// An interrupt vector of the CPU's own: timer, reschedule, …
        Vector = "vector",
        _ => Vector
    }
}

words! {
    /// What happened to a task.
    pub enum TaskKind {
        /// It was made.
        Fork = "fork",
        /// Its program was replaced.
        Exec = "exec",
        /// It ended.
        Exit = "exit",
        /// It has a new name.
        Rename = "rename",
        _ => Fork
    }
}

table! {
    "sched_switch",
    /// `sched_switch`: `prev` left the CPU and `next` got it.
    pub struct SchedSwitch {
        /// Time.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// Thread that left (0: idle).
        pub prev_tid: Tid,
        /// Its process.
        pub prev_pid: Pid,
        /// Its name.
        pub prev_comm: Name,
        /// Its kernel priority: -1 deadline, 0..=98 real-time, 100..=139 normal.
        pub prev_prio: i32,
        /// In which state.
        pub prev_state: TaskState,
        /// It went to sleep, and was being woken already: it can run again from now on. Its waking is the last before, or,
        /// where the waker had not come to tell it, the one that follows at once.
        pub prev_woken: bool,
        /// Thread that came (0: idle).
        pub next_tid: Tid,
        /// Its process.
        pub next_pid: Pid,
        /// Its name.
        pub next_comm: Name,
        /// Its kernel priority.
        pub next_prio: i32,
    }
}

impl SchedSwitch {
    /// Thread that left.
    pub fn prev(&self) -> ThreadKey {
        ThreadKey { pid: self.prev_pid, tid: self.prev_tid }
    }

    /// Thread that came.
    pub fn next(&self) -> ThreadKey {
        ThreadKey { pid: self.next_pid, tid: self.next_tid }
    }
}

table! {
    "sched_waking",
    /// `sched_waking`: a thread was woken.
    pub struct SchedWaking {
        /// Time.
        pub ts: Nanos,
        /// CPU of the waker.
        pub cpu: Cpu,
        /// Thread that was current on that CPU (an interrupt may have done it on top of it).
        pub waker_tid: Tid,
        /// Woken thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Its kernel priority.
        pub prio: i32,
        /// CPU on which it last ran.
        pub target_cpu: Cpu,
        /// It is a new thread (`sched_wakeup_new`).
        pub is_new: bool,
    }
}

impl SchedWaking {
    /// Woken thread.
    pub fn thread(&self) -> ThreadKey {
        ThreadKey { pid: self.pid, tid: self.tid }
    }
}

table! {
    "sched_migrate",
    /// `sched_migrate`: a thread was moved to another CPU.
    pub struct SchedMigrate {
        /// Time.
        pub ts: Nanos,
        /// CPU that decided.
        pub cpu: Cpu,
        /// Thread.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// From.
        pub from_cpu: Cpu,
        /// To.
        pub to_cpu: Cpu,
    }
}

table! {
    "irq",
    /// `irq`: one run of an interrupt handler.
    pub struct Irq {
        /// Entry.
        pub ts: Nanos,
        /// Exit minus entry.
        pub dur: i64,
        /// CPU.
        pub cpu: Cpu,
        /// What kind of handler.
        pub kind: IrqKind,
        /// Line, softirq number or vector kind ([`ft_ebpf::vector`]).
        pub number: i32,
        /// Action of the line, softirq (`TIMER`, `NET_RX`, …) or vector (`local_timer`, …).
        pub name: Name,
        /// Interrupted thread (0: idle).
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
    }
}

table! {
    "task_events",
    /// `task_events`: fork, exec, exit and rename.
    pub struct TaskEvent {
        /// Time.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// What happened.
        pub kind: TaskKind,
        /// Thread concerned (the child of a fork).
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Its name.
        pub comm: Name,
        /// Process of the parent (fork).
        pub parent_pid: Option<i32>,
    }
}
