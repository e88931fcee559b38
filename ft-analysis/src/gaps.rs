//! What a polling thread's gaps consisted of, by the kernel's account.
//!
//! **Goal.** A poller reports a gap when it is over: `before`, the last time that it looked at the clock, and
//! `after`, the next. Say what the kernel saw in between.
//!
//! **Rule.** The gap is known only at its end, so the account at `before` must still be there. Each polling
//! thread therefore keeps a [`History`]: the stretches of its account since its last gap, the newest
//! [`MAX_STRETCHES`] of them. A gap's parts are the stretches cut to `before .. after`. The poller did
//! not run in its gap, whatever the scheduler says: time on the CPU outside every recorded interrupt counts
//! as unexplained (kernel entry and exit, page faults, steal by a hypervisor, SMI).
//!
//! The *cause* is the largest recorded part, also where it is less than half of the gap: the record of an interruption
//! lies inside what it costs. Entry and exit, and on a virtual machine the exits to the hypervisor, are not in it. Only
//! when neither half of the gap nor all but [`OVERHEAD_NS`] of it is recorded, something else must have had the rest,
//! and the gap is `unexplained`. The *culprit* is who or what had most of the part. A gap without any record may be the
//! tick of a host ([`super::host_tick`]).
//!
//! **Limits.** A gap of a thread whose polling was not announced, and a gap older than the history, have
//! no parts and are counted ([`Unaccounted`]).

use std::collections::VecDeque;

use crate::agreement::{self, Missed};
use crate::displaced::{Occupant, Shares};
use crate::interval::Interval;
use crate::ledger::Stretches;
use ft_trace::ids::Name;
use ft_trace::tables::{Decomposition, GapCause, Part};
use serde::{Deserialize, Serialize};

/// Gaps that the kernel's account cannot explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unaccounted {
    /// The gap begins before the thread's history does.
    pub before_history: u64,
    /// Its end lies before its start, or after the event that reports it; or its start is negative.
    pub impossible: u64,
}

/// Unrecorded time that an interruption of any length may have cost. On a nested virtual machine, the slowest that was
/// measured, gaps with a recorded interruption had a median of 13 µs of it and 99 % had less than 45 µs.
const OVERHEAD_NS: i64 = 50_000;

/// Stretches that one polling thread keeps. A 1000 Hz tick with its softirqs makes about 4000 a second,
/// so this covers at least a second between two gaps, and any longer time in which the thread does not run.
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
    stretches: VecDeque<Stretch>,
    /// What the kernel saw and no gap told so far.
    missed: [Missed; 5],
    /// The interruption at the end of what was forgotten.
    interruption: Option<(i64, i64)>,
}

/// What a gap was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explanation {
    pub(crate) parts: Decomposition,
    pub(crate) cause: GapCause,
    pub(crate) culprit: Option<Culprit>,
    /// What the scheduler counts as running; a part of `unexplained_ns`.
    pub(crate) on_cpu_ns: i64,
    /// A local timer interrupt was part of it.
    pub(crate) timer: bool,
    /// Of some of it nothing is known, or not which other thread had the CPU.
    pub(crate) doubtful: bool,
}

/// Who or what made a gap.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Culprit {
    Thread(Occupant),
    Interrupt(Name),
    /// A host's tick, and its period in ns.
    HostTick(i64),
}

