//! Who ran while a thread had to wait for a CPU.
//!
//! **Goal.** For a thread that is runnable and does not run, name the threads that had its CPU, and for how
//! long each.
//!
//! **Rule.** Every `sched_switch` tells who has a CPU from then on. A waiting thread stands in the queue of
//! one CPU. When the CPU's occupant changes, its time is counted once for all that wait ([`super::spans`]); a
//! thread that leaves the queue gets what was counted since it came, as [`Shares`].
//!
//! **Situations.**
//! - *Preempted*: it waits on the CPU that it had to leave.
//! - *Woken*: it waits on the CPU on which it last ran, until a migration says otherwise.
//! - *Migrated while it waits*: what it saw so far stays; from now on the other CPU's occupants count.
//! - *A CPU whose occupant is not known* (no switch seen yet, or records lost): nobody is blamed, and the time is the
//!   rest of the [`Shares`], which marks what is made of them. Who comes while records are being lost may have left and
//!   come again by the end of the loss, so that only a switch behind that tells who has the CPU.
//! - *A switch away from a thread that did not have the CPU*: switches in between were not recorded. The last occupant
//!   had the CPU until the last record that shows it there: a switch, a wake-up that it did, an interrupt that struck it, an
//!   event of its own. Who had it since is not known.
//! - *The same, when a waiting thread has left the queue since that record*, to another CPU: it took a share of the
//!   last occupant's time with it that now is in doubt, so that thread is told ([`Unseen::doubtful`]).
//! - *The idle task*: an occupant like any other, thread 0; the CPU was free, and the wait is the wake-up itself.
//! - *A thread of the agent that recorded*: an occupant like any other; but how long they had each CPU is summed up
//!   ([`Cpus::agent_ns`]), so that their part of any wait is the difference of two readings.

use super::log::Occupancy;
use super::per_cpu::index;
use super::spans::{Count, Spans};
use super::sums::{Keyed, Sum, Sums};
use ft_trace::ids::{Cpu, Name, Pid, ThreadKey, Tid};

/// A thread that had a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupant {
    /// The thread; 0: idle.
    pub thread: ThreadKey,
    /// Its name.
    pub comm: Name,
    /// Kernel priority.
    pub prio: i32,
}

impl Keyed for Occupant {
    type Key = ThreadKey;

    fn key(&self) -> ThreadKey {
        self.thread
    }
}

/// One thread's part of a wait.
pub type Share = Sum<Occupant>;

/// Who had the CPU during a wait; with a rest, it is not known of all of it.
pub type Shares = Sums<Occupant>;

impl Count for Shares {
    fn merge(&mut self, later: &Self) {
        Sums::merge(self, later);
    }
}

/// Switches on a CPU that were not recorded.
#[derive(Debug, PartialEq)]
pub(crate) struct Unseen {
    /// Who was given the CPU last.
    pub(crate) last: ThreadKey,
    /// Its name.
    pub(crate) comm: Name,
    /// The last record that shows it there.
    pub(crate) since: i64,
    /// Threads that waited for the CPU and left its queue after the last record that shows `last` there, and when.
    pub(crate) doubtful: Vec<(ThreadKey, i64)>,
}

#[derive(Debug, Default)]
struct Queue {
    occupant: Option<Occupant>,
    /// When it was given the CPU.
    since: i64,
    /// The last record that shows it there.
    seen: i64,
    /// Who had the CPU before is counted.
    counted: i64,
    waiters: Spans<ThreadKey, Shares>,
    /// Who has left since `seen`, and when last.
    left: Vec<(ThreadKey, i64)>,
    /// The occupant is a thread of the agent.
    is_agents: bool,
    /// How long the agent has had the CPU, as far as it is counted.
    agent_ns: i64,
    /// A thread that is recorded has had it.
    is_shared: bool,
}

/// Counts `occupant` for `from .. to`.
fn count(shares: &mut Shares, occupant: Option<&Occupant>, from: i64, to: i64) {
    match occupant {
        Some(occupant) => shares.add(occupant, from, to - from),
        None => shares.add_unknown(to - from),
    }
}

impl Queue {
    /// Counts the present occupant up to `t`.
    fn count(&mut self, t: i64) {
        let (from, occupant) = (self.counted, self.occupant.as_ref());
        self.waiters.spread(from, t, |shares, from, to| count(shares, occupant, from, to));
        self.agent_ns = self.agent_ns_at(t);
        self.counted = self.counted.max(t);
    }

