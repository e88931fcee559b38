//! Tables that the analyses write.

use super::decomposition::{Counts, Decomposition, Part};
use crate::Mark;
use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use crate::words::words;

words! {
    /// What took most of a gap, by the kernel's account.
    pub enum GapCause {
        /// Another thread had the CPU.
        SwitchedOut = "switched-out",
        /// The thread waited for something.
        Blocked = "blocked",
        /// Handlers of interrupt lines.
        Hardirq = "hardirq",
        /// Softirqs.
        Softirq = "softirq",
        /// Interrupt vectors: timer, reschedule, …
        Vector = "vector",
        /// Nothing was recorded, and such gaps come with the period of a host's tick.
        Steal = "steal",
        /// Nothing was recorded.
        Unexplained = "unexplained",
        _ => Unexplained
    }
}

words! {
    /// Cause of a gap, inferred from user time stamps alone.
    pub enum InferredCause {
        /// Another polling thread of the process ran on the CPU.
        SwitchToSibling = "switch-to-sibling",
        /// As long as a time slice: another thread ran.
        Long = "long",
        /// Gaps of this CPU come with a period, and this is one of them.
        Tick = "tick",
        /// An interrupt.
        Interrupt = "interrupt",
        _ => Interrupt
    }
}

words! {
    /// What the kernel saw of a gap, in the words of the inference; three more are not judged.
    pub enum GapSeen {
        /// Switched out, and most of it had a thread that has polled, of the same process.
        SwitchToSibling = "switch-to-sibling",
        /// Switched out by another thread, or blocked.
        Long = "long",
        /// An interrupt, with a local timer interrupt in the gap.
        Tick = "tick",
        /// Any other interrupt.
        Interrupt = "interrupt",
        /// Nothing was recorded, and such gaps come with the period of a host's tick.
        Steal = "steal",
        /// Nothing was recorded.
        Unexplained = "unexplained",
        /// There is no account of that time.
        NoAccount = "no account",
        _ => NoAccount
    }
}

words! {
    /// What is held of a lock, as far as the kinds of `ft-user` go; a program may name others.
    pub enum LockKind {
        /// A mutex.
        Mutex = "mutex",
        /// A read-write lock, shared with other readers.
        RwlockRead = "rwlock-read",
        /// A read-write lock, exclusively.
        RwlockWrite = "rwlock-write",
        /// A spinlock.
        Spin = "spin",
        /// Some of a semaphore's count.
        Semaphore = "semaphore",
        /// Another kind.
        Other = "other",
        _ => Other
    }
}

words! {
    /// What came of the time-slice extension that a holder asked for (`Mutex::with_slice_extension` of `ft-user`), as of its release.
    pub enum SliceOutcome {
        /// It did not ask, or does not record it.
        None = "none",
        /// It could not ask.
        Impossible = "impossible",
        /// It had asked, and the kernel had no reason to grant one.
        Pending = "pending",
        /// It was granted one, and released the lock within it.
        Granted = "granted",
        /// It was off the CPU all the same, or made a system call in one that was granted.
        Over = "over",
        _ => None
    }
}

impl SliceOutcome {
    /// What the event of a release says by a number, `ft_user::layout::Slice`; applications may say anything.
    pub fn told(number: i64) -> SliceOutcome {
        match number {
            1 => SliceOutcome::Impossible,
            2 => SliceOutcome::Pending,
            3 => SliceOutcome::Granted,
            4 => SliceOutcome::Over,
            _ => SliceOutcome::None,
        }
    }
}

table! {
    "critical_sections",
    /// `critical_sections`: one hold of one lock.
    pub struct CriticalSection {
        /// Acquisition.
        pub ts: Nanos,
        /// Release minus acquisition.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Holder; of a lock that a task took from one thread to another, the one that released it.
        pub tid: Tid,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// Name of the lock, or its address in hexadecimal when it has none.
        pub lock_name: Name,
        /// From the event's name.
        pub kind: Name,
        /// Acquiring event in `sites`.
        pub site: SiteId,
        /// Source place of the acquisition, `file:line`, empty when not known.
        pub place: Name,
        /// Locks that the thread already held (Feather-Trace, section 3): by itself, and by tasks that it then ran.
        pub depth: i32 as Count,
        /// [`Mark`] of `depth` alone: `lower bound` where the thread may hold a lock whose acquisition was not recorded: begun before
        /// the recording, before its sites were on, or in a loss; else `exact`. All else is as true as `mark` says.
        pub depth_mark: Mark,
        /// From the start of the wait to the acquisition; 0 when the lock was free.
        pub wait_ns: i64 as Ns,
        /// It began or ended with a condition wait.
        pub condition: bool,
        /// What came of a time-slice extension; `none` where it ended with a condition wait. Of nested holds the outermost
        /// asks for all.
        pub slice: SliceOutcome,
        /// Decomposition of `dur`; null without a kernel stream. Of a hold that began in a task, only the time in which threads
        /// ran that task is theirs, and the rest is `parked_ns`.
        pub parts: Option<Decomposition>,
        /// How often something happened to the thread meanwhile.
        pub counts: Option<Counts>,
        /// Columns `counter0` and `counter1`: what the counters that `record --counter` was given, in their order, counted of the
        /// thread in user space meanwhile (`task-clock`: ns on a CPU, in the kernel, too), with what the recording of its events executed there.
        /// Null where there is none, where it is not
        /// known what it showed at both ends, or whether it counted all the time, and where its task was parked meanwhile.
        pub counter: [Option<i64>; 2] as Count,
        /// Who ran most in `preempted_ns`; null when it is 0.
        pub preemptor_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub preemptor_comm: Option<Name>,
        /// How long that thread had the CPU meanwhile.
        pub preemptor_ns: Option<i64> as Ns,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU: what
        /// the recording itself is to blame for. Null when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the holder waited for room in its ring, or `lower bound` when
        /// records were lost during the hold, or it is not known
        /// of all the time off the CPU who had it.
        pub mark: Mark,
    }
}

