//! How large a ring would have been enough: the ring itself and what was lost of one burst.
//!
//! A ring that is larger by the events that it lost would not have lost them, as long as the agent looks as often.
//! Losses of a thread that follow each other closely are of one burst, since the ring was not emptied between
//! them. How many slots a lost event would have taken nobody knows; those of the segment say how many on average.

use std::collections::BTreeMap;

use ft_user::layout::Slot;
use serde::{Deserialize, Serialize};

use crate::tables::{LossOrigin, LossReason, LossRow};

/// Losses nearer than this are of one burst, ns: a hundred times the longest distance of two looks at a ring.
///
/// Limit: the ring that a warning recommends has room for one burst, so nearer losses add up; no loss is counted
/// otherwise.
/// Shown by: `the_ring_and_the_largest_burst_fit`.
const ONE_BURST_NS: i64 = 100_000_000;

/// What one thread lost without a longer pause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Burst {
    pid: i32,
    tid: i32,
    from: i64,
    to: i64,
    /// Slots that would have held it.
    slots: u64,
}

/// The bursts among the losses of a segment whose events take `slots_per_event` each.
pub(super) fn bursts(losses: &[LossRow], slots_per_event: u64) -> Vec<Burst> {
    let of_rings = losses
        .iter()
        .filter(|l| l.origin == LossOrigin::Ring && l.reason() == LossReason::RingFull);
    joined(of_rings.map(|loss| Burst {
        pid: loss.pid.0,
        tid: loss.tid.0,
        from: loss.ts.0,
        to: loss.ts.0.saturating_add(loss.dur),
        slots: slots_per_event.saturating_mul(loss.count.max(0) as u64),
    }))
}

/// Bytes of a ring that would have held the largest burst, a power of two; `u64::MAX` where there is none.
/// `ring_slots` are those of the rings of a process. `None` without a loss.
pub(super) fn ring_bytes(
    bursts: impl Iterator<Item = Burst>,
    ring_slots: &BTreeMap<i32, u32>,
) -> Option<u64> {
    let needed = joined(bursts).into_iter().map(|burst| {
        let ring = ring_slots.get(&burst.pid).copied().unwrap_or_default();
        let slots = burst.slots.saturating_add(ring.into());
        let bytes = slots.checked_mul(size_of::<Slot>() as u64);
        bytes.and_then(u64::checked_next_power_of_two).unwrap_or(u64::MAX)
    });
    needed.max()
}

fn joined(bursts: impl Iterator<Item = Burst>) -> Vec<Burst> {
    let mut bursts: Vec<Burst> = bursts.collect();
    bursts.sort_by_key(|burst| (burst.pid, burst.tid, burst.from));
    bursts.dedup_by(|next, last| {
        let one = (next.pid, next.tid) == (last.pid, last.tid)
            && next.from.saturating_sub(last.to) < ONE_BURST_NS;
        if one {
            last.to = last.to.max(next.to);
            last.slots = last.slots.saturating_add(next.slots);
        }
        one
    });
    bursts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Cpu, Nanos, Pid, Tid};

    const MS: i64 = 1_000_000;

    fn loss(tid: i32, ts: i64, count: i64) -> LossRow {
        LossRow {
            ts: Nanos(ts),
            dur: MS,
            origin: LossOrigin::Ring,
            what: LossReason::RingFull.word().into(),
            cpu: Cpu::UNKNOWN,
            pid: Pid(7),
            tid: Tid(tid),
            count,
        }
    }

    fn check(losses: &[LossRow], expected: Option<u64>) {
        let rings = BTreeMap::from([(7, 1 << 16)]);
        // However they are spread over segments.
        for segment in 1..=losses.len().max(1) {
            let bursts = losses.chunks(segment).flat_map(|losses| bursts(losses, 2));
            assert_eq!(ring_bytes(bursts, &rings), expected, "{segment} a segment");
        }
    }

    #[test]
    fn the_ring_and_the_largest_burst_fit() {
        check(&[], None);
        check(&[loss(1, 0, 1)], Some(4 << 20));
        // 2 MiB and 2 × 32 bytes each.
        check(&[loss(1, 0, 1 << 15)], Some(4 << 20));
        check(&[loss(1, 0, (1 << 15) + 1)], Some(8 << 20));
        // Far apart, of two threads, and near.
        check(&[loss(1, 0, 1 << 15), loss(1, 1000 * MS, 1 << 15)], Some(4 << 20));
        check(&[loss(1, 0, 1 << 15), loss(2, 2 * MS, 1 << 15)], Some(4 << 20));
        check(&[loss(1, 0, 1 << 15), loss(1, 2 * MS, 1 << 15), loss(1, 90 * MS, 1)], Some(8 << 20));
    }

    #[test]
    fn what_an_application_counts_does_not_overflow() {
        check(&[loss(1, i64::MIN, i64::MAX), loss(1, i64::MAX, i64::MAX)], Some(u64::MAX));
        check(&[loss(1, 0, i64::MIN)], Some(2 << 20));
    }
}
