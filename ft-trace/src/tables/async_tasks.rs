//! The tables of async tasks (`ft_user::task`) and of their polls.

use super::decomposition::{Counts, Decomposition};
use crate::Mark;
use crate::ids::{Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// How a poll of a task ended.
    pub enum PollEnd {
        /// The task waits for something.
        Pending = "pending",
        /// The task is done.
        Ready = "ready",
        /// A panic left it.
        Panic = "panic",
        /// The thread or the recording ended first.
        Unended = "unended",
        _ => Unended
    }
}

words! {
    /// How a task ended.
    pub enum TaskEnd {
        /// Its last poll was ready.
        Ready = "ready",
        /// It was dropped before: cancelled.
        Dropped = "dropped",
        /// A panic left its last poll.
        Panic = "panic",
        /// The process or the recording ended first.
        Unended = "unended",
        _ => Unended
    }
}

table! {
    "async_tasks",
    /// `async_tasks`: the life of one async task. `unstarted_ns`, `queued_ns`, `waiting_ns`, `polled_ns` and `unknown_ns` sum to
    /// `dur`, and the parts to `polled_ns`, to the nanosecond.
    pub struct AsyncTask {
        /// When it was made; of one whose making was not recorded, its first poll that was.
        pub ts: Nanos,
        /// Until its end; of one without, until that of its process or of the recording.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Its number in the process: one of each copy of the tracer in it, and of each program that the process executes. From
        /// 10^15 on: one that its executor's hooks report, without its wake-ups.
        pub task: i64 as Number,
        /// Its name; empty where it has none.
        pub name: Name,
        /// Where in the source it was made; empty when not known.
        pub place: Name,
        /// Thread that made it; null when that was not recorded.
        pub maker_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub maker_comm: Option<Name>,
        /// Task in whose poll it was made; null outside of all.
        pub parent: Option<i64> as Number,
        /// How it ended.
        pub end: TaskEnd,
        /// Made, and neither woken nor polled yet: with its executor, or not handed to it.
        pub unstarted_ns: i64 as Ns,
        /// Woken, and not polled yet: in the queue of its executor.
        pub queued_ns: i64 as Ns,
        /// Polled, pending, and not woken again.
        pub waiting_ns: i64 as Ns,
        /// In polls.
        pub polled_ns: i64 as Ns,
        /// In none of these as far as is known: events of a thread that polled it were lost, or that thread left the fiber in
        /// which it polled it; until the next event that shows it. Of a task that its executor's hooks report, all time outside of
        /// polls.
        pub unknown_ns: i64 as Ns,
        /// Decomposition of `polled_ns`: *blocked* is in a call that blocks the thread. Null without a kernel stream.
        pub parts: Option<Decomposition>,
        /// Columns `counter0` and `counter1`: the sums of those of its polls that are rows of `async_switches`; null without one, and
        /// where one of them has null.
        pub counter: [Option<i64>; 2] as Count,
        /// Polls, of those that are rows of `async_switches`.
        pub polls: i64 as Count,
        /// Wake-ups, also those of a task that was woken already.
        pub wakes: i64 as Count,
        /// The longest of its polls.
        pub longest_poll_ns: i64 as Ns,
        /// The longest time from a wake-up to the poll.
        pub longest_queue_ns: i64 as Ns,
        /// [`Mark`]: `exact`, `disturbed` when a thread of the process waited for room in its ring, `lower bound` when its
        /// making was not recorded, or records were lost during its life; `censored` without an end.
        pub mark: Mark,
    }
}

