//! How well gaps are explained without the kernel (Hourglass, section 4): inference against the kernel's account.
//!
//! **Goal.** What is a run without rights worth? Each gap of a polling thread has a cause that was inferred from
//! user time stamps alone (`infer.rs`), and one that the kernel saw (`explanation.rs`). Count how often each
//! meets each, by the length of the gap.
//!
//! **Rule.** The kernel's causes, in the words of the inference:
//! - `switch-to-sibling`: switched out, and most of it had a thread that has polled, of the same process;
//! - `long`: switched out by another thread, or blocked;
//! - `tick`: an interrupt, with a local timer interrupt in the gap (the kernel's records do not distinguish the periodic
//!   tick from other timers that are due in it);
//! - `interrupt`: any other interrupt;
//! - `steal`, `unexplained`, `no account`: the kernel recorded no cause, or there is no account of that time. Not judged:
//!   that a gap is a host's tick was inferred from its time, too, so it proves nothing about the inference.
//!
//! *Missed* are interruptions that the kernel saw while the thread polled, that lie in no gap: shorter than
//! the poller's threshold, or their event was lost. Interruptions that touch each other are one.

use serde::{Deserialize, Serialize};

use super::Explanation;
use crate::loads::SwitchCell;
use crate::world::Culprit;
use ft_trace::tables::{GapCause, GapSeen, InferredCause};

/// Inferred causes.
pub const INFERRED: [&str; 4] = [
    InferredCause::SwitchToSibling.word(),
    InferredCause::Long.word(),
    InferredCause::Tick.word(),
    InferredCause::Interrupt.word(),
];

/// Names of the classes of length.
pub const LENGTHS: [&str; 5] = ["<10 µs", "10–100 µs", "100 µs–1 ms", "1–10 ms", "≥10 ms"];

const EDGES_NS: [i64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Class of a length, an index of [`LENGTHS`].
pub(crate) fn length(ns: i64) -> usize {
    EDGES_NS.partition_point(|edge| *edge <= ns)
}

/// The kernel's cause of a gap. `sibling`: the culprit is a polling thread of the process.
pub(crate) fn seen(explanation: Option<&Explanation>, sibling: bool) -> GapSeen {
    let Some(e) = explanation else { return GapSeen::NoAccount };
    match e.cause {
        GapCause::SwitchedOut if sibling && matches!(e.culprit, Some(Culprit::Thread(_))) => {
            GapSeen::SwitchToSibling
        }
        GapCause::SwitchedOut | GapCause::Blocked => GapSeen::Long,
        GapCause::Steal => GapSeen::Steal,
        GapCause::Unexplained => GapSeen::Unexplained,
        _ if e.timer => GapSeen::Tick,
        _ => GapSeen::Interrupt,
    }
}

/// Gaps of one inferred cause, one cause that the kernel saw, and one class of length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// One of [`INFERRED`].
    pub inferred: String,
    /// Word of a [`GapSeen`].
    pub kernel: String,
    /// One of [`LENGTHS`].
    pub length: String,
    /// Gaps.
    pub gaps: u64,
}

/// Interruptions of one class of length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// How many.
    pub count: u64,
    /// Their sum, ns.
    pub total_ns: i64,
}

/// All counts; in `analysis.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agreement {
    /// What is not 0.
    pub gaps: Vec<Cell>,
    /// By class of length, in the order of [`LENGTHS`].
    pub missed: [Missed; 5],
    /// What lies between neighbouring runs of a load's workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchCell>,
}

/// Gaps, counted by inferred cause, recorded cause and length: a confusion matrix of each length.
#[derive(Debug, Default)]
pub(crate) struct GapMatrix {
    gaps: [[[u64; 5]; GapSeen::ALL.len()]; 4],
    missed: [Missed; 5],
}

impl GapMatrix {
    /// A gap of `ns`, with its inferred cause and what the kernel saw.
    pub(crate) fn gap(&mut self, inferred: InferredCause, seen: GapSeen, ns: i64) {
        self.gaps[inferred as usize][seen as usize][length(ns)] += 1;
    }

    /// What a poller did not report.
    pub(crate) fn missed(&mut self, missed: &[Missed; 5]) {
        for (sum, more) in self.missed.iter_mut().zip(missed) {
            sum.count += more.count;
            sum.total_ns += more.total_ns;
        }
    }

    /// For the tally.
    pub(crate) fn finish(&self) -> Agreement {
        let mut gaps = Vec::new();
        for (inferred, by_cause) in INFERRED.iter().zip(&self.gaps) {
            for (kernel, by_length) in GapSeen::ALL.iter().zip(by_cause) {
                for (length, &n) in LENGTHS.iter().zip(by_length).filter(|(_, n)| **n > 0) {
                    gaps.push(Cell {
                        inferred: (*inferred).into(),
                        kernel: kernel.word().into(),
                        length: (*length).into(),
                        gaps: n,
                    });
                }
            }
        }
        Agreement { gaps, missed: self.missed, switches: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_told_apart_at_their_edges() {
        for (ns, expected) in [
            (0, 0),
            (9_999, 0),
            (10_000, 1),
            (100_000, 2),
            (999_999, 2),
            (1_000_000, 3),
            (10_000_000, 4),
            (i64::MAX, 4),
        ] {
            assert_eq!(length(ns), expected, "{ns}");
        }
    }

    #[test]
    fn counts_come_out_by_name() {
        let mut counts = GapMatrix::default();
        counts.gap(InferredCause::Tick, GapSeen::Tick, 5_000);
        counts.gap(InferredCause::Tick, GapSeen::Tick, 6_000);
        counts.gap(InferredCause::Long, GapSeen::SwitchToSibling, 20_000_000);
        let cell = |inferred: &str, kernel: &str, length: &str, gaps| Cell {
            inferred: inferred.into(),
            kernel: kernel.into(),
            length: length.into(),
            gaps,
        };
        assert_eq!(
            counts.finish().gaps,
            [cell("long", "switch-to-sibling", "≥10 ms", 1), cell("tick", "tick", "<10 µs", 2)]
        );
    }
}
