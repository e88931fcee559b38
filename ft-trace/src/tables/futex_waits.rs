//! The table of waits at futexes and semaphores.

use super::decomposition::Decomposition;
use super::futex::FutexKind;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// How a wait at a futex or a semaphore ended.
    pub enum FutexEnd {
        /// The thread was woken, or has what it waited for.
        Woken = "woken",
        /// It had it at once: a futex with priority inheritance that was free by then, a semaphore that was there.
        AtOnce = "at-once",
        /// It did not sleep, since the value at the address was not the expected one any more.
        Changed = "changed",
        /// The time was over.
        TimedOut = "timed-out",
        /// For a signal, perhaps one that ended the thread.
        Interrupted = "interrupted",
        /// With another error.
        Failed = "failed",
        /// It had not ended when the thread did.
        Thread = "thread",
        /// It had not ended when the recording did.
        Trace = "trace",
        _ => Trace
    }
}

table! {
    "futex_waits",
    /// `futex_waits`: one wait of a thread at a futex or a System-V semaphore, as any lock makes them when it is contended,
    /// of whatever language.
    pub struct FutexWait {
        /// Begin: the system call.
        pub ts: Nanos,
        /// Until it returned; of one that did not, until the thread or the recording ended.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread that waited.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// How it waits.
        pub kind: FutexKind,
        /// As in `futex_calls`.
        pub address: i64 as Address,
        /// The variable at the address, or the address in hexadecimal; number and set of a semaphore.
        pub name: Name,
        /// What the thread's own events (ft_user, the preload library) said that it was about to wait for: `lock`,
        /// `condition of`, `semaphore`, …; null where there are none.
        pub own_kind: Option<Name>,
        /// Its name there.
        pub own_name: Option<Name>,
        /// From the begin until it would have given up.
        pub timeout_ns: Option<i64> as Ns,
        /// How it ended.
        pub end: FutexEnd,
        /// The thread's call before this one was such a wait at the same address, from which it was woken: a lock that it
        /// found taken again, a condition that did not hold, or the next piece of work.
        pub again: bool,
        /// Who has the futex, where its value says so (priority inheritance): a thread's number as the program's PID
        /// namespace has it. Of any other the owner is not known, unless it is the one who wakes.
        pub owner_tid: Option<i32> as Tid,
        /// Where the time went; null without a kernel stream. *Blocked* is asleep, *dispatch* is woken and waiting for a
        /// CPU.
        pub parts: Option<Decomposition>,
        /// From the begin to the wake-up that ended it; null where there was none that was recorded.
        pub woken_ns: Option<i64> as Ns,
        /// Who woke it; null of one that timed out, which an interrupt ends, and of one whose time was over when somebody's call
        /// found it not yet gone on: `end` is `woken` then, by whom is not known.
        pub waker_tid: Option<i32> as Tid,
        /// Its process, where that is known.
        pub waker_pid: Option<i32> as Pid,
        /// Its name.
        pub waker_comm: Option<Name>,
        /// By what call it did so; null where it was in none that was recorded, as when a thread ends that is joined.
        pub waker_call: Option<FutexKind>,
        /// Where in the code it was, a row or more of `stacks`.
        pub waker_stack: Option<i64> as Number,
        /// Who had the CPU longest while the thread was woken and waited for it.
        pub behind_tid: Option<i32> as Tid,
        /// Its name.
        pub behind_comm: Option<Name>,
        /// For how long.
        pub behind_ns: Option<i64> as Ns,
        /// Where in the code the thread waited, a row or more of `stacks`.
        pub stack: Option<i64> as Number,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `lower bound` when records were lost meanwhile, `censored` of one that ended with the
        /// recording.
        pub mark: Mark,
    }
}