table! {
    "async_switches",
    /// `async_switches`: one poll of an async task by a thread.
    pub struct AsyncSwitch {
        /// Begin.
        pub ts: Nanos,
        /// End minus begin; of one without, until the thread or the recording ended.
        pub dur: i64 as Ns,
        /// Process.
        pub pid: Pid,
        /// Thread that polled.
        pub tid: Tid,
        /// Its name.
        pub comm: Name,
        /// As in `async_tasks`.
        pub task: i64 as Number,
        /// Name of the task; empty where it has none.
        pub name: Name,
        /// Where in the source it was made; empty when not known.
        pub place: Name,
        /// Polls in which the thread already was: of tasks within tasks.
        pub depth: i32 as Count,
        /// How it ended.
        pub end: PollEnd,
        /// Decomposition of `dur`; null without a kernel stream. What inner polls took is part of it.
        pub parts: Option<Decomposition>,
        /// How often something happened to the thread meanwhile.
        pub counts: Option<Counts>,
        /// Columns `counter0` and `counter1`: what the counters that `record --counter` was given, in their order, counted of the
        /// thread in user space meanwhile (`task-clock`: ns on a CPU, in the kernel, too), with what the recording of its events executed there.
        /// Null where there is none, and where it is not
        /// known what it showed at both ends, or whether it counted all the time.
        pub counter: [Option<i64>; 2] as Count,
        /// What it was blocked for longest at once, by the words of `thread_time`; null when it was not blocked.
        pub blocked_for: Option<Name>,
        /// For how long.
        pub blocked_for_ns: Option<i64> as Ns,
        /// Where in the code that was, in `stacks`; null without a call chain.
        pub blocked_stack: Option<i64> as Number,
        /// Who ran most in `preempted_ns`; null when it is 0.
        pub preemptor_tid: Option<i32> as Tid,
        /// Name of that thread.
        pub preemptor_comm: Option<Name>,
        /// How long that thread had the CPU meanwhile.
        pub preemptor_ns: Option<i64> as Ns,
        /// Of `preempted_ns` and `dispatch_ns`, the time in which threads of the agent that recorded had the CPU. Null
        /// when that is not known.
        pub agent_ns: Option<i64> as Ns,
        /// Locks that its thread acquired in it and still held at its end: nobody else gets them until the task goes on, and
        /// whoever wants one in another task of this thread never does. 0 without an end.
        pub held: i32 as Count,
        /// Name of the first of them, as in `critical_sections`; null when there is none.
        pub held_lock: Option<Name>,
        /// Where it was acquired.
        pub held_place: Option<Name>,
        /// Until it began, since the first wake-up after the begin of the poll before; since that poll's end where the wake-up
        /// came before it. Null of a poll for which no wake-up was recorded, as a first one.
        pub queued_ns: Option<i64> as Ns,
        /// Thread that woke the task.
        pub waker_tid: Option<i32> as Tid,
        /// Its name.
        pub waker_comm: Option<Name>,
        /// Task whose poll that thread was in; null outside of all.
        pub waker_task: Option<i64> as Number,
        /// Of `queued_ns`, what the thread that then polled was woken itself and waited for a CPU, just before the poll; null
        /// with `queued_ns`, and without a kernel stream.
        pub queued_dispatch_ns: Option<i64> as Ns,
        /// Of `queued_ns`, what that thread polled other tasks; null with `queued_ns`, and within another poll.
        pub behind_ns: Option<i64> as Ns,
        /// Polls in that. At most 256 are kept: of more, the newest count.
        pub behind_polls: Option<i32> as Count,
        /// The task that it polled longest in that.
        pub behind_task: Option<i64> as Number,
        /// Name of that task, or where it was made.
        pub behind_name: Option<Name>,
        /// For how long it polled that one.
        pub behind_task_ns: Option<i64> as Ns,
        /// [`Mark`]: `exact`, `disturbed` when the thread waited for room in its ring, `lower bound` when
        /// records were lost since the poll before, or it is not known of all the time off the CPU who had it; `censored`
        /// without an end.
        pub mark: Mark,
    }
}

impl AsyncTask {
    /// Its name, or where it was made; empty where neither is known.
    pub fn label(&self) -> &Name {
        label(&self.name, &self.place)
    }
}

impl AsyncSwitch {
    /// The task's name, or where it was made; empty where neither is known.
    pub fn label(&self) -> &Name {
        label(&self.name, &self.place)
    }
}

fn label<'a>(name: &'a Name, place: &'a Name) -> &'a Name {
    if name.is_empty() { place } else { name }
}
