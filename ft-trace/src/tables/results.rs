//! Tables that the analyses write.

use std::ops::{AddAssign, Sub};

use serde::Serialize;

use crate::Mark;
use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use crate::words::words;

words! {
    /// A part of a thread's time.
    pub enum Part {
        /// On a CPU, outside interrupts.
        Running = "running",
        /// Off the CPU while runnable, because it had to leave it.
        Preempted = "preempted",
        /// Off the CPU while runnable, woken and not yet dispatched.
        Dispatch = "dispatch",
        /// Off the CPU, waiting for something.
        Blocked = "blocked",
        /// On the CPU, in a hardware interrupt handler.
        Hardirq = "hardirq",
        /// On the CPU, in a softirq.
        Softirq = "softirq",
        /// On the CPU, in an interrupt vector (timer, reschedule, …).
        Vector = "vector",
        /// Covered by no record.
        Unexplained = "unexplained",
        _ => Unexplained
    }
}

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

/// Where the time of an interval of one thread went, or of several. The parts sum to the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decomposition {
    /// On a CPU, outside interrupts.
    pub running_ns: i64,
    /// Off the CPU while runnable, because it had to leave it.
    pub preempted_ns: i64,
    /// Off the CPU while runnable, woken and not yet dispatched.
    pub dispatch_ns: i64,
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
    pub const NAMES: [&str; 8] = [
        "running_ns",
        "preempted_ns",
        "dispatch_ns",
        "blocked_ns",
        "hardirq_ns",
        "softirq_ns",
        "vector_ns",
        "unexplained_ns",
    ];

    /// The parts in the order of [`Decomposition::NAMES`].
    pub fn to_array(self) -> [i64; 8] {
        [
            self.running_ns,
            self.preempted_ns,
            self.dispatch_ns,
            self.blocked_ns,
            self.hardirq_ns,
            self.softirq_ns,
            self.vector_ns,
            self.unexplained_ns,
        ]
    }

    /// Inverse of [`Decomposition::to_array`].
    pub fn from_array(parts: [i64; 8]) -> Decomposition {
        let [
            running_ns,
            preempted_ns,
            dispatch_ns,
            blocked_ns,
            hardirq_ns,
            softirq_ns,
            vector_ns,
            unexplained_ns,
        ] = parts;
        Decomposition {
            running_ns,
            preempted_ns,
            dispatch_ns,
            blocked_ns,
            hardirq_ns,
            softirq_ns,
            vector_ns,
            unexplained_ns,
        }
    }

    /// One of the parts.
    pub fn part_mut(&mut self, part: Part) -> &mut i64 {
        match part {
            Part::Running => &mut self.running_ns,
            Part::Preempted => &mut self.preempted_ns,
            Part::Dispatch => &mut self.dispatch_ns,
            Part::Blocked => &mut self.blocked_ns,
            Part::Hardirq => &mut self.hardirq_ns,
            Part::Softirq => &mut self.softirq_ns,
            Part::Vector => &mut self.vector_ns,
            Part::Unexplained => &mut self.unexplained_ns,
        }
    }

    /// Time without a CPU that was wanted: preempted, or woken and not yet there.
    pub fn runnable_ns(&self) -> i64 {
        self.preempted_ns + self.dispatch_ns
    }

    /// Time in any interrupt.
    pub fn interrupts_ns(&self) -> i64 {
        self.hardirq_ns + self.softirq_ns + self.vector_ns
    }

    /// Sum of the parts.
    pub fn total_ns(&self) -> i64 {
        self.to_array().into_iter().fold(0, i64::saturating_add)
    }
}

/// How often something happened to a thread in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// It left its CPU to wait for something.
    pub sleeps: i64,
    /// It left its CPU although it could run.
    pub switches: i64,
    /// It came to another CPU than the one that it had.
    pub moves: i64,
    /// Page faults, and of these major ones; not known where the kernel group `fault` is not recorded.
    pub faults: Option<[i64; 2]>,
}

