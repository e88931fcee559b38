//! The table of what would have shortened the waits behind holders that lost the CPU.

use super::contended::PreemptionCause;
use super::decomposition::Decomposition;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, SiteId, Tid};
use crate::words::words;

words! {
    /// What would have kept a time-slice extension (rseq, Linux 7.0) from letting a hold end.
    pub enum GrantBar {
        /// Nothing that was recorded.
        Nothing = "nothing",
        /// It slept, before or afterwards: who leaves the CPU has neither request nor grant any more.
        Sleep = "sleep",
        /// It was in the kernel when it lost the CPU, and extensions are granted on the way back to user space.
        Kernel = "kernel",
        /// It made a system call afterwards, which ends an extension.
        Call = "call",
        _ => Kernel
    }
}

table! {
    "what_ifs",
    /// `what_ifs`: a hold whose holder could have run and did not, and what would have shortened the waits behind it.
    ///
    /// Such waits are those for its lock that lasted until the release, from the moment on at which the holder first had no
    /// CPU. What is spared is at most what is stated, of these waits alone: see `ft-analysis/src/holds/what_if.rs`.
    pub struct WhatIf {
        /// From when on it could run and did not, for the first time in the hold.
        pub ts: Nanos,
        /// Until the release.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Holder.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Its kernel priority then; null when not known.
        pub prio: Option<i32> as Priority,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// Name of the lock, or its address in hexadecimal.
        pub lock_name: Name,
        /// `mutex`, `rwlock-read`, …
        pub kind: Name,
        /// Acquiring event in `sites`.
        pub site: SiteId,
        /// Source place of the acquisition, empty when not known.
        pub place: Name,
        /// Why it did not run, the first time.
        pub cause: PreemptionCause,
        /// How often it could run and did not.
        pub times: i32 as Count,
        /// Where the time from `ts` on went. A grant of `running_ns` at that moment would have been enough.
        pub parts: Option<Decomposition>,
        /// What would have kept a grant from that. System calls are among it where the group `syscall` was recorded.
        pub bar: GrantBar,
        /// Threads that waited for the lock when it was released. This and the following are null of a lock held for
        /// reading, whose release may let nobody in.
        pub waiters: Option<i32> as Count,
        /// Sum of what they had waited since `ts`: the waits behind this hold.
        pub waited_ns: Option<i64> as Ns,
        /// At most so much of it is spared if the holder runs on at `ts` until the hold ends.
        pub run_on_ns: Option<i64> as Ns,
        /// Of these waiters, those of a real-time priority that is higher than the holder's.
        pub urgent: Option<i32> as Count,
        /// What these had waited since `ts`.
        pub urgent_ns: Option<i64> as Ns,
        /// At most so much of that is spared if the holder inherits the highest priority among them.
        pub inherited_ns: Option<i64> as Ns,
        /// At most so much of `waited_ns` is spared if no thread of ordinary priority has the CPU while the holder could run.
        pub prioritized_ns: Option<i64> as Ns,
        /// At most so much of `waited_ns` is spared if the holder always has a CPU when it can run.
        pub own_cpu_ns: Option<i64> as Ns,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when a thread of the process waited for room in its ring meanwhile, or
        /// `lower bound` when records were lost, or it is not known of all the time who had the CPU: then nothing in this
        /// row is an upper bound.
        pub mark: Mark,
    }
}
