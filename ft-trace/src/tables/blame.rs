//! The table of what every thread lost its time to.

use super::decomposition::Part;
use super::requests::PathKind;
use super::syscall::FileKind;
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// Why a thread had no CPU, although no other one was to have it instead.
    pub enum Withheld {
        /// Its cgroup had used up its quota.
        Quota = "quota",
        /// It is a real-time thread, and such ones had used up their share: others were let run (`sched_rt_runtime_us`, the fair
        /// server).
        Share = "real-time share",
        /// It is a thread of SCHED_DEADLINE, and had used up its budget.
        Budget = "deadline budget",
        /// It is a thread of SCHED_DEADLINE, and yields until its next period.
        Period = "next period",
        /// The timer that was to wake it came late.
        Late = "late timer",
        /// Its CPU was idle: it was on its way to it, or to another one.
        Way = "way to an idle CPU",
        _ => Way
    }
}

table! {
    "blame",
    /// `blame`: all time in which an observed thread did not run, summed by what it waited for and what others did meanwhile. The rows
    /// of a thread, with its *running* of `thread_time`, sum to its wall time, to the nanosecond.
    pub struct Blame {
        /// Begin of the first wait.
        pub ts: Nanos,
        /// Process of the thread that did not run.
        pub pid: Pid,
        /// That thread.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// What it did instead, as in `thread_time`.
        pub part: Part,
        /// System call in which it slept; of *dispatch*, before. Null in none, and where that is not known.
        pub call: Option<Name>,
        /// What that call's descriptor is of.
        pub file: Option<FileKind>,
        /// Address of the futex, or number of the descriptor, for which it waited; null for other calls.
        pub object: Option<i64> as Address,
        /// Operation of a call of `futex`.
        pub operation: Option<i32> as Number,
        /// It is a lock: by the value that is expected of a futex (2, as glibc and Rust have it, or one with priority inheritance), or
        /// since its holder is known.
        pub lock: bool,
        /// It waits for a thread of its process to end: the value that is expected of the futex is the number of one.
        pub join: bool,
        /// It is a futex at which this thread also ends waits: it is taken in turns, as a lock is and a queue is not. Or another thread
        /// of the process has ended its only wait there, and it had work of its own before or behind that: whoever waits for work comes
        /// back.
        pub turns: bool,
        /// Number of the thread that held it when it began to wait: of a mutex of glibc that is in use by one process alone.
        pub holder_tid: Option<i32> as Tid,
        /// Where it left the CPU, a row or more of `stacks`; null where that is not known.
        pub stack: Option<i64> as Number,
        /// Thread that ended the wait, if it was one that is observed; null where several of its name and process are summed.
        pub waker_tid: Option<i32> as Tid,
        /// Process of those threads.
        pub waker_pid: Option<i32> as Pid,
        /// Their name.
        pub waker_comm: Option<Name>,
        /// Where in its code it did that.
        pub waker_stack: Option<i64> as Number,
        /// It had asked the threads that ended the wait: of both roles, its own was the first to wake the other, and goes on to. Else
        /// it waits for what others bring.
        pub asked: bool,
        /// A timer of its own has ended this part of the wait, and it went on at the same place until the thread above ended it: what
        /// follows is what was done in this part for which it waited all the time.
        pub again: bool,
        /// Waits through which the row follows those that end one another: 0: only this thread; 1: the one that woke it; more: the one
        /// that had woken that, and so on; 3 and more are 3.
        pub depth: i32 as Count,
        /// From a depth of 2 on, name of the threads that waited for the one behind it.
        pub through_comm: Option<Name>,
        /// System call in which they slept.
        pub through_call: Option<Name>,
        /// They waited for a lock, or had asked that one.
        pub through_needs: bool,
        /// Where they left the CPU.
        pub through_stack: Option<i64> as Number,
        /// Thread for which it waited at last: at the end of these waits, or the one that had the CPU, if that is observed; null where several of its name and process are summed.
        pub behind_tid: Option<i32> as Tid,
        /// Process of those threads.
        pub behind_pid: Option<i32> as Pid,
        /// Their name.
        pub behind_comm: Option<Name>,
        /// What that one did meanwhile, or what was done to it.
        pub kind: PathKind,
        /// Who or what did that to it: who had the CPU, which interrupt struck or woke it, who woke it that is not observed; of
        /// *unknown*, why.
        pub culprit: Option<Name>,
        /// Number of that thread, if it is one; 0: idle. Null where several of its name are summed.
        pub culprit_tid: Option<i32> as Tid,
        /// That thread is of the agent that recorded.
        pub recording: bool,
        /// Why nobody can be blamed for it: of *preempted* and *dispatch*, what kept it from a CPU; of *blocked*, that the timer for which it
        /// slept came late. `culprit` then says whose quota it is, or who ran meanwhile. Null otherwise.
        pub withheld: Option<Withheld>,
        /// System call in which that one slept.
        pub behind_call: Option<Name>,
        /// What that call's descriptor is of.
        pub behind_file: Option<FileKind>,
        /// Where in its code that one was; null where that is not known.
        pub behind_stack: Option<i64> as Number,
        /// `behind_stack` is of a sample. Else, where that one slept, lost its CPU or woke another one.
        pub sampled: bool,
        /// The sum.
        pub ns: i64 as Ns,
        /// Pieces of time that are summed.
        pub pieces: i64 as Count,
        /// Waits that are over, or times without a CPU: each counts in the row that has most of it.
        pub waits: i64 as Count,
        /// Of these, those for nothing: at least three threads were woken by one at once, and it was one of those that went back to sleep at
        /// the same place; of each three or more, one is not counted.
        pub vain: i64 as Count,
        /// The longest of the waits of which a piece is here, until the thread had a CPU again.
        pub longest_ns: i64 as Ns,
        /// Its begin.
        pub longest_ts: Nanos,
        /// [`Mark`]: the worst of all pieces. `lower bound` where what others did is not known, or records are missing.
        pub mark: Mark,
    }
}
