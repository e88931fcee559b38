//! What the gaps of an execution trace say about their causes, without asking the kernel: Hourglass, section 4.
//!
//! Gaps lie between neighbouring runs on one CPU. What is certain:
//!
//! - between runs of two threads there was a context switch, if the second was ready all the time: it had been preempted
//!   or had yielded, or its waking took the CPU from the first. It was *voluntary* if the first yielded or
//!   slept, and *involuntary* if it did nothing: then an interrupt came, too.
//! - if the first slept and the second had slept as well, idle time can lie between them, and if the second was still
//!   running elsewhere when the first ended, its migration: nobody knows how much of the gap was a switch.
//! - a gap inside of a real-time thread above which none of ours was active is an *interruption* by what is no thread:
//!   interrupts and what they entail.
//!
//! What is likely: a gap inside of another thread that is shorter than two of the shortest switches had no room for
//! another thread, and is an interruption, too; a longer one is *either*.

use std::collections::HashMap;

use super::outcome::Outcome;
use super::tape::{Ended, Run};
use crate::stats::Summary;

/// What a gap was, as far as it can be inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapKind {
    /// A context switch, because the thread before yielded or slept.
    Voluntary,
    /// A context switch that the thread before did nothing for.
    Involuntary,
    /// An interrupt, within one thread.
    Interruption,
    /// An interrupt or another process, within one thread.
    Either,
    /// No switch alone: the thread's own sleep, a yield from which it came back, idle time, or a migration.
    Wait,
}

/// The gap before a run, and what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the run behind it in [`Outcome::runs`].
    pub run: usize,
    /// From the end of the run before it on its CPU, ns.
    pub ns: u64,
    /// What it was.
    pub cause: GapKind,
}

/// The gaps between neighbouring runs of each CPU, in the order of [`Outcome::runs`].
pub fn gaps(outcome: &Outcome) -> Vec<Gap> {
    let mut last_on: HashMap<u16, usize> = HashMap::new();
    let mut last_of: HashMap<u32, Run> = HashMap::new();
    let mut gaps = Vec::new();
    let mut unclear = Vec::new();
    for (n, run) in outcome.runs.iter().enumerate() {
        let before = last_on.insert(run.cpu, n).map(|n| outcome.runs[n]);
        let own = last_of.insert(run.thread, *run);
        let Some(before) = before else { continue };
        let ns = (outcome.ns(run.start_tsc) - outcome.ns(before.end_tsc)).max(0) as u64;
        let elsewhere = own.is_some_and(|own| own.end_tsc > before.end_tsc);
        let slept = own.is_none_or(|own| matches!(own.ended, Ended::Slept | Ended::Finished));
        let cause = match (before.thread == run.thread, before.ended) {
            (true, Ended::Unasked) => {
                unclear.push(gaps.len());
                GapKind::Either
            }
            (false, _) if elsewhere => GapKind::Wait,
            (false, Ended::Unasked) => GapKind::Involuntary,
            (false, Ended::Yielded) => GapKind::Voluntary,
            (false, Ended::Slept) if !slept => GapKind::Voluntary,
            // With the end of a thread comes work that is no switch.
            (false, Ended::Slept | Ended::Finished) | (true, _) => GapKind::Wait,
        };
        gaps.push(Gap { run: n, ns, cause });
    }
    let switch = |gap: &&Gap| matches!(gap.cause, GapKind::Voluntary | GapKind::Involuntary);
    let shortest = gaps.iter().filter(switch).map(|gap| gap.ns).min();
    let tops = Tops::of(outcome);
    for n in unclear {
        let run = &outcome.runs[gaps[n].run];
        let no_room = shortest.is_some_and(|shortest| gaps[n].ns < 2 * shortest);
        if no_room || tops.has(run) {
            gaps[n].cause = GapKind::Interruption;
        }
    }
    gaps
}

/// Threads that nothing but an interrupt takes the CPU from: of real-time priority, alone at the top of all.
struct Tops(Vec<bool>);

impl Tops {
    fn of(outcome: &Outcome) -> Self {
        let classes: Vec<_> = outcome.threads.iter().map(|thread| thread.plan.class).collect();
        let rank = |n: usize| classes[n].map_or(0, |class| class.rank());
        let alone = |n: usize| {
            // The amount of a reservation is a limit, at which the thread itself is stopped.
            classes[n].is_some_and(|class| class.is_real_time() && class.rank() < 1000)
                && (0..classes.len()).all(|other| other == n || rank(other) < rank(n))
        };
        Tops((0..classes.len()).map(alone).collect())
    }

    fn has(&self, run: &Run) -> bool {
        self.0[run.thread as usize]
    }
}

/// The lengths of the gaps of one cause, sorted, and what they are like.
pub(super) fn lengths(gaps: &[Gap], cause: GapKind) -> Option<(Vec<u64>, Summary)> {
    let of_cause = gaps.iter().filter(|gap| gap.cause == cause);
    let mut lengths: Vec<u64> = of_cause.map(|gap| gap.ns).collect();
    let summary = Summary::of(&mut lengths)?;
    Some((lengths, summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hourglass::tests::outcome;
    use crate::hourglass::{Class, Priority};

    fn causes(classes: &[Option<Class>], timeline: &str) -> Vec<(u64, GapKind)> {
        gaps(&outcome(classes, timeline)).iter().map(|gap| (gap.ns, gap.cause)).collect()
    }

    const FIFO: Option<Class> = Some(Class::Priority(Priority::Fifo(10)));

    #[test]
    fn switches_are_told_by_how_the_run_before_ended() {
        let told = causes(
            &[None, None],
            "0@0   0 100 !
             1@0 105 200 y
             0@0 202 300 z
             1@0 303 400 z
             0@0 450 500 .
             1@0 560 600 .",
        );
        use GapKind::*;
        // Thread 1 yielded at 200, so it was ready at 300; thread 0 had slept at 400, and idle time may lie there.
        assert_eq!(
            told,
            [(5, Involuntary), (2, Voluntary), (3, Voluntary), (50, Wait), (60, Wait)]
        );
    }

    #[test]
    fn a_gap_without_room_for_two_switches_is_an_interruption() {
        let told = causes(
            &[None, None],
            "0@0   0 100 !
             1@0 110 200 !
             1@0 219 300 !
             1@0 320 400 y
             1@0 401 500 !",
        );
        use GapKind::*;
        assert_eq!(told, [(10, Involuntary), (19, Interruption), (20, Either), (1, Wait)]);
    }

    #[test]
    fn nothing_but_interrupts_takes_the_cpu_from_the_highest_real_time_thread() {
        let timeline = "0@0   0 100 !
                        0@0 900 950 !
                        1@1   1 101 !
                        1@1 901 950 !";
        let highest = Some(Class::Priority(Priority::Fifo(11)));
        use GapKind::*;
        assert_eq!(causes(&[highest, FIFO], timeline), [(800, Interruption), (800, Either)]);
        assert_eq!(causes(&[FIFO, FIFO], timeline), [(800, Either), (800, Either)]);
        let reserved = Some(Class::Reservation { amount_ns: 1, period_ns: 2, soft: false });
        assert_eq!(causes(&[reserved, FIFO], timeline)[0], (800, Either));
    }

    /// Thread 1 leaves CPU 1 long after thread 0 has left CPU 0: what CPU 0 did meanwhile was no switch.
    #[test]
    fn who_came_from_another_cpu_is_no_switch() {
        let told = causes(
            &[None, None],
            "0@0   0 100 z
             1@1   0 500 !
             1@0 510 600 !",
        );
        assert_eq!(told, [(410, GapKind::Wait)]);
    }
}
