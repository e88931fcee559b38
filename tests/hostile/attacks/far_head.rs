//! Rings that claim to be far ahead, again and again: whoever believes them looks at millions of slots and at
//! nothing else.

use std::thread;

use ft_user::layout::{MAX_RING_SLOTS, ring_state};

use crate::Attack;
use crate::forged::{Forged, register, wait_for_answer};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "far_head", program, test };

const RINGS: u32 = 64;

/// Of these the slots are in memory: 128 MiB each.
const BACKED: u32 = 2;

fn program(attacker: &Attacker) {
    let slots = MAX_RING_SLOTS;
    let shape = Forged { rings: RINGS, ring_slots: slots, rings_used: RINGS, ..Forged::default() };
    let memfd = shape.memfd();
    for index in 0..BACKED {
        let begin = memfd.ring(index);
        for page in (begin..memfd.ring(index + 1)).step_by(4096).skip(1) {
            memfd.put(page, &[0; 8]);
        }
    }
    for index in 0..RINGS {
        memfd.claim(index, slots.into(), ring_state::LIVE);
    }
    let connection = register(&attacker.socket, &memfd.file);
    // Then it reads them, however busy the machine is.
    wait_for_answer(&connection);
    thread::spawn(move || {
        for head in (u64::MAX / 2..).step_by(slots as usize) {
            (0..RINGS).for_each(|index| memfd.claim(index, head, ring_state::EXITED));
        }
    });
    attacker.stay();
}

fn test(stage: &Stage) {
    stage.attack(&ATTACK, &[]).assert_named("claims more events than fit");
}
