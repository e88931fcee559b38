//! The tables of loops that nothing should interrupt (`ft-load npt`).

use crate::Mark;
use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What took most of what a pass of the loop took too long.
    pub enum PeakCause {
        /// Interrupts: handlers of lines, softirqs, vectors.
        Interrupt = "interrupt",
        /// Another thread had the CPU.
        Preempted = "preempted",
        /// The thread waited for something.
        Blocked = "blocked",
        /// The recording itself: its threads had the CPU, or the loop waited for room in its ring.
        Tracer = "tracer",
        /// Nothing was recorded.
        Unexplained = "unexplained",
        _ => Unexplained
    }
}

table! {
    "loop_histogram",
    /// `loop_histogram`: how many passes of one loop had a length, by the program's own account. The rows of a loop have
    /// its thread and its end in common, and their passes sum to those of the loop.
    pub struct LoopBin {
        /// End of the loop.
        pub ts: Nanos,
        /// Process.
        pub pid: Pid,
        /// Thread that looped.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// The shortest length that counts here.
        pub from_cycles: i64 as Cycles,
        /// The next length that does not.
        pub to_cycles: i64 as Cycles,
        /// `from_cycles` by the frequency of the counter that the program has measured; null where it reported none.
        pub from_ns: Option<f64> as Ns,
        /// `to_cycles`, likewise.
        pub to_ns: Option<f64> as Ns,
        /// Passes of these lengths.
        pub passes: i64 as Count,
        /// All passes of the loop, by the same account.
        pub of_passes: i64 as Count,
        /// [`Mark`]: `exact`, or `lower bound` when events of the thread were lost since the loop had ended: rows are missing.
        pub mark: Mark,
    }
}

table! {
    "loop_peaks",
    /// `loop_peaks`: one pass of a loop that took longer than the program's threshold, and why.
    ///
    /// `interrupt_ns`, `preempted_ns`, `blocked_ns`, `tracer_ns` and `unexplained_ns` sum to `excess_ns`; they are null
    /// without a kernel stream, or when the pass began before what is known of the thread.
    pub struct LoopPeak {
        /// Last reading of the clock before.
        pub ts: Nanos,
        /// First reading after, minus `ts`: length of the pass.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread that looped.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// CPU after the pass.
        pub cpu: Cpu,
        /// Number of the pass in its loop, from 0 on; null when the event that has it was lost.
        pub pass: Option<i64> as Count,
        /// Of `dur`, what a pass takes by itself: the shortest that the program has seen before the loop, or less where the
        /// thread had the CPU for less.
        pub own_ns: i64 as Ns,
        /// The rest of `dur`.
        pub excess_ns: i64 as Ns,
        /// What took most of the excess.
        pub cause: Option<PeakCause>,
        /// Who (thread name) or which (interrupt name, `full ring`) had most of that; null when unexplained.
        pub culprit: Option<Name>,
        /// Its thread id, for a thread. 0: idle, so the scheduler kept the thread from an idle CPU, as it does with
        /// real-time threads that have had their share (`sched_rt_runtime_us`).
        pub culprit_tid: Option<i32> as Tid,
        /// How long it had it.
        pub culprit_ns: Option<i64> as Ns,
        /// In interrupts.
        pub interrupt_ns: Option<i64> as Ns,
        /// Other threads had the CPU, without those of the agent that recorded.
        pub preempted_ns: Option<i64> as Ns,
        /// Waiting for something, other than room in the thread's ring.
        pub blocked_ns: Option<i64> as Ns,
        /// Threads of the agent that recorded had the CPU (of a trace that does not say who recorded it, that is in
        /// `preempted_ns`), or the thread waited for room in its ring.
        pub tracer_ns: Option<i64> as Ns,
        /// Covered by no record: kernel entry and exit, faults, what a host took, and the trace points in the loop.
        pub unexplained_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, or `lower bound` when
        /// records were lost during the pass, or it is not known of all of it who had the CPU.
        pub mark: Mark,
    }
}
