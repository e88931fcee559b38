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
//!   rest of the [`Shares`], which marks what is made of them.
//! - *A switch away from a thread that did not have the CPU*: switches in between were not recorded. The last occupant
//!   had the CPU until the last record that shows it there: a switch, a wake-up that it did, an interrupt that struck it, an
//!   event of its own. Who had it since is not known.
//! - *The same, when a waiting thread has left the queue since that record*, to another CPU: it took a share of the
//!   last occupant's time with it that now is in doubt, so that thread is told ([`Unseen::doubtful`]).
//! - *The idle task*: an occupant like any other, thread 0; the CPU was free, and the wait is the wake-up itself.

use super::spans::{Count, Spans};
use super::sums::{Keyed, Sum, Sums};
use ft_trace::ids::{Cpu, Name, ThreadKey, Tid};

/// A thread that had a CPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occupant {
    pub(crate) thread: ThreadKey,
    pub(crate) comm: Name,
    /// Kernel priority.
    pub(crate) prio: i32,
}

impl Keyed for Occupant {
    type Key = ThreadKey;

    fn key(&self) -> ThreadKey {
        self.thread
    }
}

/// One thread's part of a wait.
pub(crate) type Share = Sum<Occupant>;

/// Who had the CPU during a wait; with a rest, it is not known of all of it.
pub(crate) type Shares = Sums<Occupant>;

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
    /// Threads that waited for the CPU and left its queue after the last record that shows `last` there, and when.
    pub(crate) doubtful: Vec<(ThreadKey, i64)>,
}

#[derive(Debug, Default)]
struct Queue {
    occupant: Option<Occupant>,
    /// The last record that shows it there.
    seen: i64,
    /// Who had the CPU before is counted.
    counted: i64,
    waiters: Spans<ThreadKey, Shares>,
    /// Who has left since `seen`, and when last.
    left: Vec<(ThreadKey, i64)>,
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
        self.counted = self.counted.max(t);
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
    fn forget(&mut self, t: i64) -> Option<Unseen> {
        self.count(self.seen.min(t));
        let last = self.occupant.take()?.thread;
        self.count(t);
        Some(Unseen { last, doubtful: std::mem::take(&mut self.left) })
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
        q.forget(t)
    }

    /// `thread`, which was given `cpu` last, is seen on another one at `t`: it left unseen.
    pub(crate) fn elsewhere(&mut self, cpu: Cpu, t: i64, thread: ThreadKey) -> Option<Unseen> {
        let q = self.queue(cpu)?;
        if q.occupant.as_ref()?.thread != thread {
            return None;
        }
        q.forget(t)
    }

