//! Who ran while a thread had to wait for a CPU.
//!
//! **Goal.** For a thread that is runnable and does not run, name the threads that had its CPU, and for how
//! long each.
//!
//! **Rule.** Every `sched_switch` tells who has a CPU from then on. A waiting thread stands in the queue of
//! one CPU. When the CPU's occupant changes, and when a waiting thread leaves the queue, what the occupant
//! had since the thread came is added to the thread's [`Shares`].
//!
//! **Situations.**
//! - *Preempted*: it waits on the CPU that it had to leave.
//! - *Woken*: it waits on the CPU on which it last ran, until a migration says otherwise.
//! - *Migrated while it waits*: what it saw so far stays; from now on the other CPU's occupants count.
//! - *A CPU whose occupant is not known* (no switch seen yet, or records lost): nobody is blamed.
//! - *A switch away from a thread that did not have the CPU*: switches in between were not recorded. Who had
//!   the CPU since its last record is not known, so nobody is blamed for that time either.
//! - *The idle task*: an occupant like any other, thread 0; the CPU was free, and the wait is the wake-up itself.

use crate::model::{Cpu, Name, ThreadKey};

/// A thread that had a CPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occupant {
    pub(crate) thread: ThreadKey,
    pub(crate) comm: Name,
    /// Kernel priority.
    pub(crate) prio: i32,
}

/// One thread's part of a wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) who: Occupant,
    pub(crate) ns: i64,
}

/// Threads that are told apart in one wait; the time of any further ones is in nobody's share.
const MAX_SHARES: usize = 16;

/// Who had the CPU during a wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shares(Vec<Share>);

impl Shares {
    fn add(&mut self, who: &Occupant, ns: i64) {
        if ns <= 0 {
            return;
        }
        if let Some(share) = self.0.iter_mut().find(|s| s.who.thread == who.thread) {
            share.ns += ns;
        } else if self.0.len() < MAX_SHARES {
            self.0.push(Share { who: who.clone(), ns });
        }
    }

    /// Each of them, in the order in which they came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Share> {
        self.0.iter()
    }

    /// Adds what another wait of the same thread saw.
    pub(crate) fn merge(&mut self, other: &Shares) {
        other.0.iter().for_each(|s| self.add(&s.who, s.ns));
    }

    /// Who had the CPU longest; of equals, who had it first.
    pub(crate) fn longest(&self) -> Option<&Share> {
        self.0.iter().rev().max_by_key(|s| s.ns)
    }
}

#[derive(Debug)]
struct Waiter {
    thread: ThreadKey,
    /// The occupants before are counted.
    since: i64,
    shares: Shares,
}

#[derive(Debug, Default)]
struct Queue {
    occupant: Option<Occupant>,
    waiters: Vec<Waiter>,
}

impl Queue {
    /// Counts the present occupant up to `t` for every waiter.
    fn settle(&mut self, t: i64) {
        for w in &mut self.waiters {
            if let Some(o) = &self.occupant
                && o.thread != w.thread
            {
                w.shares.add(o, t - w.since);
            }
            w.since = w.since.max(t);
        }
    }
}

/// CPU numbers at or above this one come from damaged data (`NR_CPUS` of x86-64 is at most 8192,
/// arch/x86/Kconfig).
const MAX_CPUS: usize = 8192;

/// All CPUs: who has each, and which observed threads wait for it.
#[derive(Debug, Default)]
pub(crate) struct Cpus(Vec<Queue>);

impl Cpus {
    fn queue(&mut self, cpu: Cpu) -> Option<&mut Queue> {
        let i = usize::try_from(cpu.0).ok().filter(|&i| i < MAX_CPUS)?;
        if i >= self.0.len() {
            self.0.resize_with(i + 1, Queue::default);
        }
        self.0.get_mut(i)
    }

    /// Who has `cpu` now, if that is known.
    pub(crate) fn occupant(&mut self, cpu: Cpu) -> Option<&Occupant> {
        self.queue(cpu)?.occupant.as_ref()
    }

    /// `prev` leaves `cpu` at `t`. When another thread was given the CPU last, switches are missing: returns
    /// that thread.
    pub(crate) fn unseen(&mut self, cpu: Cpu, t: i64, prev: ThreadKey) -> Option<ThreadKey> {
        let q = self.queue(cpu)?;
        let last = q.occupant.take_if(|o| o.thread != prev)?;
        q.settle(t);
        Some(last.thread)
    }

