//! The table of scopes.

use super::decomposition::{Counts, Decomposition};
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, SiteId, Tid};

table! {
    "scopes",
    /// `scopes`: one piece of work that a program has marked with `scope!`, whose begin and end were both recorded.
    pub struct Scope {
        /// Begin.
        pub ts: Nanos,
        /// End minus begin.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread; of a scope that went with its task from one to another, the one that ended it.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// Event in `sites` that began it.
        pub site: SiteId,
        /// Name of the scope, `category.name`.
        pub event: Name,
        /// Scopes in which the thread already was, of those whose begin was recorded: its own, and those of tasks that it then ran.
        pub depth: i32 as Count,
        /// [`Mark`] of `depth` alone: `lower bound` where the thread may be in a scope whose begin was not recorded: begun before
        /// the recording, before its sites were on, or in a loss; else `exact`. All else is as true as `mark` says.
        pub depth_mark: Mark,
        /// Decomposition of `dur`; null without a kernel stream. What inner scopes took is part of it. Of a scope that began in a
        /// task, only the time in which threads ran that task is theirs, and the rest is `parked_ns`.
        pub parts: Option<Decomposition>,
        /// How often something happened to the thread meanwhile.
        pub counts: Option<Counts>,
        /// Columns `counter0` and `counter1`: what the counters that `record --counter` was given, in their order, counted of the
        /// thread in user space meanwhile (`task-clock`: ns on a CPU, in the kernel, too), with what the recording of its events executed there.
        /// Null where there is none, where it is not
        /// known what it showed at both ends, or whether it counted all the time, and where its task was parked meanwhile.
        pub counter: [Option<i64>; 2] as Count,
        /// Waiting for locks meanwhile, by the program's own account, whatever the parts say of that time. A wait whose
        /// end was not recorded is not in it.
        pub lock_wait_ns: i64 as Ns,
        /// Who ran most in `preempted_ns`; null when it is 0.
        pub preemptor_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub preemptor_comm: Option<Name>,
        /// How long that thread had the CPU meanwhile.
        pub preemptor_ns: Option<i64> as Ns,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, or `lower bound` when
        /// records were lost during the scope, or it is not known of all the time off the CPU who had it.
        pub mark: Mark,
    }
}
