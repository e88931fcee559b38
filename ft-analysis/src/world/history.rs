//! What the kernel recorded of a polling thread since its last gap.
//!
//! A poller reports a gap when it is over, so the account at its begin must still be there. Each polling thread
//! therefore keeps a [`History`]: the stretches of its account since its last gap, the newest [`MAX_STRETCHES`] of them.
//! What there was in a gap ([`Past`]) are the stretches cut to it. A worker of a load keeps
//! one from its announcement on, because its first job is released before it polls.

use std::collections::VecDeque;

use super::account::Stretches;
use super::cpus::Shares;
use super::interval::Interval;
use crate::agreement::{self, Missed};
use ft_trace::ids::Name;
use ft_trace::tables::{Decomposition, Part};

/// Stretches that one polling thread keeps. A 1000 Hz tick with its softirqs makes about 4000 a second,
/// so this covers at least a second between two gaps, and any longer time in which the thread does not run.
///
/// Limit: the gap has no kernel account and is counted (`before_history`); a run of a load has no parts, and those of
/// its job are a `lower bound`.
/// Shown by: `the_history_is_bounded_and_says_so`.
const MAX_STRETCHES: usize = 4096;

#[derive(Debug)]
struct Stretch {
    start: i64,
    end: i64,
    part: Part,
    which: Option<Name>,
    /// Who ran meanwhile, when it was preempted.
    shares: Option<Box<Shares>>,
}

impl Stretch {
    /// The thread could run, and did not.
    fn waits_for_cpu(&self) -> bool {
        matches!(self.part, Part::Preempted | Part::Dispatch)
    }

    /// The kernel saw that the thread did not run.
    fn interrupts(&self) -> bool {
        !matches!(self.part, Part::Running | Part::Unexplained)
    }
}

/// The recent account of one polling thread.
#[derive(Debug)]
pub(crate) struct History {
    /// Nothing is known of the time before.
    start: i64,
    /// Since when no gap has reported what interrupts it.
    told: i64,
    stretches: VecDeque<Stretch>,
    /// What the kernel saw and no gap has reported so far.
    missed: [Missed; 5],
    /// The interruption at the end of what was forgotten.
    interruption: Option<(i64, i64)>,
}

/// What the kernel recorded of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Past {
    /// By the account; what no stretch covers is unexplained.
    pub(crate) parts: Decomposition,
    /// Who ran while the thread could run and did not. Where a wait begins before or ends after the interval, that of
    /// several which is surely in it.
    pub(crate) shares: Shares,
    /// The interrupts that struck it, and how long each took.
    pub(crate) interrupts: Vec<(Part, Name, i64)>,
    /// Of some of it nothing is known: since a loss, or a switch that was not recorded, until the next record.
    pub(crate) hidden: bool,
}

impl History {
    pub(crate) fn new(now: i64) -> Self {
        History {
            start: now,
            told: now,
            stretches: VecDeque::new(),
            missed: Default::default(),
            interruption: None,
        }
    }

    /// Of a thread that does not poll yet, so that no gap tells what interrupts it.
    pub(crate) fn quiet(now: i64) -> Self {
        History { told: i64::MAX, ..History::new(now) }
    }

    /// The thread polls from now on, if it did not before.
    pub(crate) fn polls(&mut self, now: i64) {
        self.told = self.told.min(now);
    }

    /// The thread waited for a CPU until now, and `shares` tells who ran.
    pub(crate) fn displaced(&mut self, shares: &Shares) {
        if let Some(last) = self.stretches.iter_mut().rev().find(|s| s.waits_for_cpu()) {
            match &mut last.shares {
                Some(known) => known.merge(shares),
                None => last.shares = Some(Box::new(shares.clone())),
            }
        }
    }

    /// A gap was reported: forgets everything up to its end.
    pub(crate) fn tell(&mut self, gap: Interval) {
        let (before, after) = (gap.before(), gap.after());
        while let Some(s) = self.stretches.pop_front_if(|s| s.end <= after) {
            if s.end <= before {
                self.forget(&s);
            } else {
                // The gap tells of this, and of what goes over into it.
                let before = self.interruption.take();
                self.miss(before.filter(|(_, end)| !s.interrupts() || *end != s.start));
            }
        }
        self.start = self.start.max(after);
        self.told = self.told.max(after);
    }

    /// A stretch that no gap has reported.
    fn forget(&mut self, s: &Stretch) {
        // What reaches over the end of a gap was reported by it.
        let missed = s.interrupts() && s.start >= self.told;
        match &mut self.interruption {
            Some((_, end)) if missed && *end == s.start => *end = s.end,
            other => {
                let before = std::mem::replace(other, missed.then_some((s.start, s.end)));
                self.miss(before);
            }
        }
    }

    fn miss(&mut self, interruption: Option<(i64, i64)>) {
        if let Some((start, end)) = interruption {
            let missed = &mut self.missed[agreement::length(end - start)];
            missed.count += 1;
            missed.total_ns += end - start;
        }
    }

    /// The thread polls no more: what the kernel saw and no gap has reported.
    pub(crate) fn end(mut self) -> [Missed; 5] {
        while let Some(s) = self.stretches.pop_front() {
            self.forget(&s);
        }
        let last = self.interruption.take();
        self.miss(last);
        self.missed
    }

    /// What there was in an interval that is over. `None`: it begins before the history.
    pub(crate) fn past(&self, interval: Interval) -> Option<Past> {
        let (before, after) = (interval.before(), interval.after());
        if before < self.start {
            return None;
        }
        let mut past = Past::default();
        for s in &self.stretches {
            let ns = s.end.min(after) - s.start.max(before);
            if ns <= 0 {
                continue;
            }
            *past.parts.part_mut(s.part) += ns;
            if let Some(who) = &s.shares {
                past.shares.merge_cut(who, ns, s.end - s.start);
            }
            if let Some(which) = &s.which {
                match past.interrupts.iter_mut().find(|(p, n, _)| *p == s.part && n == which) {
                    Some((_, _, sum)) => *sum += ns,
                    None => past.interrupts.push((s.part, which.clone(), ns)),
                }
            }
        }
        past.hidden = past.parts.unexplained_ns > 0;
        past.parts.unexplained_ns += interval.len_ns() - past.parts.total_ns();
        Some(past)
    }
}

impl Stretches for History {
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        match self.stretches.back_mut() {
            Some(last)
                if last.end == start && last.part == part && last.which.as_ref() == which =>
            {
                last.end = end;
                return;
            }
            _ => {}
        }
        if self.stretches.len() == MAX_STRETCHES
            && let Some(oldest) = self.stretches.pop_front()
        {
            self.forget(&oldest);
            self.start = oldest.end;
        }
        self.stretches.push_back(Stretch { start, end, part, which: which.cloned(), shares: None });
    }
}

impl Stretches for Option<Box<History>> {
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        if let Some(history) = self {
            history.stretch(start, end, part, which);
        }
    }
}

#[cfg(test)]
mod tests;