    /// `next` has `cpu` from `t` on.
    pub(crate) fn switch(&mut self, cpu: Cpu, t: i64, next: ThreadKey, comm: &Name, prio: i32) {
        let Some(q) = self.queue(cpu) else { return };
        if !q.waiters.is_empty() {
            q.settle(t);
        }
        match &mut q.occupant {
            // Most switches go back and forth between few names: keep the one that is there.
            Some(o) if o.comm == *comm => (o.thread, o.prio) = (next, prio),
            o => *o = Some(Occupant { thread: next, comm: comm.clone(), prio }),
        }
    }

    /// `thread` waits for `cpu` from `t` on.
    pub(crate) fn wait(&mut self, thread: ThreadKey, cpu: Cpu, t: i64) {
        if let Some(q) = self.queue(cpu) {
            q.waiters.push(Waiter { thread, since: t, shares: Shares::default() });
        }
    }

    /// `thread`, which waited for `from`, waits for `to` from `t` on.
    pub(crate) fn migrate(&mut self, thread: ThreadKey, from: Cpu, to: Cpu, t: i64) {
        let shares = self.leave(thread, from, t);
        if let Some(q) = self.queue(to) {
            q.waiters.push(Waiter { thread, since: t, shares });
        }
    }

    /// `thread`, which waited for `cpu`, waits no longer; tells who had its CPUs.
    pub(crate) fn leave(&mut self, thread: ThreadKey, cpu: Cpu, t: i64) -> Shares {
        let Some(q) = self.queue(cpu) else { return Shares::default() };
        let place = q.waiters.iter().position(|w| w.thread == thread);
        let Some(i) = place else { return Shares::default() };
        q.settle(t);
        q.waiters.swap_remove(i).shares
    }

    /// Scheduler records were lost: nobody is known to have any CPU.
    pub(crate) fn lose(&mut self, t: i64) {
        for q in &mut self.0 {
            q.settle(t);
            q.occupant = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::model::{Pid, Tid};

    const ME: ThreadKey = ThreadKey { pid: Pid(1), tid: Tid(7) };

    fn other(tid: i32) -> ThreadKey {
        ThreadKey { pid: Pid(2), tid: Tid(tid) }
    }

    fn check(shares: &Shares, expected: &[(i32, i64)]) {
        let found: Vec<_> = shares.0.iter().map(|s| (s.who.thread.tid.0, s.ns)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_occupant_has_its_share() {
        // cpu 0:  me |  A (10..30)  | B (30..35) | A (35..40) | me
        let mut cpus = Cpus::default();
        cpus.switch(Cpu(0), 10, other(1), &"a".into(), 120);
        cpus.wait(ME, Cpu(0), 10);
        cpus.switch(Cpu(0), 30, other(2), &"b".into(), 120);
        cpus.switch(Cpu(0), 35, other(1), &"a".into(), 120);
        let shares = cpus.leave(ME, Cpu(0), 40);
        check(&shares, &[(1, 25), (2, 5)]);
        assert_eq!(shares.longest().map(|s| (&*s.who.comm, s.ns)), Some(("a", 25)));
    }

    #[test]
    fn the_wait_moves_with_a_migration() {
        // cpu 0:  A |....wait....| moved
        // cpu 1:  B              |..wait..|
        let mut cpus = Cpus::default();
        cpus.switch(Cpu(0), 0, other(1), &"a".into(), 120);
        cpus.switch(Cpu(1), 0, other(2), &"b".into(), 120);
        cpus.wait(ME, Cpu(0), 10);
        cpus.migrate(ME, Cpu(0), Cpu(1), 17);
        check(&cpus.leave(ME, Cpu(1), 20), &[(1, 7), (2, 3)]);
    }

    #[test]
    fn nobody_is_blamed_for_what_is_not_known() {
        let mut cpus = Cpus::default();
        cpus.wait(ME, Cpu(0), 10);
        cpus.switch(Cpu(0), 20, other(1), &"a".into(), 120);
        cpus.lose(25);
        check(&cpus.leave(ME, Cpu(0), 40), &[(1, 5)]);
        check(&cpus.leave(ME, Cpu(-1), 40), &[]);
        check(&cpus.leave(ME, Cpu(i32::MAX), 40), &[]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut cpus = Cpus::default();
        cpus.wait(ME, Cpu(0), 0);
        for i in 0..1000 {
            cpus.switch(Cpu(0), i64::from(i) * 10, other(100 + i), &"x".into(), 120);
        }
        assert_eq!(cpus.leave(ME, Cpu(0), 10_000).0.len(), MAX_SHARES);
    }
}
