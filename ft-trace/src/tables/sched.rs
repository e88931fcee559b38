//! Group `sched`: who had a CPU, who was woken, who was moved.

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
        pub prev_prio: i32 as Priority,
        /// In which state.
        pub prev_state: TaskState,
        /// It went to sleep, and was being woken already: it can run again from now on. Its waking is the last before, or,
        /// where the waker had not yet recorded it, the one that follows at once.
        pub prev_woken: bool,
        /// Thread that came (0: idle).
        pub next_tid: Tid,
        /// Its process.
        pub next_pid: Pid,
        /// Its name.
        pub next_comm: Name,
        /// Its kernel priority.
        pub next_prio: i32 as Priority,
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
        pub prio: i32 as Priority,
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

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind};
    use serde_json::{Map, Value};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, nanos, pid, tid};

    use super::*;

    impl KernelTable for SchedSwitch {
        type Record = abi::Switch;
        const KINDS: &'static [u16] = &[kind::SWITCH];

        #[inline]
        fn row(r: &abi::Switch, seen: &mut Decoder) -> SchedSwitch {
            let row = SchedSwitch {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                prev_tid: tid(r.header.tid),
                prev_pid: pid(r.prev_tgid),
                prev_comm: seen.comm(r.prev_comm),
                prev_prio: r.prev_prio,
                prev_state: state(r.prev_state & !abi::Switch::BEING_WOKEN),
                prev_woken: r.prev_state & abi::Switch::BEING_WOKEN != 0,
                next_tid: tid(r.next_tid),
                next_pid: pid(r.next_tgid),
                next_comm: seen.comm(r.next_comm),
                next_prio: r.next_prio,
            };
            let (prev, next) = (Some(&row.prev_comm), Some(&row.next_comm));
            seen.threads.seen(row.prev_pid, row.prev_tid, row.ts, prev, Some(row.prev_prio));
            seen.threads.seen(row.next_pid, row.next_tid, row.ts, next, Some(row.next_prio));
            row
        }
    }

    /// State of a `prev_state`: bits of `TASK_REPORT` and what is folded into them
    /// (include/linux/sched.h; `TASK_STATE_TO_CHAR_STR` in its order R S D T t X Z P I).
    fn state(state: u32) -> TaskState {
        const DEAD: u32 = 0x80;
        // Where the tracepoint does not pass the state, a waker may have put this in the place of how it slept.
        const WAKING: u32 = 0x200;
        const NOLOAD: u32 = 0x400;
        const RTLOCK_WAIT: u32 = 0x1000;
        // Since Linux 6.1; before, a frozen task was uninterruptible. It sleeps in this state alone.
        const FROZEN: u32 = 0x8000;
        if state & abi::Switch::PREEMPTED != 0 {
            return TaskState::Preempted;
        }
        match state {
            s if s & 0x2 != 0 && s & NOLOAD != 0 => TaskState::Idle,
            s if s & 0x1 != 0 => TaskState::Sleeping,
            s if s & (0x2 | RTLOCK_WAIT | FROZEN) != 0 => TaskState::Uninterruptible,
            s if s & 0x4 != 0 => TaskState::Stopped,
            s if s & 0x8 != 0 => TaskState::Traced,
            s if s & (0x10 | DEAD) != 0 => TaskState::Dead,
            s if s & 0x20 != 0 => TaskState::Zombie,
            s if s & 0x40 != 0 => TaskState::Parked,
            s if s & WAKING != 0 => TaskState::Sleeping,
            _ => TaskState::Runnable,
        }
    }

    impl Listed for SchedSwitch {
        fn names() -> &'static [&'static str] {
            &["sched.switch"]
        }

        fn object(&self) -> Option<(Pid, Tid)> {
            Some((self.next_pid, self.next_tid))
        }

        fn name(&self) -> Cow<'_, str> {
            "sched.switch".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.prev_pid), self.prev_tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "({}) -> ", self.prev_state)?;
            line.thread_named(&self.next_comm, self.next_tid)?;
            if self.next_tid.0 == 0 { Ok(()) } else { write!(line, " prio {}", self.next_prio) }
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "prev_tid", "prev_pid", "prev_comm", "prev_woken"])
        }
    }

    impl KernelTable for SchedWaking {
        type Record = abi::Waking;
        const KINDS: &'static [u16] = &[kind::WAKING, kind::WAKEUP_NEW];

        #[inline]
        fn row(r: &abi::Waking, seen: &mut Decoder) -> SchedWaking {
            let ts = nanos(r.header.ts);
            seen.threads.woken(pid(r.tgid), tid(r.tid), ts, r.prio);
            SchedWaking {
                ts,
                cpu: cpu(r.header.cpu),
                waker_tid: tid(r.header.tid),
                tid: tid(r.tid),
                pid: pid(r.tgid),
                prio: r.prio,
                target_cpu: Cpu(r.target_cpu as i32),
                is_new: r.header.kind == kind::WAKEUP_NEW,
            }
        }
    }

    impl Listed for SchedWaking {
        fn names() -> &'static [&'static str] {
            &["sched.waking", "sched.wakeup_new"]
        }

        fn object(&self) -> Option<(Pid, Tid)> {
            Some((self.pid, self.tid))
        }

        fn name(&self) -> Cow<'_, str> {
            if self.is_new { "sched.wakeup_new" } else { "sched.waking" }.into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (None, self.waker_tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            line.write_str("-> ")?;
            line.thread(self.pid, self.tid)?;
            write!(line, " prio {} (last on cpu {})", self.prio, self.target_cpu)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "waker_tid", "is_new"])
        }
    }

    impl KernelTable for SchedMigrate {
        type Record = abi::Migrate;
        const KINDS: &'static [u16] = &[kind::MIGRATE];

        #[inline]
        fn row(r: &abi::Migrate, _: &mut Decoder) -> SchedMigrate {
            SchedMigrate {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                tid: tid(r.tid),
                pid: pid(r.tgid),
                from_cpu: Cpu(r.from_cpu as i32),
                to_cpu: Cpu(r.to_cpu as i32),
            }
        }
    }

    impl Listed for SchedMigrate {
        fn names() -> &'static [&'static str] {
            &["sched.migrate"]
        }

        fn name(&self) -> Cow<'_, str> {
            "sched.migrate".into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "cpu {} -> {}", self.from_cpu, self.to_cpu)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn states_have_their_letters() {
            let check = |bits, expected| assert_eq!(state(bits).word(), expected, "{bits:#x}");
            check(0, "R");
            check(abi::Switch::PREEMPTED, "R+");
            check(abi::Switch::PREEMPTED | 1, "R+");
            check(0x1, "S");
            check(0x2, "D");
            check(0x102, "D"); // TASK_KILLABLE
            check(0x402, "I"); // TASK_IDLE
            check(0x4, "T");
            check(0x8, "t");
            check(0x80, "X"); // TASK_DEAD
            check(0x20, "Z");
            check(0x40, "P");
            check(0x1000, "D"); // TASK_RTLOCK_WAIT
            check(0x8000, "D"); // TASK_FROZEN
            check(0x2001, "S"); // with TASK_FREEZABLE
            check(0x200, "S"); // TASK_WAKING, before Linux 5.18
        }
    }
}
