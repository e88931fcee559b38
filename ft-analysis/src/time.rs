//! Where all the time of a thread went: by part, and by who or what took it.
//!
//! **Goal.** From the first sight of a thread to its end, or to the end of the trace, one sum for each part and
//! culprit. The sums add up to the wall time to the nanosecond.
//!
//! **Rule.** [`Spent`] receives every stretch that the thread's account attributes, once. A stretch in which the
//! thread was runnable is kept aside until it runs: only then is it known who ran instead, and
//! [`Spent::waited`] shares it out. What nobody is known to have used goes to *not known*.
//!
//! *Preempted* and *dispatch* are told apart here: a thread that had to leave the CPU was preempted until it is
//! back, one that was woken waits for its dispatch.
//!
//! A polling thread knows better than the scheduler whether it ran: what its gaps hold of *running* is moved to
//! *unexplained* ([`Spent::did_not_run`]). Of any other thread such time cannot be seen, and counts as running.
//!
//! **Bound.** The first [`MAX_CULPRITS`] of each part have sums of their own, exact from their first nanosecond.
//! Later threads share one sum with an earlier one of their name, which then is that of the name; the time of
//! all others goes to *others*.

use crate::blocked::Waits;
use crate::displaced::{Occupant, Shares};
use crate::ledger::Stretches;
use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::Part;

/// Culprits of one part of one thread that are told apart.
const MAX_CULPRITS: usize = 64;

/// Threads of one part whose sum is found at once.
const KNOWN: usize = 4096;

/// Who or what took the time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Culprit {
    /// The thread itself, or nothing that has a name.
    None,
    /// A kind of thing, and its name if it has one.
    What(&'static str, Option<Name>),
    /// A thread that ran instead.
    Thread(Occupant),
}

impl Culprit {
    /// For tables.
    pub(crate) fn name(&self) -> Option<Name> {
        match self {
            Culprit::None => None,
            Culprit::What("", name) => name.clone(),
            Culprit::What(kind, None) => Some((*kind).into()),
            Culprit::What(kind, Some(name)) => Some(format!("{kind} {name}").into()),
            Culprit::Thread(o) => Some(o.comm.clone()),
        }
    }
}

/// The time of one part that one culprit took.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) part: Part,
    pub(crate) culprit: Culprit,
    pub(crate) ns: i64,
    /// Uninterrupted stretches.
    pub(crate) stretches: i64,
    end: i64,
}

impl Sum {
    fn new(part: Part, culprit: Culprit) -> Self {
        Sum { part, culprit, ns: 0, stretches: 0, end: i64::MIN }
    }

    fn add(&mut self, start: i64, end: i64) {
        self.ns += end - start;
        self.stretches += i64::from(self.end != start);
        self.end = end;
    }
}

/// The parts, in the order of reports.
pub const PARTS: [&str; 8] =
    ["running", "preempted", "dispatch", "blocked", "hardirq", "softirq", "vector", "unexplained"];

/// The time of one thread.
#[derive(Debug)]
pub(crate) struct Spent {
    first: i64,
    /// The first is of running.
    sums: Vec<Sum>,
    /// Where the sums of threads are, of those that were preempted for and of those that dispatch waited for.
    known: [Known; 2],
    /// Runnable and not running, not yet shared out: since when, how long, and in which part.
    waiting: Option<(i64, i64, Part)>,
    pub(crate) waits: Waits,
}

impl Spent {
    /// Of a thread that is seen for the first time at `first`.
    pub(crate) fn new(first: i64) -> Self {
        let running = Sum::new(Part::Running, Culprit::None);
        let known = Default::default();
        Spent { first, sums: vec![running], known, waiting: None, waits: Waits::default() }
    }

    /// First sight.
    pub(crate) fn first(&self) -> i64 {
        self.first
    }

