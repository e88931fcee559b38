//! Where all the time of a thread went so far: its account by part, and by who or what took it.
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

use super::account::Stretches;
use super::blocked::{BlockedOn, Waits};
use super::cpus::{Cpus, Occupant, Shares};
use super::culprit::{Culprit, Unknown};
use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::Part;

/// Culprits of one part of one thread that are told apart.
///
/// Limit: the first ones are exact; later threads of one name share a row without a number; the row of the rest is
/// named `others`.
/// Shown by: `culprits_are_bounded_and_the_rest_is_counted`, `later_threads_of_one_name_are_together`.
const MAX_CULPRITS: usize = 64;

/// Threads of one part whose sum is found at once.
const KNOWN: usize = 4096;

/// The time of one part that one culprit took.
#[derive(Debug)]
pub(crate) struct Sum {
    pub(crate) part: Part,
    pub(crate) culprit: Culprit,
    pub(crate) ns: i64,
    /// Uninterrupted stretches.
    pub(crate) stretches: i64,
    /// Of the time, what threads of the agent had the CPU.
    pub(crate) agent_ns: i64,
    end: i64,
}

impl Sum {
    fn new(part: Part, culprit: Culprit) -> Self {
        Sum { part, culprit, ns: 0, stretches: 0, agent_ns: 0, end: i64::MIN }
    }

    fn add(&mut self, start: i64, end: i64) {
        self.ns += end - start;
        self.stretches += i64::from(self.end != start);
        self.end = end;
    }
}

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
    /// That was drawn already.
    pub(super) drawn: bool,
    pub(crate) waits: Waits,
}

impl Spent {
    /// Of a thread that is seen for the first time at `first`.
    pub(crate) fn new(first: i64) -> Self {
        let running = Sum::new(Part::Running, Culprit::Nobody);
        let known = Default::default();
        let sums = vec![running];
        Spent { first, sums, known, waiting: None, drawn: false, waits: Waits::default() }
    }

    /// First sight.
    pub(crate) fn first(&self) -> i64 {
        self.first
    }

    /// The sums that are not 0.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &Sum> {
        self.sums.iter().filter(|s| s.ns != 0)
    }

    /// Since when it is runnable and does not run, for how long of that the account was advanced, and in which part;
    /// unless it was drawn.
    pub(super) fn to_draw(&self) -> Option<(i64, i64, Part)> {
        self.waiting.filter(|_| !self.drawn)
    }

    /// The thread waits for a CPU no longer; `shares` tells who ran meanwhile.
    pub(crate) fn waited(&mut self, shares: &Shares, cpus: &Cpus) {
        self.drawn = false;
        let Some((since, mut rest, part)) = self.waiting.take() else { return };
        let mut cursor = 0;
        for share in shares.iter() {
            // A loss may have cut the wait shorter than the time that the other had.
            let ns = share.ns.min(rest);
            rest -= ns;
            if ns > 0 {
                let at = self.sum_of(part, &share.who, &mut cursor);
                self.sums[at].add(since, since + ns);
                self.sums[at].agent_ns += if cpus.is_agents(share.who.thread) { ns } else { 0 };
            }
        }
        self.add_unknown(part, since, since + rest, Unknown::Occupant);
    }

    /// Of the time that counts as running, the thread says that it did not run for `ns`.
    pub(crate) fn did_not_run(&mut self, ns: i64, gap_start: i64) {
        self.sums[0].ns -= ns;
        self.add_unknown(Part::Unexplained, gap_start, gap_start + ns, Unknown::InGaps);
    }

    fn add_blocked(&mut self, start: i64, end: i64, on: BlockedOn, name: Option<&Name>) {
        let is =
            |c: &Culprit| matches!(c, Culprit::Blocked(o, n) if *o == on && n.as_ref() == name);
        self.add(Part::Blocked, start, end, is, || Culprit::Blocked(on, name.cloned()));
    }

    fn add_unknown(&mut self, part: Part, start: i64, end: i64, why: Unknown) {
        let culprit = Culprit::Unknown(why);
        self.add(part, start, end, |c| *c == culprit, || Culprit::Unknown(why));
    }

    fn add_interrupt(&mut self, part: Part, start: i64, end: i64, which: Option<&Name>) {
        let Some(which) = which else { return };
        let is = |c: &Culprit| matches!(c, Culprit::Interrupt(name) if name == which);
        self.add(part, start, end, is, || Culprit::Interrupt(which.clone()));
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
        let is_others = |s: &Sum| s.part == part && s.culprit == Culprit::Others;
        let known = self.sums.iter().position(is_others);
        known.unwrap_or_else(|| self.push(part, Culprit::Others))
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
            Culprit::Threads(name) => s.part == part && *name == new.comm,
            _ => false,
        })?;
        self.sums[i].culprit = Culprit::Threads(new.comm.clone());
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
                    let ((on, name), until) = self.waits.cause(at);
                    let (name, until) = (name.cloned(), until.min(end));
                    self.add_blocked(at, until, on, name.as_ref());
                    at = until;
                }
            }
            Part::Hardirq | Part::Softirq | Part::Vector => {
                self.add_interrupt(part, start, end, which);
            }
            Part::Unexplained => self.add_unknown(part, start, end, Unknown::NoRecord),
        }
    }
}

#[cfg(test)]
mod tests;
