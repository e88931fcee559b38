//! What made a gap, by what the kernel recorded of it.
//!
//! The poller did not run in its gap, whatever the scheduler says: time on the CPU outside every recorded interrupt counts
//! as unexplained (kernel entry and exit, page faults, steal by a hypervisor, SMI).
//!
//! The *cause* is the largest recorded part, also where it is less than half of the gap: the record of an interruption
//! lies inside what it costs. Entry and exit, and on a virtual machine the exits to the hypervisor, are not in it. Only
//! when neither half of the gap nor all but [`OVERHEAD_NS`] of it is recorded, something else must have had the rest,
//! and the gap is `unexplained`. The *culprit* is who or what had most of the part.

use crate::world::{Culprit, Interval, Past};
use ft_trace::tables::{Decomposition, GapCause, IrqKind, IrqPurpose, Part};

/// Unrecorded time that an interruption of any length may have cost. On a nested virtual machine, the slowest that was
/// measured, gaps with a recorded interruption had a median of 13 µs of it and 99 % had less than 45 µs.
///
/// Limit: part of the definition of a gap's `cause`: if more than that, and more than what is recorded, has no record,
/// it is *unexplained*.
/// Shown by: `a_recorded_interruption_is_the_cause_…`.
const OVERHEAD_NS: i64 = 50_000;

/// What a gap was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explanation {
    pub(crate) parts: Decomposition,
    pub(crate) cause: GapCause,
    pub(crate) culprit: Option<Culprit>,
    /// A local timer interrupt was part of it.
    pub(crate) timer: bool,
    /// Of some of it nothing is known, or not which other thread had the CPU.
    pub(crate) doubtful: bool,
}

impl Explanation {
    /// Explains a gap by what there was in it.
    pub(crate) fn of(past: &Past, gap: Interval) -> Explanation {
        let mut parts = past.parts;
        parts.unexplained_ns += std::mem::take(&mut parts.running_ns);
        let (cause, part) = largest(&parts, gap.len_ns());
        let culprit = match part {
            Part::Preempted => past.shares.longest().map(|s| Culprit::Thread(s.who.clone())),
            _ => past
                .interrupts
                .iter()
                .filter(|(p, _, _)| *p == part)
                .max_by_key(|(_, _, ns)| *ns)
                .map(|(_, name, _)| Culprit::Interrupt(name.clone())),
        };
        let is_timer = |part, name: &str| {
            part == Part::Vector && IrqPurpose::of(IrqKind::Vector, name) == IrqPurpose::LocalTimer
        };
        let timer = past.interrupts.iter().any(|(part, name, _)| is_timer(*part, name));
        let doubtful = past.hidden || !past.shares.is_exact();
        Explanation { parts, cause, culprit, timer, doubtful }
    }
}

/// Nothing else need have had the rest.
pub(crate) fn is_explained(recorded_ns: i64, unexplained_ns: i64) -> bool {
    unexplained_ns <= recorded_ns.max(OVERHEAD_NS)
}

fn largest(parts: &Decomposition, dur: i64) -> (GapCause, Part) {
    let recorded = [
        (GapCause::SwitchedOut, Part::Preempted, parts.runnable_ns()),
        (GapCause::Blocked, Part::Blocked, parts.blocked_ns),
        (GapCause::Hardirq, Part::Hardirq, parts.hardirq_ns),
        (GapCause::Softirq, Part::Softirq, parts.softirq_ns),
        (GapCause::Vector, Part::Vector, parts.vector_ns),
    ];
    let none = (GapCause::Unexplained, Part::Unexplained, 0);
    let (cause, part, ns) = recorded.into_iter().rev().max_by_key(|r| r.2).unwrap_or(none);
    let recorded = dur - parts.unexplained_ns;
    if ns == 0 || !is_explained(recorded, parts.unexplained_ns) {
        return (GapCause::Unexplained, Part::Unexplained);
    }
    (cause, part)
}

#[cfg(test)]
mod tests;