impl CriticalSection {
    /// What is held.
    pub fn lock_kind(&self) -> LockKind {
        LockKind::of(&self.kind)
    }
}

table! {
    "dispatch_latency",
    /// `dispatch_latency`: one wake-up of an observed thread.
    pub struct DispatchLatency {
        /// Since when it could run and did not: the waking; or, where that came while the thread was on its way off the
        /// CPU (`sched_switch.prev_woken`), the switch away, or that record where it stands behind the switch.
        pub ts: Nanos,
        /// From then to the switch that let it run; with the others of the thread, the part *dispatch* of its time.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// CPU on which it then ran.
        pub cpu: Cpu,
        /// Its priority.
        pub prio: i32 as Priority,
        /// Who woke it: the thread that was current, which an interrupt may have struck; 0: idle, so an interrupt. Which it was, the table
        /// `irq` tells.
        pub waker_tid: Tid,
        /// Name of the waker.
        pub waker_comm: Name,
        /// Who had the CPU longest from `ts` to the dispatch; null when unknown. 0: idle.
        pub running_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub running_comm: Option<Name>,
        /// How long it had it.
        pub running_ns: Option<i64> as Ns,
        /// The thread was moved to another CPU meanwhile.
        pub migrated: bool,
        /// Call chain of the waker, in `stacks`; null without one: the thread had slept for less than `--stack-min`, or the
        /// group `stack` was not recorded.
        pub stack: Option<i64> as Number,
        /// Of `dur`, the time in which threads of the agent that recorded had the CPU. Null when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`; `lower bound` when it is not known of all the time who had the CPU, so that
        /// another may have had it longer; or `censored` when scheduler records were lost meanwhile: what was dispatched
        /// then may be a later wake-up.
        pub mark: Mark,
    }
}

table! {
    "gaps",
    /// `gaps`: one interval in which a polling thread did not run.
    pub struct Gap {
        /// Last poll before.
        pub ts: Nanos,
        /// First poll after, minus `ts`.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Polling thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// CPU of the first poll after.
        pub cpu: Cpu,
        /// The largest part of the gap that the kernel recorded; most of the gap can be unexplained beside it; null without a kernel stream.
        pub cause: Option<GapCause>,
        /// Who (thread name) or which (interrupt name, `host tick, 10.0 ms`) it was.
        pub culprit: Option<Name>,
        /// Its thread id, for a switch.
        pub culprit_tid: Option<i32> as Tid,
        /// Decomposition of `dur`. The poller did not run, so `running_ns` is 0: time on the CPU outside
        /// every recorded interrupt counts as `unexplained_ns` (kernel entry and exit, faults, steal, SMI).
        pub parts: Option<Decomposition>,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// Cause inferred from user time stamps alone (Hourglass, section 4).
        pub inferred: InferredCause,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, or `lower bound` when
        /// records were lost during the gap, or it is not known
        /// of all of it who had the CPU.
        pub mark: Mark,
    }
}

table! {
    "thread_time",
    /// `thread_time`: the time of one observed thread that went to one part, by one culprit. The rows of a
    /// thread sum to its `wall_ns`, to the nanosecond.
    pub struct ThreadTime {
        /// First sight of the thread.
        pub ts: Nanos,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its newest name.
        pub comm: Name,
        /// What it did, or what was done to it.
        pub part: Part,
        /// Who ran instead (the newest name of a thread that was renamed), which interrupt, or what it waited for: `lock NAME`,
        /// `semaphore NAME`, `condition of NAME`, `barrier NAME`, `receive from NAME`, `room in NAME`, `full ring` (room in its own, for the tracer), `kernel lock KIND`,
        /// `system call NAME`, `page fault`, or the state in which it
        /// left the CPU (`asleep`, `uninterruptible`, `stopped`). Of *unexplained*: `no record`, or `in gaps`,
        /// where the thread itself says that it did not run although it had the CPU. `others`: behind the 64th
        /// culprit of this part. Null when it ran.
        pub culprit: Option<Name>,
        /// Thread id of who ran instead; 0: idle; null for several threads of that name.
        pub culprit_tid: Option<i32> as Tid,
        /// Time.
        pub spent_ns: i64 as Ns,
        /// In how many uninterrupted stretches.
        pub stretches: i64 as Count,
        /// Of `spent_ns`, what threads of the agent that recorded had the CPU: of *preempted* and *dispatch*, all or
        /// nothing, but where several threads share a row. Null when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// From the first sight to the end of the thread or of the trace; the same in all rows of a thread.
        pub wall_ns: i64 as Ns,
        /// [`Mark`]. `exact`: from its birth to its end; `disturbed`: it waited for room in its ring, for which there
        /// is a row of its own; `censored`: it lived before or after
        /// what was recorded, and `wall_ns` is what of it lies inside; the kernel's records begin some ms before the trace does;
        /// `lower bound`: records were lost meanwhile.
        pub mark: Mark,
    }
}
