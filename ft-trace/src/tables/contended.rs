//! The tables about locks that somebody had to wait for, or whose holder did not run.

use super::decomposition::Decomposition;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, SiteId, Tid};
use crate::words::words;

words! {
    /// What ended while a wait had not.
    pub enum WaitEnd {
        /// The recording.
        Trace = "trace",
        /// The thread.
        Thread = "thread",
        /// The program, which was replaced by another.
        Exec = "exec",
        _ => Trace
    }
}

words! {
    /// Why a holder that could run did not.
    pub enum PreemptionCause {
        /// The CPU was taken from it.
        Preempted = "preempted",
        /// It had slept, and had to wait for a CPU.
        Woken = "woken",
        _ => Woken
    }
}

table! {
    "lock_waits",
    /// `lock_waits`: one acquisition of a lock that was found taken.
    ///
    /// At each moment of the wait one thread is to blame: the lock's holder; while that thread waits for a lock
    /// itself, the holder of that lock, and so on. The parts say what this thread, the *root*, did; with
    /// `no_holder_ns` and `cycle_ns` they sum to `dur`.
    pub struct LockWait {
        /// Begin of the wait.
        pub ts: Nanos,
        /// Acquisition minus begin.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread that waited.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// Name of the lock, or its address in hexadecimal.
        pub lock_name: Name,
        /// `mutex`, `rwlock-read`, `rwlock-write`, `spin`: what the waiter wanted.
        pub kind: Name,
        /// Event in `sites` that began the wait.
        pub site: SiteId,
        /// Source place of the acquisition, empty when not known.
        pub place: Name,
        /// Locks that the waiter held meanwhile.
        pub depth: i32 as Count,
        /// As in [`CriticalSection`](super::CriticalSection).
        pub depth_mark: Mark,
        /// Holds of the lock by others that were seen: one after the other, or of readers at once.
        pub holders: i32 as Count,
        /// Who held the lock longest: all holds of one thread from one place are one here, however many turns there
        /// were. Of readers at once, the one that came first counts. Null when nobody was seen to hold it for a
        /// nanosecond.
        pub holder_tid: Option<i32> as Tid,
        /// Its name.
        pub holder_comm: Option<Name>,
        /// Where it had acquired the lock.
        pub holder_place: Option<Name>,
        /// How long it held it from there during the wait, in all its turns.
        pub holder_ns: Option<i64> as Ns,
        /// Time in which the holder waited for a lock itself; part of `dur`, beside the other parts.
        pub holder_waits_ns: i64 as Ns,
        /// Threads in the longest chain that was seen: 1 when no holder waited for a lock itself, 0 when there was no holder.
        pub chain: i32 as Count,
        /// Who was at the end of the chain longest, by thread and place as above. In a circle, and while nobody holds
        /// the last lock of the chain, it has no end; so the times of all roots sum to the parts.
        pub root_tid: Option<i32> as Tid,
        /// Its name.
        pub root_comm: Option<Name>,
        /// The lock that it held: this one, or the one that its predecessor in the chain waited for.
        pub root_lock: Option<Name>,
        /// Where it had acquired that.
        pub root_place: Option<Name>,
        /// How long it was the root in all.
        pub root_ns: Option<i64> as Ns,
        /// What the roots did; null without a kernel stream.
        pub parts: Option<Decomposition>,
        /// Nobody is known to hold the lock: it is being handed over, or the hold was not recorded.
        pub no_holder_ns: i64 as Ns,
        /// The chain led back to itself.
        pub cycle_ns: i64 as Ns,
        /// Of `no_holder_ns`, the waiter was asleep: nobody had woken it yet. This and the next three, what the waiter
        /// itself did, sum to `no_holder_ns`; they are null without a kernel stream.
        pub free_asleep_ns: Option<i64> as Ns,
        /// Of `no_holder_ns`, it could run, and waited for a CPU.
        pub free_runnable_ns: Option<i64> as Ns,
        /// Of `no_holder_ns`, it had a CPU, interrupts included: it tried, span, or was on its way.
        pub free_running_ns: Option<i64> as Ns,
        /// Of `no_holder_ns`, covered by no record of it.
        pub free_unknown_ns: Option<i64> as Ns,
        /// Who woke it last; null unless the lock was free from before that until the waiter ran.
        pub waker_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub waker_comm: Option<Name>,
        /// From when the lock was free until that wake-up: how long the waiter was let sleep in vain.
        pub woken_after_ns: Option<i64> as Ns,
        /// Who had the CPU longest while the waiter could run, and the lock was free.
        pub behind_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub behind_comm: Option<Name>,
        /// How long; at least so long where several had the CPU, and the lock was free for a part of that.
        pub behind_ns: Option<i64> as Ns,
        /// How often others took the lock first that began to wait later, or did not wait at all.
        pub overtaken: i32 as Count,
        /// At most so much shorter if its holders, whoever these waited for in turn, and so on, had a CPU whenever they could
        /// run. Null when that is not known: without a kernel stream, or when records of one of these holds are missing.
        pub own_cpu_ns: Option<i64> as Ns,
        /// Call chain at which it slept longest, in `stacks`; null without one: it never slept as long as `--stack-min`,
        /// or the group `stack` was not recorded.
        pub stack: Option<i64> as Number,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU: what
        /// the recording itself is to blame for. Null when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when a thread of the process waited for room in its ring meanwhile, or
        /// `lower bound` when records were lost, or the chain or the number of holders was larger than what is
        /// followed.
        pub mark: Mark,
    }
}