    /// The sums that are not 0.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &Sum> {
        self.sums.iter().filter(|s| s.ns != 0)
    }

    /// The thread waits for a CPU no longer; `shares` tells who ran meanwhile.
    pub(crate) fn waited(&mut self, shares: &Shares) {
        let Some((since, mut rest, part)) = self.waiting.take() else { return };
        let mut cursor = 0;
        for share in shares.iter() {
            // A loss may have cut the wait shorter than the time that the other had.
            let ns = share.ns.min(rest);
            rest -= ns;
            if ns > 0 {
                let at = self.sum_of(part, &share.who, &mut cursor);
                self.sums[at].add(since, since + ns);
            }
        }
        self.add_what(part, since, since + rest, "not known", None);
    }

    /// Of the time that counts as running, the thread says that it did not run for `ns`.
    pub(crate) fn did_not_run(&mut self, ns: i64, gap_start: i64) {
        self.sums[0].ns -= ns;
        self.add_what(Part::Unexplained, gap_start, gap_start + ns, "in gaps", None);
    }

    fn add_what(
        &mut self,
        part: Part,
        start: i64,
        end: i64,
        kind: &'static str,
        name: Option<&Name>,
    ) {
        let is = |c: &Culprit| matches!(c, Culprit::What(k, n) if *k == kind && n.as_ref() == name);
        self.add(part, start, end, is, || Culprit::What(kind, name.cloned()));
    }

    fn add(
        &mut self,
        part: Part,
        start: i64,
        end: i64,
        is: impl Fn(&Culprit) -> bool,
        make: impl FnOnce() -> Culprit,
    ) {
        if end == start {
            return;
        }
        let known = self.sums.iter().position(|s| s.part == part && is(&s.culprit));
        let at = known.unwrap_or_else(|| self.find_room(part, make()));
        self.sums[at].add(start, end);
    }
}

/// Where the sums of some threads are, to look no further, in the order of their keys. On a CPU that hundreds share, each
/// wait asks for hundreds; in order, that walks through memory once, where a hash table would jump as often.
#[derive(Debug, Default)]
struct Known(Vec<(ThreadKey, usize)>);

impl Known {
    /// Place of a thread's sum; `cursor`, at or before the thread, comes to it, or to where it belongs.
    fn find(&self, thread: ThreadKey, cursor: &mut usize) -> Option<usize> {
        let rest = self.0.get(*cursor..).unwrap_or_default();
        // In steps that grow: it is near in a long list, and far in a short one.
        let mut end = 1;
        while rest.get(end).is_some_and(|(known, _)| *known < thread) {
            end *= 2;
        }
        let near = &rest[end / 2..rest.len().min(end + 1)];
        *cursor += end / 2 + near.partition_point(|(known, _)| *known < thread);
        self.0.get(*cursor).filter(|(known, _)| *known == thread).map(|(_, at)| *at)
    }

    /// Remembers where the sum of a thread is that was not found at `cursor`.
    fn insert(&mut self, thread: ThreadKey, at: usize, cursor: &mut usize) {
        if self.0.len() >= KNOWN {
            self.0.clear();
            *cursor = 0;
        }
        self.0.insert(*cursor, (thread, at));
    }
}

impl Spent {
    /// The sum of a thread, or the one that it shares with others. Threads are asked for in the order of their keys;
    /// `cursor` is where the last one was found.
    fn sum_of(&mut self, part: Part, who: &Occupant, cursor: &mut usize) -> usize {
        let kind = usize::from(part == Part::Dispatch);
        let at = self.known[kind].find(who.thread, cursor).unwrap_or_else(|| {
            let is = |c: &Culprit| matches!(c, Culprit::Thread(o) if o.thread == who.thread);
            let known = self.sums.iter().position(|s| s.part == part && is(&s.culprit));
            let at = known.unwrap_or_else(|| self.find_room(part, Culprit::Thread(who.clone())));
            self.known[kind].insert(who.thread, at, cursor);
            at
        });
        // Threads are told apart by their numbers; what they are called is their newest name.
        if let Culprit::Thread(o) = &mut self.sums[at].culprit
            && o.thread == who.thread
            && o.comm != who.comm
        {
            *o = who.clone();
        }
        at
    }

