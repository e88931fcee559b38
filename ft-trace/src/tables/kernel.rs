//! Tables of the kernel groups that are recorded unless told otherwise: scheduler, interrupts, processes.

use crate::ids::{Cpu, Name, Nanos, Pid, ThreadKey, Tid};

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
        /// `R` runnable, `R+` preempted, `S` sleeping, `D` uninterruptible, `T`, `t`, `X`, `Z`, `P`, `I`.
        pub prev_state: Name,
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
        /// `hard`, `soft` or `vector`.
        pub kind: Name,
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
        /// `fork`, `exec`, `exit` or `rename`.
        pub kind: Name,
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
