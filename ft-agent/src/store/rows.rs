//! The tables of a trace, one struct a row.
//!
//! A struct is declared here once; its schema, writer and reader follow from it (see [`super::schema`]).
//! A field's name is the column's name; its type decides the column's type: [`Nanos`], `i64`: int64;
//! [`Tid`], [`Pid`], [`Cpu`], [`SiteId`], `i32`: int32; [`Name`]: dictionary of UTF-8; `f64`: double;
//! `bool`; `Option`: nullable. Times are CLOCK_MONOTONIC nanoseconds, durations nanoseconds.
//! Rows are sorted by their first column.

mod kernel_groups;

pub use kernel_groups::{Contention, PageFault, Syscall};

use super::schema::table;
use crate::model::{Cpu, Name, Nanos, Pid, SiteId, Tid};

table! {
    "user_events",
    /// `user_events`: one event of an application.
    pub struct UserEvent {
        /// Time.
        pub ts: Nanos,
        /// The TSC as recorded.
        pub tsc: i64,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// CPU on which the event was recorded.
        pub cpu: Cpu,
        /// Row of `sites`.
        pub site: SiteId,
        /// Name of the event, `category.name`.
        pub event: Name,
        /// Category.
        pub category: Name,
        /// Columns `arg0` … `arg5`: integers, booleans, pointers (bit patterns of u64).
        pub arg: [Option<i64>; 6],
        /// Columns `argf0` … `argf5`: floating-point arguments.
        pub argf: [Option<f64>; 6],
        /// Columns `argt0` … `argt5`: text arguments.
        pub argt: [Option<Name>; 6],
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
        /// `R` runnable, `R+` preempted, `S` sleeping, `D` uninterruptible, `T`, `t`, `X`, `Z`, `P`, `I`.
        pub prev_state: Name,
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

table! {
    "threads",
    /// `threads`: one thread that was seen.
    pub struct ThreadRow {
        /// First time that it was seen.
        pub ts: Nanos,
        /// Thread.
        pub tid: Tid,
        /// Process.
        pub pid: Pid,
        /// Newest name.
        pub name: Name,
        /// Name of the process.
        pub process: Name,
        /// Newest kernel priority that was seen.
        pub prio: Option<i32>,
        /// It belongs to a process that is recorded.
        pub observed: bool,
    }
}

table! {
    "sites",
    /// `sites`: metadata of the sites of each process.
    pub struct SiteRow {
        /// Number in this trace.
        pub site: SiteId,
        /// Process.
        pub pid: Pid,
        /// `category.name`.
        pub event: Name,
        /// Category.
        pub category: Name,
        /// [`ft_user::layout::SiteKind`] as text: `event`, `lock_acquire`, …
        pub kind: Name,
        /// Source file.
        pub file: Name,
        /// Source line.
        pub line: i32,
        /// Arguments: `name:type, …`.
        pub args: Name,
        /// Format string.
        pub format: Name,
        /// Triggers in the text that refer to it.
        pub triggers: i32,
    }
}

table! {
    "symbols",
    /// `symbols`: what the addresses in lock events are, of programs that are traced unmodified.
    pub struct SymbolRow {
        /// Process.
        pub pid: Pid,
        /// `arg1` of the event, where the call returns to, or `arg0`, the lock.
        pub address: i64,
        /// `call` or `lock`.
        pub kind: Name,
        /// Function that made the call, or variable that the lock is or lies in, demangled; empty when
        /// not known.
        pub symbol: Name,
        /// Source file; empty when not known.
        pub file: Name,
        /// Line of the call; 0 when not known.
        pub line: i32,
        /// Program or library.
        pub object: Name,
        /// The address in the object's own address space, as `objdump` shows it.
        pub offset: i64,
    }
}

table! {
    "names",
    /// `names`: names of locks and source places, by the numbers that lock events carry.
    pub struct NameRow {
        /// Process.
        pub pid: Pid,
        /// Number within the process.
        pub id: i32,
        /// `name` or `place`.
        pub kind: Name,
        /// Name, or source file.
        pub text: Name,
        /// Line (0 for a name).
        pub line: i32,
        /// Column (0 for a name).
        pub column: i32,
    }
}

table! {
    "clock",
    /// `clock`: samples of the clock model.
    pub struct ClockRow {
        /// CLOCK_MONOTONIC of the sample.
        pub ts: Nanos,
        /// TSC of the sample.
        pub tsc: i64,
        /// Width of the bracket, ns.
        pub bracket_ns: i64,
        /// Distance of the sample from the line between its neighbours, ns.
        pub residual_ns: i64,
        /// Bound of the error from this sample to the next, ns.
        pub bound_ns: i64,
        /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
        pub realtime_offset_ns: i64,
        /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, ns.
        pub boottime_offset_ns: i64,
        /// CPU of the sample.
        pub cpu: Cpu,
    }
}

table! {
    "loss",
    /// `loss`: what was lost, and where.
    pub struct LossRow {
        /// First loss.
        pub ts: Nanos,
        /// Last loss minus first.
        pub dur: i64,
        /// `ring`, `shared-ring`, `directory`, `kernel` or `agent`.
        pub origin: Name,
        /// What was lost: a program or a reason.
        pub what: Name,
        /// CPU, -1 when it does not apply.
        pub cpu: Cpu,
        /// Process, -1 when it does not apply.
        pub pid: Pid,
        /// Thread, -1 when it does not apply.
        pub tid: Tid,
        /// How many.
        pub count: i64,
    }
}

/// Where the time of an interval of one thread went. The parts sum to the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decomposition {
    /// On a CPU, outside interrupts.
    pub running_ns: i64,
    /// Off the CPU while runnable: preempted, or woken and not yet dispatched.
    pub preempted_ns: i64,
    /// Off the CPU, waiting for something.
    pub blocked_ns: i64,
    /// On the CPU, in a hardware interrupt handler.
    pub hardirq_ns: i64,
    /// On the CPU, in a softirq.
    pub softirq_ns: i64,
    /// On the CPU, in an interrupt vector (timer, reschedule, …).
    pub vector_ns: i64,
    /// Covered by no record.
    pub unexplained_ns: i64,
}

impl Decomposition {
    /// Names of the parts, which are their columns.
    pub const NAMES: [&str; 7] = [
        "running_ns",
        "preempted_ns",
        "blocked_ns",
        "hardirq_ns",
        "softirq_ns",
        "vector_ns",
        "unexplained_ns",
    ];

    /// The parts in the order of [`Decomposition::NAMES`].
    pub fn to_array(self) -> [i64; 7] {
        [
            self.running_ns,
            self.preempted_ns,
            self.blocked_ns,
            self.hardirq_ns,
            self.softirq_ns,
            self.vector_ns,
            self.unexplained_ns,
        ]
    }

    /// Inverse of [`Decomposition::to_array`].
    pub fn from_array(parts: [i64; 7]) -> Decomposition {
        let [
            running_ns,
            preempted_ns,
            blocked_ns,
            hardirq_ns,
            softirq_ns,
            vector_ns,
            unexplained_ns,
        ] = parts;
        Decomposition {
            running_ns,
            preempted_ns,
            blocked_ns,
            hardirq_ns,
            softirq_ns,
            vector_ns,
            unexplained_ns,
        }
    }

    /// Sum of the parts.
    pub fn total_ns(&self) -> i64 {
        self.running_ns
            + self.preempted_ns
            + self.blocked_ns
            + self.hardirq_ns
            + self.softirq_ns
            + self.vector_ns
            + self.unexplained_ns
    }
}

table! {
    "critical_sections",
    /// `critical_sections`: one hold of one lock.
    pub struct CriticalSection {
        /// Acquisition.
        pub ts: Nanos,
        /// Release minus acquisition.
        pub dur: i64,
        /// Process.
        pub pid: Pid,
        /// Holder.
        pub tid: Tid,
        /// Address of the lock.
        pub lock: i64,
        /// Name of the lock, or its address in hexadecimal when it has none.
        pub lock_name: Name,
        /// `mutex`, `rwlock-read`, `rwlock-write`, from the event's name.
        pub kind: Name,
        /// Acquiring event in `sites`.
        pub site: SiteId,
        /// Source place of the acquisition, `file:line`, empty when not known.
        pub place: Name,
        /// Locks that the thread already held (Feather-Trace, section 3).
        pub depth: i32,
        /// From the start of the wait to the acquisition; 0 when the lock was free.
        pub wait_ns: i64,
        /// It began or ended with a condition wait.
        pub condition: bool,
        /// Decomposition of `dur`; null without a kernel stream.
        pub parts: Option<Decomposition>,
        /// Who ran most while the holder was preempted; null when it was not.
        pub preemptor_tid: Option<i32>,
        /// Name of that thread.
        pub preemptor_comm: Option<Name>,
        /// How long that thread had the CPU meanwhile.
        pub preemptor_ns: Option<i64>,
        /// `exact`, or `touched-by-loss` when records were lost during the hold.
        pub mark: Name,
    }
}

table! {
    "dispatch_latency",
    /// `dispatch_latency`: one wake-up of an observed thread.
    pub struct DispatchLatency {
        /// Waking.
        pub ts: Nanos,
        /// From the waking to the switch that let it run.
        pub dur: i64,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// CPU on which it then ran.
        pub cpu: Cpu,
        /// Its priority.
        pub prio: i32,
        /// Who woke it (the thread that was current; 0: idle, so an interrupt).
        pub waker_tid: Tid,
        /// Name of the waker.
        pub waker_comm: Name,
        /// Who had the CPU longest from the waking to the dispatch; null when unknown. 0: idle.
        pub running_tid: Option<i32>,
        /// Name of that thread.
        pub running_comm: Option<Name>,
        /// How long it had it.
        pub running_ns: Option<i64>,
        /// The thread was moved to another CPU meanwhile.
        pub migrated: bool,
        /// `exact`, or `touched-by-loss`.
        pub mark: Name,
    }
}

table! {
    "gaps",
    /// `gaps`: one interval in which a polling thread did not run.
    pub struct Gap {
        /// Last poll before.
        pub ts: Nanos,
        /// First poll after, minus `ts`.
        pub dur: i64,
        /// Process.
        pub pid: Pid,
        /// Polling thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// CPU of the first poll after.
        pub cpu: Cpu,
        /// What took most of the gap by the kernel's account: `switched-out`, `blocked`, `hardirq`,
        /// `softirq`, `vector`, `unexplained`; null without a kernel stream.
        pub cause: Option<Name>,
        /// Who (thread name) or which (interrupt name) it was.
        pub culprit: Option<Name>,
        /// Its thread id, for a switch.
        pub culprit_tid: Option<i32>,
        /// Decomposition of `dur`. The poller did not run, so `running_ns` is 0: time on the CPU outside
        /// every recorded interrupt counts as `unexplained_ns` (kernel entry and exit, faults, steal, SMI).
        pub parts: Option<Decomposition>,
        /// Cause inferred from user time stamps alone (Hourglass, section 4): `switch-to-sibling`, `tick`,
        /// `interrupt`, `long`.
        pub inferred: Name,
        /// `exact`, or `touched-by-loss`.
        pub mark: Name,
    }
}