    /// How long the agent has had the CPU until `t`.
    fn agent_ns_at(&self, t: i64) -> i64 {
        let uncounted = if self.is_agents { t.saturating_sub(self.counted).max(0) } else { 0 };
        self.agent_ns + uncounted
    }

    /// Nobody is known to have the CPU.
    fn take_occupant(&mut self) -> Option<Occupant> {
        self.is_agents = false;
        self.occupant.take()
    }

    fn leave(&mut self, thread: ThreadKey, t: i64) -> Option<Shares> {
        let (since, counts) = self.waiters.seen_by(&thread)?;
        let mut shares = Sums::total(counts);
        let from = since.max(self.counted);
        count(&mut shares, self.occupant.as_ref(), from, t);
        // It did not run: that it had the CPU shows that a switch is missing.
        shares.disown(&thread);
        self.waiters.end(&thread);
        let in_doubt = self.occupant.is_some() && t > from.max(self.seen);
        if in_doubt {
            match self.left.iter_mut().find(|(left, _)| *left == thread) {
                Some((_, last)) => *last = t,
                None => self.left.push((thread, t)),
            }
        }
        Some(shares)
    }

    /// A record at `t` shows that the occupant has the CPU.
    fn shown(&mut self, t: i64) {
        self.seen = t;
        self.left.clear();
    }

    /// What the occupant has had the CPU for since it was last seen is not known at `t`.
    fn forget(&mut self, t: i64) -> Option<(Unseen, Occupant)> {
        self.count(self.seen.min(t));
        let occupant = self.take_occupant()?;
        self.count(t);
        let (last, comm) = (occupant.thread, occupant.comm.clone());
        let doubtful = std::mem::take(&mut self.left);
        Some((Unseen { last, comm, since: self.seen.min(t), doubtful }, occupant))
    }
}

/// All CPUs: who has each, and which observed threads wait for it.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    queues: Vec<Queue>,
    /// Switches may be missing up to this time, so none before it says who has a CPU behind it.
    dark_until: Option<i64>,
    /// The process that recorded, if it is known.
    agent: Option<Pid>,
    /// Who has left a CPU, if anybody wants to know.
    over: Option<Vec<Occupancy>>,
}

/// How long threads of the agent had CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentTime {
    /// All of them.
    pub(crate) all_ns: i64,
    /// Those that threads had which are recorded.
    pub(crate) shared_ns: i64,
}

impl Cpus {
    /// No CPU was seen yet, of a trace that `agent` has recorded; each who leaves one is kept if somebody `draws` them.
    pub(super) fn new(agent: Option<Pid>, draws: bool) -> Cpus {
        Cpus { queues: Vec::new(), dark_until: None, agent, over: draws.then(Vec::new) }
    }

