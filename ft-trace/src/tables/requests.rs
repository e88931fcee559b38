//! The tables of requests and of their critical paths.

use super::decomposition::Decomposition;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What the time of a piece of a critical path went to.
    pub enum PathKind {
        /// The thread ran, outside interrupts.
        Running = "running",
        /// It could run, and had to leave the CPU for another one.
        Preempted = "preempted",
        /// It had been woken, and waited for a CPU.
        Dispatch = "dispatch",
        /// An interrupt struck it.
        Interrupt = "interrupt",
        /// It slept until a timer woke it.
        Timer = "timer",
        /// It slept until another interrupt woke it: a device, or a packet from one.
        Device = "device",
        /// It slept until a thread that is not observed woke it.
        Outside = "outside",
        /// No record says what it was.
        Unknown = "unknown",
        _ => Unknown
    }
}

table! {
    "requests",
    /// `requests`: one piece of work, wherever it was done: a `scope!` within no other one of its thread, or what lies between two
    /// events that the user has named to the report (`--request`), or a reaction from a cause to its answer (`--from`, `--to`), or a
    /// cycle with a deadline (`--deadline`).
    pub struct Request {
        /// Begin.
        pub ts: Nanos,
        /// End minus begin.
        pub dur: i64 as Ns,
        /// Number in this trace, in the order of their ends.
        pub request: i64 as Number,
        /// Name of the scope; of two events, both with a comma; of a reaction, what `--from` and `--to` said; of a cycle,
        /// its deadline.
        pub kind: Name,
        /// What distinguishes it from others of its kind: the argument of both events that `--key` names, else null.
        pub key: Option<i64> as Number,
        /// Process in which it began; 0: an interrupt began it.
        pub pid: Pid,
        /// Thread that began it, or whose waking did; 0: an interrupt.
        pub tid: Tid,
        /// Name of that thread; empty: an interrupt.
        pub comm: Name,
        /// Process in which it ended.
        pub end_pid: Pid,
        /// Thread that ended it.
        pub end_tid: Tid,
        /// Name of that thread.
        pub end_comm: Name,
        /// Decomposition of `dur`; null where another thread than the one that began it ended it, where no event of
        /// a thread began it, and without a kernel stream. Of a request that began in a task, that of the task, with `parked_ns`, whichever
        /// threads ran it; null where it ended in another task.
        pub parts: Option<Decomposition>,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// Of the critical path, which sums to `dur`: threads on it ran. Null, as all of the path, where it was not
        /// looked for.
        pub path_running_ns: Option<i64> as Ns,
        /// The same: they were preempted.
        pub path_preempted_ns: Option<i64> as Ns,
        /// They had been woken, and waited for a CPU.
        pub path_dispatch_ns: Option<i64> as Ns,
        /// They were interrupted.
        pub path_interrupt_ns: Option<i64> as Ns,
        /// They slept until a timer woke them.
        pub path_timer_ns: Option<i64> as Ns,
        /// They slept until another interrupt woke them.
        pub path_device_ns: Option<i64> as Ns,
        /// They slept until a thread woke them that is not observed.
        pub path_outside_ns: Option<i64> as Ns,
        /// No record tells.
        pub path_unknown_ns: Option<i64> as Ns,
        /// Of all these, what others did for which the thread, or the task, waited that ended it.
        pub path_elsewhere_ns: Option<i64> as Ns,
        /// Of `path_preempted_ns` and `path_dispatch_ns`, the waits in which a thread of the agent that recorded had the CPU
        /// longest. Null where it is not known which these are, too.
        pub path_agent_ns: Option<i64> as Ns,
        /// Pieces of the path. Those of the slowest are in `critical_path`.
        pub path_pieces: Option<i32> as Count,
        /// [`Mark`] of the path: `lower bound` where some of it is unknown, or records are missing on its way.
        pub path_mark: Mark,
        /// [`Mark`] of all but the path: `exact`, `disturbed` when the thread that ended it waited for room in its ring, or
        /// `lower bound` when records of the threads that began or ended it were lost meanwhile, or of a reaction any from
        /// which a cause or an answer may be missing: without a key, of a cause since the answer before.
        pub mark: Mark,
    }
}

table! {
    "critical_path",
    /// `critical_path`: what a request waited for last, piece by piece, of each request that was among the 100 slowest of its
    /// kind when it ended, and of cycles that missed their deadline, up to 10,000 of each. The pieces of one request follow one another
    /// without a hole, and sum to its length.
    pub struct PathPiece {
        /// Begin.
        pub ts: Nanos,
        /// Its length.
        pub dur: i64 as Ns,
        /// `request` in `requests`.
        pub request: i64 as Number,
        /// Waits through which it is on the path; 0: of the thread that ended the request, or of those that polled its task.
        pub depth: i32 as Count,
        /// Process of the thread whose time it is.
        pub pid: Pid,
        /// That thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// What that thread did, or what was done to it.
        pub kind: PathKind,
        /// Who had the CPU longest instead of it, which interrupt struck it or woke it, or who woke it that is not observed; of
        /// *unknown*, why. Null when it ran, or nobody is known.
        pub culprit: Option<Name>,
        /// Number of that thread, if it is one; 0: idle.
        pub culprit_tid: Option<i32> as Tid,
        /// What was waited for in the innermost wait that this is part of, by the words of `thread_time`; of a task that was not
        /// polled, whether it was *pending* (until somebody woke it), *queued* or *unstarted* (until its thread polled it), and
        /// *behind* which other task. Null outside.
        pub wait: Option<Name>,
        /// Who waits in it: this thread where it sleeps, else the one for which it is on the path; of a task, the one that polls it
        /// next.
        pub waiter_tid: Option<i32> as Tid,
        /// [`Mark`]: `lower bound` where that is unknown, or records are missing of a wait that this is part of.
        pub mark: Mark,
    }
}