table! {
    "unfinished_waits",
    /// `unfinished_waits`: a wait for a lock that had not ended when the thread or the recording did.
    pub struct UnfinishedWait {
        /// Begin of the wait.
        pub ts: Nanos,
        /// Until the end of the thread or the recording: the wait was at least as long.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread that waited.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Address of the lock.
        pub lock: i64 as Address,
        /// Name of the lock, or its address in hexadecimal.
        pub lock_name: Name,
        /// What the waiter wanted, as in `lock_waits`.
        pub kind: Name,
        /// Source place of the acquisition, empty when not known.
        pub place: Name,
        /// What ended.
        pub ended: WaitEnd,
        /// Who held the lock then; null when nobody is known to.
        pub holder_tid: Option<i32> as Tid,
        /// Its name.
        pub holder_comm: Option<Name>,
        /// Where it had acquired the lock.
        pub holder_place: Option<Name>,
        /// When.
        pub holder_since: Option<i64> as Ns,
        /// The holder had ended without a release.
        pub holder_gone: bool,
        /// Deadlock: rows with the same number wait for each other in a circle; null when there is none. The
        /// number is the least thread id of the circle.
        pub cycle: Option<i32> as Tid,
    }
}

table! {
    "lock_preemptions",
    /// `lock_preemptions`: a time in which a thread held a lock, could run, and did not.
    ///
    /// A thread that held several locks then gives a row for each; `innermost` marks one of them, so that sums
    /// over these count no time twice.
    pub struct LockPreemption {
        /// From when on it did not run.
        pub ts: Nanos,
        /// Until it ran again.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Holder.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
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
        /// Locks that the thread already held at the acquisition.
        pub depth: i32 as Count,
        /// As in [`CriticalSection`](super::CriticalSection).
        pub depth_mark: Mark,
        /// Of the locks held, it is the one acquired last.
        pub innermost: bool,
        /// Why it did not run.
        pub cause: PreemptionCause,
        /// Its number among the times of this cause in this hold, from 1.
        pub nth: i32 as Number,
        /// Call chain at which it had left the CPU, in `stacks`; null without one, as in `lock_waits`.
        pub stack: Option<i64> as Number,
        /// Who had the CPU longest meanwhile; null when not known.
        pub preemptor_tid: Option<i32> as Tid,
        /// Its name.
        pub preemptor_comm: Option<Name>,
        /// Its kernel priority: -1 deadline, 0..=98 real-time, 100..=139 normal, the idle task 120.
        pub preemptor_prio: Option<i32> as Priority,
        /// How long it had it, in all.
        pub preemptor_ns: Option<i64> as Ns,
        /// Threads that waited for the lock meanwhile and still did at the end.
        pub waiters: i32 as Count,
        /// Sum of the time that they waited meanwhile.
        pub delayed_ns: i64 as Ns,
        /// The one that waited longest.
        pub longest_waiter_tid: Option<i32> as Tid,
        /// How long, within this time.
        pub longest_waiter_ns: Option<i64> as Ns,
        /// Time that the holder spent on a CPU from then to the release: the grant that would have been enough.
        /// Null when the release was not recorded; of a hold with more than 32 such times, in all but 32: the first of
        /// each cause and the last ones.
        pub ran_after_ns: Option<i64> as Ns,
        /// Of `dur`, the time in which threads of the agent that recorded had the CPU. Null when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the holder waited for room in its ring meanwhile, or `lower bound` when
        /// records were lost, or it is not known of all the time who had the CPU.
        pub mark: Mark,
    }
}

table! {
    "lock_order",
    /// `lock_order`: threads acquired `lock` at one place while they held `held_lock` from another.
    pub struct LockOrder {
        /// First time.
        pub ts: Nanos,
        /// How often.
        pub count: i64 as Count,
        /// Process.
        pub pid: Pid,
        /// The thread that did it; null when several did.
        pub tid: Option<i32> as Tid,
        /// Address of the lock that was held.
        pub held_lock: i64 as Address,
        /// Its name, or its address in hexadecimal.
        pub held_name: Name,
        /// Its kind.
        pub held_kind: Name,
        /// Where it had been acquired.
        pub held_place: Name,
        /// Address of the lock that was acquired.
        pub lock: i64 as Address,
        /// Its name, or its address in hexadecimal.
        pub lock_name: Name,
        /// Its kind.
        pub kind: Name,
        /// Where it was acquired.
        pub place: Name,
        /// Locks that had been acquired before both, every time, and not for reading, which lets others in: their
        /// addresses in hexadecimal, separated by blanks. At most 8 are kept.
        pub gates: Name,
        /// [`Mark`]: `exact`, or `lower bound` when a thread may have held more than is known, so that there may be more gates.
        pub mark: Mark,
    }
}
