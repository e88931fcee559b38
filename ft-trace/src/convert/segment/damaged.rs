//! What a damaged file of the spool has lost: how much, and when.
//!
//! **Rule.** What stood in the damage was committed before it was written, and so before the next clock sample of the file; and
//! after the round of collection that came before the last sample, since each round takes what is there. So it lies between the
//! last sample but one and the next one.

use super::super::registry::Registry;
use crate::clock::ClockSample;
use crate::spool::Gap;
use crate::spool::frame::Loss;
use crate::tables::{LossOrigin, LossReason};

/// The losses of a gap, before which there were so many of the samples.
pub(super) fn losses(
    gap: &Gap,
    samples: &[ClockSample],
    before: usize,
    registry: &Registry,
) -> Vec<Loss> {
    let loss = |reason, count| Loss { count, ..loss(reason, samples, before, registry) };
    let counted = [
        (LossReason::DamagedEvents, gap.lost.events),
        (LossReason::DamagedRecords, gap.lost.records),
    ];
    let mut found: Vec<_> =
        counted.into_iter().filter(|(_, n)| *n > 0).map(|(why, n)| loss(why, n)).collect();
    if found.is_empty() {
        // It may have told of losses.
        found.push(loss(LossReason::Damaged, 0));
    }
    found
}

/// That of all that stands behind damage.
pub(super) fn rest(samples: &[ClockSample], before: usize, registry: &Registry) -> Loss {
    loss(LossReason::Damaged, samples, before, registry)
}

fn loss(reason: LossReason, samples: &[ClockSample], before: usize, registry: &Registry) -> Loss {
    let at = |n: usize| samples.get(n).map(|sample| sample.mono_ns);
    let from = at(before.saturating_sub(2)).unwrap_or(registry.start.start_ns);
    let end = registry.end.as_ref().map(|end| end.ts);
    let to = at(before).or(end).or_else(|| samples.last().map(|sample| sample.mono_ns));
    Loss {
        origin: LossOrigin::Spool.word().into(),
        what: reason.word().into(),
        cpu: -1,
        pid: -1,
        tid: -1,
        from,
        to: to.unwrap_or(from).max(from),
        ..Loss::default()
    }
}