    /// `next` has `cpu` from `t` on.
    pub(crate) fn switch(&mut self, cpu: Cpu, t: i64, next: ThreadKey, comm: &Name, prio: i32) {
        let Some(q) = self.queue(cpu) else { return };
        q.count(t);
        q.shown(t);
        match &mut q.occupant {
            // Most switches go back and forth between few names: keep the one that is there.
            Some(o) if o.comm == *comm => (o.thread, o.prio) = (next, prio),
            o => *o = Some(Occupant { thread: next, comm: comm.clone(), prio }),
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

    /// Scheduler records were lost: nobody is known to have any CPU.
    pub(crate) fn lose(&mut self, t: i64) {
        for q in &mut self.0 {
            q.count(t);
            q.occupant = None;
            q.left.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::Pid;

    const ME: ThreadKey = ThreadKey { pid: Pid(1), tid: Tid(7) };

    fn other(tid: i32) -> ThreadKey {
        ThreadKey { pid: Pid(2), tid: Tid(tid) }
    }

    fn check(shares: &Shares, expected: &[(i32, i64)]) {
        let found: Vec<_> = shares.iter().map(|s| (s.who.thread.tid.0, s.ns)).collect();
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
        check(&cpus.migrate(ME, Cpu(0), Cpu(1), 17), &[(1, 7)]);
        check(&cpus.leave(ME, Cpu(1), 20), &[(2, 3)]);
    }

    #[test]
    fn nobody_is_blamed_for_what_is_not_known() {
        let mut cpus = Cpus::default();
        cpus.wait(ME, Cpu(0), 10);
        cpus.switch(Cpu(0), 20, other(1), &"a".into(), 120);
        cpus.lose(25);
        let shares = cpus.leave(ME, Cpu(0), 40);
        check(&shares, &[(1, 5)]);
        assert!(!shares.is_exact());
        check(&cpus.leave(ME, Cpu(-1), 40), &[]);
        check(&cpus.leave(ME, Cpu(i32::MAX), 40), &[]);
    }

    #[test]
    fn the_occupant_is_blamed_until_it_was_seen_last() {
        // cpu 0:  A (0..)  seen at 12  ....  B leaves at 40; another waiter comes and goes meanwhile
        let eight = other(8);
        let mut cpus = Cpus::default();
        cpus.switch(Cpu(0), 0, other(1), &"a".into(), 120);
        cpus.wait(ME, Cpu(0), 5);
        cpus.wait(eight, Cpu(0), 10);
        cpus.shown(Cpu(0), 12, Tid(1));
        cpus.shown(Cpu(0), 13, Tid(3));
        let told = cpus.leave(eight, Cpu(0), 30);
        check(&told, &[(1, 20)]);
        let unseen = cpus.unseen(Cpu(0), 40, other(2)).unwrap();
        assert_eq!(unseen, Unseen { last: other(1), doubtful: vec![(eight, 30)] });
        cpus.switch(Cpu(0), 40, other(3), &"c".into(), 120);
        let shares = cpus.leave(ME, Cpu(0), 50);
        check(&shares, &[(1, 7), (3, 10)]);
        assert!(!shares.is_exact(), "12 to 40 is nobody's");
    }

    #[test]
    fn a_share_that_a_later_record_bears_out_is_not_in_doubt() {
        let mut cpus = Cpus::default();
        cpus.switch(Cpu(0), 0, other(1), &"a".into(), 120);
        cpus.wait(ME, Cpu(0), 5);
        assert!(cpus.leave(ME, Cpu(0), 30).is_exact());
        cpus.shown(Cpu(0), 35, Tid(1));
        let unseen = cpus.elsewhere(Cpu(0), 40, other(1)).unwrap();
        assert_eq!(unseen, Unseen { last: other(1), doubtful: vec![] });
        assert_eq!(cpus.elsewhere(Cpu(0), 40, other(1)), None);
    }

    /// Random switches, waits and moves on two CPUs against a plain recomputation.
    #[test]
    fn shares_are_what_happened_however_many_took_part() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let mut cpus = Cpus::default();
        // On each CPU, who has it from when on; of each waiter, on which CPU it stands since when, and what it has.
        let mut had: [Vec<(i64, i32)>; 2] = [vec![(0, 0)], vec![(0, 0)]];
        let mut waits: Vec<(ThreadKey, usize, i64, Shares)> = Vec::new();
        for cpu in 0..2 {
            cpus.switch(Cpu(cpu), 0, other(0), &"idle".into(), 120);
        }
        let (mut most, mut t) = (0, 0);
        for i in 0..20_000 {
            t += random(10) as i64;
            let cpu = random(2) as usize;
            match random(20) {
                0 => {
                    let tid = other(10_000 + i);
                    cpus.wait(tid, Cpu(cpu as i32), t);
                    waits.push((tid, cpu, t, Shares::default()));
                }
                1 | 2 if !waits.is_empty() => {
                    // Some wait very long.
                    let at = (waits.len() - 1).saturating_sub(random(8) as usize);
                    let (tid, on, since, mut shares) = waits.swap_remove(at);
                    let moved = random(3) == 0;
                    let to = 1 - on;
                    let now = if moved {
                        cpus.migrate(tid, Cpu(on as i32), Cpu(to as i32), t)
                    } else {
                        cpus.leave(tid, Cpu(on as i32), t)
                    };
                    let mut truth = std::collections::BTreeMap::new();
                    for (k, &(from, who)) in had[on].iter().enumerate() {
                        let end = had[on].get(k + 1).map_or(t, |next| next.0);
                        let ns = end.min(t) - from.max(since);
                        if ns > 0 {
                            *truth.entry(who).or_default() += ns;
                        }
                    }
                    let truth: Vec<(i32, i64)> = truth.into_iter().collect();
                    check(&now, &truth);
                    assert!(now.is_exact());
                    most = most.max(truth.len());
                    shares.merge(&now);
                    if moved {
                        waits.push((tid, to, t, shares));
                    }
                }
                _ => {
                    let who = 1 + random(300) as i32;
                    cpus.switch(Cpu(cpu as i32), t, other(who), &"x".into(), 120);
                    had[cpu].push((t, who));
                }
            }
        }
        assert!(most > 100, "{most}");
    }

    #[test]
    fn memory_is_bounded_and_says_so() {
        let mut cpus = Cpus::default();
        cpus.switch(Cpu(0), 0, other(1), &"x".into(), 120);
        cpus.wait(ME, Cpu(0), 0);
        for i in 0..10_000 {
            cpus.switch(Cpu(0), i64::from(i) * 10 + 3, other(100 + i), &"x".into(), 120);
            cpus.switch(Cpu(0), i64::from(i) * 10 + 6, other(1), &"hog".into(), 120);
        }
        let shares = cpus.leave(ME, Cpu(0), 100_000);
        assert!(shares.iter().count() <= crate::sums::MAX_KEPT && !shares.is_exact());
        assert_eq!(shares.longest().map(|s| s.who.thread), Some(other(1)));
    }
}
