//! The table of histograms, which can be added over traces.

use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What a histogram counts the lengths of, which is also the table that has them one by one.
    pub enum Quantity {
        /// Holds of a lock: `critical_sections`.
        Hold = "hold",
        /// Waits for a lock: `lock_waits`.
        Wait = "wait",
        /// Wake-ups, from the waking to the CPU: `dispatch_latency`.
        Dispatch = "dispatch",
        /// Gaps of a polling thread: `gaps`.
        Gap = "gap",
        /// Pieces of work that a program has marked: `scopes`.
        Scope = "scope",
        /// Requests: `requests`.
        Request = "request",
        _ => Request
    }
}

table! {
    "histograms",
    /// `histograms`: how many intervals of one kind were about as long, so that rows of many traces can be added: of each lock, place,
    /// thread name, neighbour and mark a row for each length that there was. Lengths below 64 ns are distinguished; of longer ones each
    /// power of two is divided into 32 buckets, so that the bounds of one are at most 1/32 (3.1 %) apart.
    pub struct Bucket {
        /// Begin of the longest of them, which is a row of the quantity's own table.
        pub ts: Nanos,
        /// Process of that one.
        pub pid: Pid,
        /// Thread of that one; of a request, the thread that ended it.
        pub tid: Tid,
        /// What they are.
        pub quantity: Quantity,
        /// Name of the lock, the scope or the request; of a gap, its cause. Empty: none, as of wake-ups. `(others)`: those of which no
        /// row of their own was kept, of all places and threads.
        pub name: Name,
        /// Source place of the acquisition; empty when not known, or where there is none.
        pub place: Name,
        /// Name of the thread, of holds its newest one; of a request, of the thread that ended it.
        pub comm: Name,
        /// Who had the CPU longest while the thread could have run: of holds and scopes `preemptor_comm`, who preempted them, of
        /// wake-ups `running_comm`, of gaps the culprit where it is a thread. `swapper`: nobody, the CPU was idle. Empty: the thread
        /// did not wait for a CPU, or behind whom is not known, as of lock waits and requests. The lengths are those of the whole
        /// intervals, of which the neighbour may have had little.
        pub neighbour: Name,
        /// The least length that is counted here.
        pub from_ns: i64 as Ns,
        /// The greatest one.
        pub to_ns: i64 as Ns,
        /// How many intervals.
        pub count: i64 as Count,
        /// Their lengths together.
        pub sum_ns: i64 as Ns,
        /// The longest of them.
        pub max_ns: i64 as Ns,
        /// [`Mark`] of all of them.
        pub mark: Mark,
    }
}