impl Counts {
    /// The columns, and what they mean.
    pub const COLUMNS: [(&str, &str); 5] = [
        (
            "sleeps",
            "Times that the thread left its CPU to wait for something. Null without a kernel stream, as the next two.",
        ),
        ("switches", "Times that it left its CPU although it could run."),
        ("moves", "Times that it came to another CPU than the one that it had."),
        (
            "faults",
            "Page faults, of its own and in system calls. Null until the trace has a first one of any thread (kernel group `fault`), and where records of some were lost meanwhile.",
        ),
        ("major_faults", "Of these, major ones."),
    ];

    /// The columns' values.
    pub fn to_array(self) -> [Option<i64>; 5] {
        let [faults, major] = self.faults.map_or([None; 2], |faults| faults.map(Some));
        [Some(self.sleeps), Some(self.switches), Some(self.moves), faults, major]
    }

    /// Inverse of [`Counts::to_array`], where there are any.
    pub fn from_array(
        [sleeps, switches, moves, faults, major]: [Option<i64>; 5],
    ) -> Option<Counts> {
        let faults = faults.zip(major).map(|(faults, major)| [faults, major]);
        Some(Counts { sleeps: sleeps?, switches: switches?, moves: moves?, faults })
    }
}

/// Saturates, as that of a [`Decomposition`]; page faults are known where those of both are.
impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.sleeps = self.sleeps.saturating_add(other.sleeps);
        self.switches = self.switches.saturating_add(other.switches);
        self.moves = self.moves.saturating_add(other.moves);
        let sum =
            |(a, b): ([i64; 2], [i64; 2])| [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])];
        self.faults = self.faults.zip(other.faults).map(sum);
    }
}

/// Where the time between two moments went, from all that went before each.
impl Sub for Decomposition {
    type Output = Decomposition;

    fn sub(self, earlier: Decomposition) -> Decomposition {
        let (later, earlier) = (self.to_array(), earlier.to_array());
        Decomposition::from_array(std::array::from_fn(|i| later[i] - earlier[i]))
    }
}

/// Saturates: applications nest what is summed as they like, so that a sum has no bound in the length of a trace.
impl AddAssign for Decomposition {
    fn add_assign(&mut self, other: Decomposition) {
        let (mine, others) = (self.to_array(), other.to_array());
        let sum = |i: usize| mine[i].saturating_add(others[i]);
        *self = Decomposition::from_array(std::array::from_fn(sum));
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
    /// What came of the time-slice extension that a holder asked for (feature `slice` of `ft-user`), as of its release.
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
        /// Holder.
        pub tid: Tid,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// Name of the lock, or its address in hexadecimal when it has none.
        pub lock_name: Name,
        /// `mutex`, `rwlock-read`, `rwlock-write`, from the event's name.
        pub kind: Name,
        /// Acquiring event in `sites`.
        pub site: SiteId,
        /// Source place of the acquisition, `file:line`, empty when not known.
        pub place: Name,
        /// Locks that the thread already held (Feather-Trace, section 3).
        pub depth: i32 as Count,
        /// [`Mark`] of `depth` alone: `lower bound` from the first loss of events of the thread on, since
        /// it may hold a lock whose acquisition was lost; else `exact`. All else is as true as `mark` says.
        pub depth_mark: Mark,
        /// From the start of the wait to the acquisition; 0 when the lock was free.
        pub wait_ns: i64 as Ns,
        /// It began or ended with a condition wait.
        pub condition: bool,
        /// What came of a time-slice extension; `none` where it ended with a condition wait. Of nested holds the outermost
        /// asks for all.
        pub slice: SliceOutcome,
        /// Decomposition of `dur`; null without a kernel stream.
        pub parts: Option<Decomposition>,
        /// How often something happened to the thread meanwhile.
        pub counts: Option<Counts>,
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
        /// CPU (`sched_switch.prev_woken`), the switch away.
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
        /// Who woke it (the thread that was current; 0: idle, so an interrupt).
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
        /// What took most of the gap by the kernel's account; null without a kernel stream.
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
        /// the trace, and `wall_ns` is what of it lies inside; `lower bound`: records were lost meanwhile.
        pub mark: Mark,
    }
}