    /// A sum for a culprit that has none.
    fn find_room(&mut self, part: Part, culprit: Culprit) -> usize {
        if self.sums.iter().filter(|s| s.part == part).count() < MAX_CULPRITS {
            return self.push(part, culprit);
        }
        if let Some(i) = self.name_of(part, &culprit) {
            return i;
        }
        let others = Culprit::What("others", None);
        let known = self.sums.iter().position(|s| s.part == part && s.culprit == others);
        known.unwrap_or_else(|| self.push(part, others))
    }

    fn push(&mut self, part: Part, culprit: Culprit) -> usize {
        self.sums.push(Sum::new(part, culprit));
        self.sums.len() - 1
    }

    /// The sum of a thread of the same name, from now on of all threads of that name.
    fn name_of(&mut self, part: Part, culprit: &Culprit) -> Option<usize> {
        let Culprit::Thread(new) = culprit else { return None };
        let i = self.sums.iter().position(|s| match &s.culprit {
            Culprit::Thread(o) => s.part == part && o.comm == new.comm,
            Culprit::What("", name) => s.part == part && name.as_ref() == Some(&new.comm),
            _ => false,
        })?;
        self.sums[i].culprit = Culprit::What("", Some(new.comm.clone()));
        Some(i)
    }
}

impl Stretches for Spent {
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        match part {
            Part::Running => self.sums[0].add(start, end),
            Part::Preempted | Part::Dispatch => {
                self.waiting.get_or_insert((start, 0, part)).1 += end - start;
            }
            Part::Blocked => {
                let mut at = start;
                while at < end {
                    let ((kind, name), until) = self.waits.cause(at);
                    let (name, until) = (name.cloned(), until.min(end));
                    self.add_what(part, at, until, kind, name.as_ref());
                    at = until;
                }
            }
            Part::Hardirq | Part::Softirq | Part::Vector => {
                self.add_what(part, start, end, "", which)
            }
            Part::Unexplained => self.add_what(part, start, end, "no record", None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Cpu, Pid, Tid};
    use ft_trace::tables::TaskState;

    fn sums(spent: &Spent) -> Vec<String> {
        let text = |s: &Sum| {
            let who = s.culprit.name().map_or(String::new(), |n| format!(" {n}"));
            format!("{}{who} {} in {}", s.part, s.ns, s.stretches)
        };
        spent.sums().map(text).collect()
    }

    #[test]
    fn stretches_that_touch_are_one() {
        let mut spent = Spent::new(0);
        let timer: Name = "local_timer".into();
        spent.stretch(0, 10, Part::Running, None);
        spent.stretch(10, 20, Part::Running, None);
        spent.stretch(20, 23, Part::Vector, Some(&timer));
        spent.stretch(23, 30, Part::Running, None);
        assert_eq!(sums(&spent), ["running 27 in 2", "vector local_timer 3 in 1"]);
    }

    #[test]
    fn a_thread_that_is_renamed_stays_one_culprit_under_its_newest_name() {
        let mut spent = Spent::new(0);
        let mut cpus = crate::displaced::Cpus::default();
        let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
        let (me, cpu) = (thread(1), Cpu(0));
        for (start, name) in [(0, "fork"), (20, "worker")] {
            cpus.switch(cpu, start, thread(9), &name.into(), 120);
            cpus.wait(me, cpu, start);
            spent.stretch(start, start + 10, Part::Preempted, None);
            spent.waited(&cpus.leave(me, cpu, start + 10));
        }
        assert_eq!(sums(&spent), ["preempted worker 20 in 2"]);
    }

    #[test]
    fn a_wait_is_cut_at_the_end_of_what_it_was_in() {
        let mut spent = Spent::new(0);
        spent.waits.leaves(TaskState::Sleeping);
        spent.waits.calls(30, &"read".into());
        spent.stretch(10, 50, Part::Blocked, None);
        assert_eq!(sums(&spent), ["blocked system call read 20 in 1", "blocked asleep 20 in 1"]);
    }

    #[test]
    fn a_wait_for_the_cpu_is_shared_out_and_nothing_is_made_up() {
        use crate::displaced::Cpus;
        use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};
        let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
        let (me, cpu) = (thread(7), Cpu(0));
        let mut cpus = Cpus::default();
        cpus.switch(cpu, 0, thread(1), &"hog".into(), 120);
        cpus.wait(me, cpu, 0);
        let shares = cpus.leave(me, cpu, 50);
        let check = |part, waited, expected: &[&str]| {
            let mut spent = Spent::new(0);
            spent.stretch(0, waited, part, None);
            spent.waited(&shares);
            assert_eq!(sums(&spent), expected);
        };
        check(Part::Preempted, 50, &["preempted hog 50 in 1"]);
        check(Part::Dispatch, 60, &["dispatch hog 50 in 1", "dispatch not known 10 in 1"]);
        check(Part::Dispatch, 30, &["dispatch hog 30 in 1"]);
    }

