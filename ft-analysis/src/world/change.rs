//! What happened to the world, in the small steps that analyses are interested in.

use super::history::Past;
use super::{
    Hold, Interval, Left, Occupancy, Poll, Shares, Site, State, Stretch, TaskId, Thread, Wait, Wake,
};
use crate::agreement::Missed;
use ft_trace::event::{LeanChain, LeanContention, LeanFutex, LeanProbe, LeanSample, LeanUserEvent};
use ft_trace::ids::{Cpu, ThreadKey};
use ft_trace::tables::{Doubt, Irq, Throttle};

/// Why what a thread holds, waits for and polls is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The thread has ended.
    Thread,
    /// Its memory was replaced.
    Exec,
    /// The recording has ended.
    Trace,
    /// Its events were lost.
    Loss,
}

/// Something that happened to the world. Threads are observed ones, with their accounts advanced to now where the change
/// is their own.
#[derive(Debug)]
pub enum Change<'a> {
    /// A thread has a CPU.
    Dispatched {
        /// The thread.
        thread: &'a Thread,
        /// What it was in until now.
        after: State,
        /// Who ran while it waited for a CPU.
        shares: &'a Shares,
        /// The wake-up that this ends.
        wake: Option<&'a Wake>,
        /// The CPU.
        cpu: Cpu,
    },
    /// A thread that could run is about to be known not to wait for a CPU, and nobody saw it get one.
    Unseen {
        /// The thread, as it was.
        thread: &'a Thread,
    },
    /// Records of some time are missing, which is over by now, or begins now.
    Missing(&'a Doubt),
    /// The call chain of a thread was taken: off the CPU since now, or upon waking another one.
    Chain {
        /// The thread.
        thread: &'a Thread,
        /// The chain.
        chain: &'a LeanChain,
        /// Whom it has woken, if that one is observed and lives.
        woken: Option<&'a Thread>,
    },
    /// A thread is kept from its CPU by the quota of its group.
    Throttled {
        /// The thread, which may sleep.
        thread: &'a Thread,
        /// Since now, for how long, and by which group.
        throttle: &'a Throttle,
    },
    /// A thread was sampled.
    Sampled {
        /// The thread.
        thread: &'a Thread,
        /// The sample.
        sample: &'a LeanSample,
    },
    /// A thread is woken, wherever it is.
    Waking {
        /// The thread.
        thread: &'a Thread,
        /// By whom.
        wake: &'a Wake,
        /// The CPU on which it is woken.
        cpu: Cpu,
        /// The thread that has that CPU, which an interrupt may have stopped.
        waker: Option<ThreadKey>,
        /// It is new.
        birth: bool,
    },
    /// An interrupt begins, whichever thread it strikes.
    Interrupted(&'a Irq),
    /// A thread has begun a call about a futex or a semaphore.
    Called {
        /// The thread.
        thread: &'a Thread,
        /// The call.
        call: &'a LeanFutex,
    },
    /// That call has returned.
    Returned {
        /// The thread.
        thread: &'a Thread,
        /// The call.
        call: &'a LeanFutex,
    },
    /// A thread has begun to wait for a lock of the kernel.
    Contends {
        /// The thread.
        thread: &'a Thread,
        /// The wait.
        wait: &'a LeanContention,
        /// No two waits of a trace have the same.
        id: u64,
    },
    /// That wait is over.
    Contended {
        /// The thread.
        thread: &'a Thread,
        /// Which it was.
        id: u64,
    },
    /// A CPU has gone from a thread to another one.
    Switched {
        /// The CPU.
        cpu: Cpu,
        /// Who had it, if that one is observed and lives.
        prev: Option<&'a Thread>,
    },
    /// A thread has come to a place that is probed.
    Probed {
        /// The thread.
        thread: &'a Thread,
        /// Where.
        hit: &'a LeanProbe,
    },
    /// A thread may have come to places that are probed, of which the records are lost.
    ProbesLost {
        /// The thread.
        thread: &'a Thread,
    },
    /// A thread has begun to poll a task. What an event means for polls comes before the event, so that this lies in the
    /// poll that it begins, and not in the one that it ends.
    TaskPoll {
        /// The thread; it is in the poll.
        thread: &'a Thread,
        /// The event that begins it.
        event: &'a LeanUserEvent,
        /// The poll.
        poll: &'a Poll,
    },
    /// A thread polls a task no longer.
    TaskPolled {
        /// The thread; it is not in the poll.
        thread: &'a Thread,
        /// The event that says so.
        event: &'a LeanUserEvent,
        /// The task.
        task: TaskId,
        /// The poll; `None` when its begin was not recorded.
        poll: Option<&'a Poll>,
        /// What has become of it.
        how: Left,
    },
    /// A thread has recorded an event of its own, whose meaning to the world comes after this, unless it is of polls.
    Own {
        /// The thread.
        thread: &'a Thread,
        /// The event.
        event: &'a LeanUserEvent,
        /// Its site.
        site: &'a Site,
    },
    /// A thread found a lock taken, and is in its queue.
    Queued {
        /// The thread; it waits.
        thread: &'a Thread,
    },
    /// A thread, which was in the queue of a lock, waits no longer.
    WaitOver {
        /// The thread; it waits no longer.
        thread: &'a Thread,
        /// The wait.
        wait: &'a Wait,
        /// How it ended.
        end: Outcome,
    },
    /// A thread has a lock or a semaphore.
    Acquired {
        /// The thread; it holds it.
        thread: &'a Thread,
        /// The hold.
        hold: &'a Hold,
    },
    /// A thread has given a lock or a semaphore back.
    Released {
        /// The thread; it holds it no longer.
        thread: &'a Thread,
        /// Address of the lock.
        lock: i64,
        /// The hold; `None` when its acquisition was not recorded.
        hold: Option<&'a Hold>,
        /// No lock was acquired after it and is still held.
        in_order: bool,
    },
    /// A task that holds a lock or a semaphore is run by another thread than before.
    HoldMoved {
        /// The thread that has run it last, if it lives.
        from: Option<&'a Thread>,
        /// The thread that runs it now.
        thread: &'a Thread,
        /// The hold.
        hold: &'a Hold,
    },
    /// A hold is over, and its end was not recorded.
    HoldLost {
        /// The thread; it is not known to hold it.
        thread: &'a Thread,
        /// The hold.
        hold: &'a Hold,
    },
    /// All that a thread holds, waits for and polls is about to be over, or not known any more.
    Dropping {
        /// The thread, as it was.
        thread: &'a Thread,
        /// Why.
        why: Over,
    },
    /// A thread polls.
    Polls {
        /// The thread.
        thread: &'a Thread,
        /// Where.
        cpu: Cpu,
    },
    /// A polling thread reports that it did not run; what the kernel recorded of the time before is forgotten after this.
    Gap {
        /// The thread.
        thread: &'a Thread,
        /// Where it runs again.
        cpu: Cpu,
        /// When it did not run.
        interval: Interval,
        /// What the kernel recorded of that time; `None` when that is not known any more.
        past: Option<&'a Past>,
    },
    /// A thread polls no more.
    PollingOver {
        /// The thread.
        thread: &'a Thread,
        /// What the kernel saw of it and no gap reported.
        missed: &'a [Missed; 5],
    },
    /// A piece of a thread's time is settled, which is over by now. Told while an analysis
    /// [`follows`](crate::Analysis::follows).
    Spent(&'a Stretch),
    /// A thread, observed or not, has left its CPU; what it did until then came before. Only [`Analysis::DRAWS`](crate::Analysis::DRAWS) sees it.
    Occupied(&'a Occupancy),
    /// A thread has ended, or the trace has. It holds, waits for and polls nothing.
    Ended {
        /// The thread.
        thread: &'a Thread,
        /// Its end was recorded.
        seen: bool,
    },
}

/// How a wait for a lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the lock.
    Acquired,
    /// Without it: a time-out, or the lock refused.
    Abandoned,
    /// The end was not recorded.
    Unknown,
    /// The thread, its memory or the trace ended first.
    Over(Over),
}
