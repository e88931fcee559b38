//! The table of functions.

use super::decomposition::Counts;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};

table! {
    "functions",
    /// `functions`: the calls of one function in one thread: of programs that are compiled with
    /// `-finstrument-functions`, with clang's sleds or with gcc's patchable entries, and of functions of Rust that have the
    /// attribute. The `self_ns` of all rows of a thread sum to the time inside its outermost calls, to the nanosecond; so do
    /// the `self_…` columns of each part.
    pub struct Function {
        /// The first call, or the first end of one that began before.
        pub ts: Nanos,
        /// Process.
        pub pid: Pid,
        /// Thread.
        pub tid: Tid,
        /// Its newest name.
        pub comm: Name,
        /// Name of the function, demangled: object and offset, or the address, where nobody knows it. `(others)`: of those
        /// behind the 4096th of a thread. `(unknown)`: nobody's calls, but the time between the last event of a function
        /// that was left without an end and the event that shows it, of which nobody knows in which of the functions it was.
        pub function: Name,
        /// `file:line` of its begin; empty when not known.
        pub place: Name,
        /// Where it begins in the memory of the process; null of a function that has a site of its own.
        pub address: Option<i64> as Address,
        /// Calls whose begin was recorded as one that has an end.
        pub calls: i64 as Count,
        /// Of those, calls that had not ended when the thread, its memory, the trace, or what was recorded of it without a
        /// loss ended.
        pub unfinished: i64 as Count,
        /// Of those, calls that were left without an end, as `longjmp` and, with clang, an exception leave them: known by an
        /// event of a function around them. Their time counts up to the last event before.
        pub left: i64 as Count,
        /// Ends without a begin: begun before its recording, or in a loss.
        pub begun_before: i64 as Count,
        /// Calls that a patchable entry of gcc recorded (`-fpatchable-function-entry`), which records no end: in no other
        /// column, and their time is that of the function around them. (A function that has hooks, too, records each call twice,
        /// here and in `calls`.)
        pub entered: i64 as Count,
        /// Time inside of it, with what it called; of a call within a call of the same function, once.
        pub total_ns: i64 as Ns,
        /// Of that, running. Null without a kernel stream, as all parts.
        pub total_running_ns: Option<i64> as Ns,
        /// Able to run and without a CPU: the parts *preempted* and *dispatch*.
        pub total_preempted_ns: Option<i64> as Ns,
        /// Blocked.
        pub total_blocked_ns: Option<i64> as Ns,
        /// In interrupts.
        pub total_interrupts_ns: Option<i64> as Ns,
        /// Covered by no record.
        pub total_unexplained_ns: Option<i64> as Ns,
        /// Of `total_preempted_ns`, the time in which threads of the agent that recorded had the CPU. Null when that is not
        /// known.
        pub total_agent_ns: Option<i64> as Ns,
        /// Time inside of it and of no function that it called, of those that are recorded.
        pub self_ns: i64 as Ns,
        /// Of that, running.
        pub self_running_ns: Option<i64> as Ns,
        /// Able to run and without a CPU.
        pub self_preempted_ns: Option<i64> as Ns,
        /// Blocked.
        pub self_blocked_ns: Option<i64> as Ns,
        /// In interrupts.
        pub self_interrupts_ns: Option<i64> as Ns,
        /// Covered by no record.
        pub self_unexplained_ns: Option<i64> as Ns,
        /// Of `self_preempted_ns`, the time in which threads of the agent that recorded had the CPU. Null when that is not known.
        pub self_agent_ns: Option<i64> as Ns,
        /// What happened in `self_ns`: to the thread, and in no function that this one called.
        pub counts: Option<Counts>,
        /// Columns `counter0` and `counter1`: what the counters that `record --counter` was given, in their order, counted of the
        /// thread in user space in `self_ns` (`task-clock`: ns on a CPU, in the kernel, too), with what the recording of its events executed there.
        /// Null where there is none, and where it is not
        /// known what it showed at both ends of each part of it, or whether it counted all the time.
        pub counter: [Option<i64>; 2] as Count,
        /// [`Mark`]: `exact`; `disturbed` when the thread waited for room in its ring; `lower bound` when records were lost
        /// since the thread's first call, when it was come back into by a jump, or the thread was in more calls than are kept;
        /// `censored` when a call began before or ended after what was recorded, and the figures are of what lies inside; or
        /// was left without an end, so that they lack what came after its last event, or have what was called after the jump.
        pub mark: Mark,
    }
}
