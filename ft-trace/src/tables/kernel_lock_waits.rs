//! The table of waits for locks of the kernel.

use super::decomposition::Decomposition;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// How a wait for a lock of the kernel ended.
    pub enum KernelWaitEnd {
        /// With the lock.
        Acquired = "acquired",
        /// Without it: a signal or a time-out came first.
        Failed = "failed",
        /// It had not ended when the thread did.
        Thread = "thread",
        /// It had not ended when the recording did.
        Trace = "trace",
        _ => Trace
    }
}

table! {
    "kernel_lock_waits",
    /// `kernel_lock_waits`: one wait of an observed thread for a lock of the kernel, whose begin was recorded.
    pub struct KernelLockWait {
        /// Begin.
        pub ts: Nanos,
        /// Until it had the lock; of one that did not, until it gave up, or the thread or the recording ended.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread that waited. An interrupt waits in the name of the thread that it struck.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// As in `contention`.
        pub name: Option<Name>,
        /// As in `contention`.
        pub caller: Option<Name>,
        /// As in `contention`.
        pub kind: Name,
        /// How it ended.
        pub end: KernelWaitEnd,
        /// It lies within another such wait of the thread: for the lock of a lock's queue, or of an interrupt on top of it.
        /// Sums over threads count only the others.
        pub nested: bool,
        /// Where the time went; null without a kernel stream. *Running* is spinning, *blocked* is asleep.
        pub parts: Option<Decomposition>,
        /// From the begin to the wake-up that ended it; null of one that only spun.
        pub woken_ns: Option<i64> as Ns,
        /// Who woke it: mostly who gave the lock back.
        pub waker_tid: Option<i32> as Tid,
        /// Its name.
        pub waker_comm: Option<Name>,
        /// Locks of the application that the thread held meanwhile.
        pub depth: i32 as Count,
        /// Of these, the one acquired last; null when there was none.
        pub hold_lock: Option<i64> as Address,
        /// Its name.
        pub hold_name: Option<Name>,
        /// Source place of its acquisition.
        pub hold_place: Option<Name>,
        /// The outermost scope, or request without a key, in which the thread was; null when it was in none.
        pub request: Option<Name>,
        /// Call chain of the begin, a row or more of `stacks`.
        pub stack: Option<i64> as Number,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring meanwhile, `lower bound` when records
        /// were lost meanwhile, `censored` of one that ended with the recording.
        pub mark: Mark,
    }
}
