//! Where the time of an interval of a thread went: its account at the end minus its account at the begin.

use super::counted::Counted;
use super::{Thread, World};
use ft_trace::tables::{Counts, Decomposition};

/// An interval of a thread that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Began {
    /// When it began.
    pub(crate) ts: i64,
    /// The thread's account then.
    pub(super) account: Decomposition,
    /// Of its waits for a CPU until then, what the agent had it.
    pub(super) agent_ns: i64,
    /// What had happened to it then.
    pub(super) counted: Counted,
}

impl Began {
    /// It begins now.
    pub(crate) fn now(thread: &Thread, world: &World) -> Began {
        Began { agent_ns: world.agent_ns(thread), ..Began::at(world.now(), thread) }
    }

    /// It begins at `now`.
    pub(super) fn at(now: i64, thread: &Thread) -> Began {
        let (agent_ns, counted) = (thread.agent_ns, thread.counted);
        Began { ts: now, account: thread.account(now), agent_ns, counted }
    }

    /// Where the time went from this begin to a later one of the same thread; nothing without a kernel stream.
    pub(crate) fn until(&self, later: &Began) -> Decomposition {
        later.account - self.account
    }

    /// Of the waits for a CPU from this begin to a later one of the same thread, what the agent had it.
    pub(crate) fn agent_until(&self, later: &Began) -> i64 {
        later.agent_ns - self.agent_ns
    }

    /// How often something happened from this begin to a later one of the same thread; page faults as far as they are recorded.
    pub(crate) fn counts_until(&self, later: &Began) -> Counts {
        later.counted.since(&self.counted, true)
    }

    /// Where its time went until now; not known without a kernel stream.
    pub(crate) fn parts(&self, thread: &Thread, world: &World) -> Option<Decomposition> {
        world.context().kernel.then(|| thread.account(world.now()) - self.account)
    }

    /// How often something happened to the thread until now; not known without a kernel stream.
    pub(crate) fn counts(&self, thread: &Thread, world: &World) -> Option<Counts> {
        let knows_faults = world.knows_faults_since(self.ts);
        world.context.kernel.then(|| thread.counted.since(&self.counted, knows_faults))
    }

    /// What the thread's counters counted until now.
    pub(crate) fn counter(&self, thread: &Thread, world: &World) -> [Option<i64>; 2] {
        thread.counted.counted(world.now(), &self.counted, self.ts)
    }

    /// What they counted from this begin to a later one of the same thread.
    pub(crate) fn counter_until(&self, later: &Began) -> [Option<i64>; 2] {
        later.counted.counted(later.ts, &self.counted, self.ts)
    }

    /// Of *preempted* and *dispatch* until now, what the agent had the CPU, if it is known who that is. The thread had a
    /// CPU when the interval began.
    pub(crate) fn agent_ns(&self, thread: &Thread, world: &World) -> Option<i64> {
        let parts = self.parts(thread, world)?;
        world.agent_part(world.agent_ns(thread) - self.agent_ns, &parts)
    }
}
