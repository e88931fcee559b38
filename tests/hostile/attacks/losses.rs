//! Counts of losses that no process can have had: summed, they make every other figure meaningless.

use std::mem::offset_of;

use ft_trace::tables::LossRow;
use ft_user::layout::{LOSS_KEY, MIN_RING_SLOTS, RingControl, commit, ring_state};

use crate::Attack;
use crate::forged::{Forged, register};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "losses", program, test };

fn program(attacker: &Attacker) {
    let memfd = Forged::default().memfd();
    let slots = u64::from(MIN_RING_SLOTS);
    // An event that tells of a loss: its time, where the loss began, how many.
    let tag = commit::tag(slots) << commit::TAG_SHIFT;
    // SAFETY: reads the time stamp counter.
    let now = unsafe { std::arch::x86_64::_rdtsc() };
    let event = [tag | u64::from(LOSS_KEY) | commit::COMMITTED, now, now - 1_000_000, u64::MAX / 4];
    memfd.put(memfd.ring(0) + 4096, event.map(u64::to_ne_bytes).as_flattened());
    // And as many that no event tells of.
    let lost = offset_of!(RingControl, lost) as u64;
    memfd.put(memfd.ring(0) + lost, &(u64::MAX / 2).to_ne_bytes());
    memfd.claim(0, slots + 1, ring_state::EXITED);
    let _connection = register(&attacker.socket, &memfd.file);
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack(&ATTACK, &[]);
    recorded.assert_named("claims to have lost more");
    let losses = recorded.trace.rows::<LossRow>().map(|row| row.expect("a row").count);
    let counts: Vec<i64> = losses.collect();
    assert!(!counts.is_empty());
    // Four nanoseconds each, of the minutes that a test takes, on all CPUs.
    assert!(counts.iter().all(|count| (1..1 << 46).contains(count)), "{counts:?}");
}