    /// Who has left a CPU since the last call.
    pub(super) fn take_over(&mut self) -> Vec<Occupancy> {
        self.over.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A thread of the agent.
    pub(crate) fn is_agents(&self, thread: ThreadKey) -> bool {
        self.agent == Some(thread.pid)
    }

    /// How long threads of the agent have had `cpu` until `t`. Where a switch turns out to be missing, it is less
    /// afterwards.
    pub(crate) fn agent_ns(&self, cpu: Cpu, t: i64) -> i64 {
        let queue = usize::try_from(cpu.0).ok().and_then(|i| self.queues.get(i));
        queue.map_or(0, |queue| queue.agent_ns_at(t))
    }

    /// The same of all CPUs; not known without an agent.
    pub(crate) fn agent_time(&self, t: i64) -> Option<AgentTime> {
        self.agent?;
        let mut time = AgentTime::default();
        for queue in &self.queues {
            let ns = queue.agent_ns_at(t);
            time.all_ns += ns;
            time.shared_ns += if queue.is_shared { ns } else { 0 };
        }
        Some(time)
    }

    /// A thread that is recorded, and not the agent's, has `cpu`.
    pub(crate) fn share(&mut self, cpu: Cpu) {
        if let Some(queue) = self.queue(cpu) {
            queue.is_shared = true;
        }
    }

    fn queue(&mut self, cpu: Cpu) -> Option<&mut Queue> {
        let i = index(cpu)?;
        if i >= self.queues.len() {
            self.queues.resize_with(i + 1, Queue::default);
        }
        self.queues.get_mut(i)
    }

    /// The last occupant of `cpu`, which is `who`, was last seen there by now.
    fn forget(&mut self, cpu: Cpu, t: i64) -> Option<Unseen> {
        let q = self.queue(cpu)?;
        let (unseen, who) = q.forget(t)?;
        let (from, to) = (q.since, q.seen.min(t));
        if let Some(over) = &mut self.over {
            over.push(Occupancy { cpu, who, from, to, seen: false });
        }
        Some(unseen)
    }

    /// Who has `cpu` now, if that is known.
    pub(crate) fn occupant(&self, cpu: Cpu) -> Option<&Occupant> {
        self.queues.get(index(cpu)?)?.occupant.as_ref()
    }

    /// A record at `t` shows that `tid` has `cpu`. When another thread was given the CPU last, the next switch tells.
    pub(crate) fn shown(&mut self, cpu: Cpu, t: i64, tid: Tid) {
        if let Some(q) = self.queue(cpu)
            && q.occupant.as_ref().is_some_and(|o| o.thread.tid == tid)
        {
            q.shown(t);
        }
    }

    /// `prev` leaves `cpu` at `t`. When another thread was given the CPU last, switches are missing.
    pub(crate) fn unseen(&mut self, cpu: Cpu, t: i64, prev: ThreadKey) -> Option<Unseen> {
        let q = self.queue(cpu)?;
        if q.occupant.as_ref()?.thread == prev {
            q.shown(t);
            return None;
        }
        self.forget(cpu, t)
    }

    /// `thread`, which was given `cpu` last, is seen on another one at `t`: it left unseen.
    pub(crate) fn elsewhere(&mut self, cpu: Cpu, t: i64, thread: ThreadKey) -> Option<Unseen> {
        let q = self.queue(cpu)?;
        if q.occupant.as_ref()?.thread != thread {
            return None;
        }
        self.forget(cpu, t)
    }

    /// `next` has `cpu` from `t` on.
    pub(crate) fn switch(&mut self, cpu: Cpu, t: i64, next: ThreadKey, comm: &Name, prio: i32) {
        if self.dark_until.is_some_and(|until| t <= until) {
            return;
        }
        let is_agents = self.is_agents(next);
        let draws = self.over.is_some();
        let Some(q) = self.queue(cpu) else { return };
        q.count(t);
        q.shown(t);
        q.is_agents = is_agents;
        let before = q.occupant.as_ref().filter(|_| draws).cloned();
        let before = before.map(|who| Occupancy { cpu, who, from: q.since, to: t, seen: true });
        q.since = t;
        match &mut q.occupant {
            // Most switches go back and forth between few names: keep the one that is there.
            Some(o) if o.comm == *comm => (o.thread, o.prio) = (next, prio),
            o => *o = Some(Occupant { thread: next, comm: comm.clone(), prio }),
        }
        if let (Some(over), Some(before)) = (&mut self.over, before) {
            over.push(before);
        }
    }

    /// `thread` waits for `cpu` from `t` on.
    pub(crate) fn wait(&mut self, thread: ThreadKey, cpu: Cpu, t: i64) {
        if let Some(q) = self.queue(cpu) {
            q.waiters.begin(thread, t);
        }
    }

    /// `thread`, which waited for `from`, waits for `to` from `t` on; tells who had `from`.
    pub(crate) fn migrate(&mut self, thread: ThreadKey, from: Cpu, to: Cpu, t: i64) -> Shares {
        let shares = self.leave(thread, from, t);
        self.wait(thread, to, t);
        shares
    }

    /// `thread`, which waited for `cpu`, waits no longer; tells who had it.
    pub(crate) fn leave(&mut self, thread: ThreadKey, cpu: Cpu, t: i64) -> Shares {
        self.queue(cpu).and_then(|q| q.leave(thread, t)).unwrap_or_default()
    }

    /// Scheduler records were lost from `t` to `until`: nobody is known to have any CPU.
    pub(crate) fn lose(&mut self, t: i64, until: i64) {
        self.dark_until = self.dark_until.max(Some(until));
        for (q, cpu) in self.queues.iter_mut().zip(0..) {
            q.count(t);
            if let (Some(who), Some(over)) = (q.take_occupant(), &mut self.over) {
                over.push(Occupancy { cpu: Cpu(cpu), who, from: q.since, to: t, seen: false });
            }
            q.left.clear();
        }
    }

    /// The trace ends at `t`.
    pub(super) fn end(&mut self, t: i64) {
        self.lose(t, t);
    }
}

#[cfg(test)]
mod tests;