impl History {
    pub(crate) fn new(now: i64) -> Self {
        History {
            start: now,
            stretches: VecDeque::new(),
            missed: Default::default(),
            interruption: None,
        }
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

    /// Explains a gap and forgets everything up to its end. `None`: the gap begins before the history.
    pub(crate) fn explain(&mut self, gap: Interval) -> Option<Explanation> {
        let (before, after) = (gap.before(), gap.after());
        let known = before >= self.start;
        let explanation = known.then(|| self.explanation(gap));
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
        explanation
    }

    /// A stretch of which no gap told.
    fn forget(&mut self, s: &Stretch) {
        // What reaches over the end of a gap was told by it.
        let missed = s.interrupts() && s.start >= self.start;
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

    /// The thread polls no more: what the kernel saw and no gap told.
    pub(crate) fn end(mut self) -> [Missed; 5] {
        while let Some(s) = self.stretches.pop_front() {
            self.forget(&s);
        }
        let last = self.interruption.take();
        self.miss(last);
        self.missed
    }

    fn explanation(&self, gap: Interval) -> Explanation {
        let (before, after) = (gap.before(), gap.after());
        let mut parts = Decomposition::default();
        let mut shares = Shares::default();
        let mut interrupts: Vec<(Part, &Name, i64)> = Vec::new();
        // Since a loss, or a switch that was not recorded, nothing is known until the next record.
        let mut hidden = false;
        for s in &self.stretches {
            let ns = s.end.min(after) - s.start.max(before);
            if ns <= 0 {
                continue;
            }
            *parts.part_mut(s.part) += ns;
            hidden |= s.part == Part::Unexplained;
            if let Some(who) = &s.shares {
                shares.merge(who);
            }
            if let Some(which) = &s.which {
                match interrupts.iter_mut().find(|(p, n, _)| *p == s.part && *n == which) {
                    Some((_, _, sum)) => *sum += ns,
                    None => interrupts.push((s.part, which, ns)),
                }
            }
        }
        // What is left over is covered by no stretch: nothing was recorded for it.
        parts.unexplained_ns =
            gap.len_ns() - (parts.total_ns() - parts.unexplained_ns - parts.running_ns);
        let on_cpu_ns = std::mem::take(&mut parts.running_ns);

        let (cause, part) = largest(&parts, gap.len_ns());
        let culprit = match part {
            Part::Preempted => shares.longest().map(|s| Culprit::Thread(s.who.clone())),
            _ => interrupts
                .iter()
                .filter(|(p, _, _)| *p == part)
                .max_by_key(|(_, _, ns)| *ns)
                .map(|(_, name, _)| Culprit::Interrupt((*name).clone())),
        };
        let timer = interrupts.iter().any(|(_, name, _)| &***name == "local_timer");
        let doubtful = hidden || !shares.is_exact();
        Explanation { parts, cause, culprit, on_cpu_ns, timer, doubtful }
    }
}

fn largest(parts: &Decomposition, dur: i64) -> (GapCause, Part) {
    let recorded = [
        (GapCause::SwitchedOut, Part::Preempted, parts.preempted_ns + parts.dispatch_ns),
        (GapCause::Blocked, Part::Blocked, parts.blocked_ns),
        (GapCause::Hardirq, Part::Hardirq, parts.hardirq_ns),
        (GapCause::Softirq, Part::Softirq, parts.softirq_ns),
        (GapCause::Vector, Part::Vector, parts.vector_ns),
    ];
    let none = (GapCause::Unexplained, Part::Unexplained, 0);
    let (cause, part, ns) = recorded.into_iter().rev().max_by_key(|r| r.2).unwrap_or(none);
    let recorded = dur - parts.unexplained_ns;
    if ns == 0 || parts.unexplained_ns > recorded.max(OVERHEAD_NS) {
        return (GapCause::Unexplained, Part::Unexplained);
    }
    (cause, part)
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
mod tests {
    use super::*;
    use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};

    fn interval(before: i64, after: i64) -> Interval {
        Interval::told(before, after, after).expect("an interval")
    }

    /// A history drawn as text, 10 µs a character: `=` running, `r` preempted, `b` blocked, `h` `s` `v`
    /// interrupts, `?` unexplained; `.` is a moment that no stretch covers. `from` and `to` in characters; unexplained µs.
    fn check(drawn: &str, from: i64, to: i64, expected: Option<(&str, Option<&str>, i64)>) {
        let mut history = History::new(0);
        for (c, i) in drawn.chars().zip(0..) {
            let (part, which): (_, Option<Name>) = match c {
                '=' => (Part::Running, None),
                'r' => (Part::Preempted, None),
                'b' => (Part::Blocked, None),
                'h' => (Part::Hardirq, Some("nic".into())),
                's' => (Part::Softirq, Some("NET_RX".into())),
                'v' => (Part::Vector, Some("local_timer".into())),
                '?' => (Part::Unexplained, None),
                _ => continue,
            };
            history.stretch(i * 10_000, i * 10_000 + 10_000, part, which.as_ref());
        }
        let found = history.explain(interval(from * 10_000, to * 10_000));
        if let Some(e) = &found {
            assert_eq!(e.parts.total_ns(), (to - from) * 10_000, "{drawn}");
            assert_eq!(e.parts.running_ns, 0);
        }
        let found = found.as_ref().map(|e| {
            let culprit = match &e.culprit {
                Some(Culprit::Interrupt(name)) => Some(&**name),
                _ => None,
            };
            (e.cause.word(), culprit, e.parts.unexplained_ns / 1000)
        });
        assert_eq!(found, expected, "{drawn}");
    }

    #[test]
    fn the_largest_recorded_part_is_the_cause() {
        check("===vvvs====", 2, 8, Some(("vector", Some("local_timer"), 20)));
        check("===vsss====", 2, 8, Some(("softirq", Some("NET_RX"), 20)));
        check("===hhhh====", 3, 7, Some(("hardirq", Some("nic"), 0)));
        check("===bbbbbb==", 2, 9, Some(("blocked", None, 10)));
        check("==hrrrrrh==", 2, 9, Some(("switched-out", None, 0)));
    }

    #[test]
    fn what_no_record_covers_is_unexplained() {
        check("===========", 2, 8, Some(("unexplained", None, 60)));
        check("===v=======", 2, 9, Some(("unexplained", None, 60)));
        check("===???vvv=====", 3, 14, Some(("unexplained", None, 80)));
        check("===......vv==", 3, 11, Some(("unexplained", None, 60)));
    }

    #[test]
    fn a_recorded_interruption_is_the_cause_of_what_it_can_have_cost() {
        // 10 µs of a handler, and 50 µs of entry, exit and hypervisor.
        check("===v=======", 2, 8, Some(("vector", Some("local_timer"), 50)));
        check("===r=======", 2, 8, Some(("switched-out", None, 50)));
        // Half of it is recorded, or not quite.
        check("===vvvvvvvv=======", 3, 18, Some(("vector", Some("local_timer"), 70)));
        check("===vvvvvvvv??????????=", 3, 20, Some(("unexplained", None, 90)));
    }

    #[test]
    fn only_the_part_inside_counts() {
        check("hhhhhhrrrhh", 5, 8, Some(("switched-out", None, 0)));
    }

    #[test]
    fn who_ran_is_named() {
        let mut history = History::new(0);
        history.stretch(0, 100, Part::Preempted, None);
        let mut cpus = crate::displaced::Cpus::default();
        let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
        let (me, cpu) = (thread(1), Cpu(0));
        cpus.switch(cpu, 0, thread(9), &"hog".into(), 120);
        cpus.wait(me, cpu, 0);
        history.displaced(&cpus.leave(me, cpu, 100));
        let e = history.explain(interval(0, 100)).expect("the history covers it");
        let hog = |o: &Occupant| &*o.comm == "hog" && o.thread == thread(9);
        assert!(matches!(&e.culprit, Some(Culprit::Thread(o)) if hog(o)));
    }

    /// `check` of what is missed: (count, ns) of interruptions shorter than 10 µs, after gaps in characters.
    fn missed(drawn: &str, gaps: &[(i64, i64)], expected: (u64, i64)) {
        let mut history = History::new(0);
        for (c, i) in drawn.chars().zip(0..) {
            let part = match c {
                'r' => Part::Preempted,
                's' => Part::Softirq,
                'v' => Part::Vector,
                '?' => Part::Unexplained,
                _ => Part::Running,
            };
            history.stretch(i * 10, i * 10 + 10, part, None);
        }
        for (from, to) in gaps {
            history.explain(interval(from * 10, to * 10));
        }
        let short = history.end()[0];
        assert_eq!((short.count, short.total_ns), expected, "{drawn}");
    }

    #[test]
    fn what_no_gap_tells_is_missed() {
        missed("==vv==s==", &[], (2, 30));
        missed("==vvs==r==", &[], (2, 40));
        missed("==vv==s==rr==", &[(5, 8)], (2, 40));
        missed("==vv==s==", &[(1, 4), (5, 7)], (0, 0));
        missed("==rrrr====", &[(4, 7)], (0, 0));
        missed("==rrrr==v=", &[(1, 5)], (1, 10));
        missed("==???=v===v", &[], (2, 20));
    }

    #[test]
    fn a_gap_before_the_history_has_no_explanation() {
        let mut history = History::new(50);
        history.stretch(50, 100, Part::Running, None);
        assert_eq!(history.explain(interval(40, 60)), None);
        assert!(history.explain(interval(60, 80)).is_some());
    }

    #[test]
    fn the_history_is_bounded_and_says_so() {
        let mut history = History::new(0);
        for i in 0..2 * MAX_STRETCHES as i64 {
            let part = if i % 2 == 0 { Part::Running } else { Part::Vector };
            history.stretch(i, i + 1, part, None);
        }
        assert_eq!(history.stretches.len(), MAX_STRETCHES);
        let oldest = MAX_STRETCHES as i64;
        assert_eq!(history.explain(interval(oldest - 1, oldest + 5)), None);
    }
}