    #[test]
    fn culprits_are_bounded_and_the_rest_is_counted() {
        let mut spent = Spent::new(0);
        for i in 0..1000 {
            let name: Name = format!("nic{i}").into();
            spent.stretch(i * 10, i * 10 + 4, Part::Hardirq, Some(&name));
        }
        assert_eq!(spent.sums.len(), 1 + MAX_CULPRITS + 1);
        let named = MAX_CULPRITS as i64;
        let others = format!("hardirq others {} in {}", 4 * (1000 - named), 1000 - named);
        assert_eq!(sums(&spent).last(), Some(&others));
        assert_eq!(spent.sums().map(|s| s.ns).sum::<i64>(), 4000);
    }

    #[test]
    fn later_threads_of_one_name_are_together() {
        use crate::displaced::Cpus;
        use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};
        let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
        let mut spent = Spent::new(0);
        let mut cpus = Cpus::default();
        for i in 0..200 {
            cpus.switch(Cpu(0), i * 10, thread(100 + i as i32), &"rustc".into(), 120);
            cpus.wait(thread(7), Cpu(0), i * 10);
            spent.stretch(i * 10, i * 10 + 10, Part::Preempted, None);
            spent.waited(&cpus.leave(thread(7), Cpu(0), i * 10 + 10));
        }
        assert_eq!(spent.sums.len(), 1 + MAX_CULPRITS);
        let later = 10 * (200 - MAX_CULPRITS as i64);
        let of_name = |s: &&Sum| s.culprit == Culprit::What("", Some("rustc".into()));
        assert_eq!(spent.sums().find(of_name).map(|s| s.ns), Some(10 + later));
        assert_eq!(spent.sums().map(|s| s.ns).sum::<i64>(), 2000);
    }

    #[test]
    fn places_are_found_in_the_order_of_the_threads_however_far_apart_they_are() {
        let thread = |tid: i32| ThreadKey { pid: Pid(1), tid: Tid(tid) };
        let mut known = Known::default();
        // First every 64th, then with smaller and smaller steps in between.
        for step in [64, 16, 7, 3, 1] {
            let mut cursor = 0;
            for tid in (0..1000).step_by(step) {
                let found = known.find(thread(tid), &mut cursor);
                assert!(found.is_none_or(|at| at == tid as usize), "{tid} at {found:?}");
                if found.is_none() {
                    assert!(known.0.iter().all(|(t, _)| *t != thread(tid)), "{tid} is there");
                    known.insert(thread(tid), tid as usize, &mut cursor);
                }
            }
        }
        assert!(known.0.len() == 1000 && known.0.is_sorted());
        // Beyond the bound it begins anew.
        let mut cursor = known.0.len();
        for tid in 1000..1001 + KNOWN as i32 {
            assert_eq!(known.find(thread(tid), &mut cursor), None);
            known.insert(thread(tid), tid as usize, &mut cursor);
        }
        assert_eq!(known.0.len(), 1001);
        assert_eq!(known.find(thread(999), &mut 0), None);
    }
}
