//! Memfds of half a tebibyte, which take no memory and all addresses.

use ft_user::layout::{MAX_RING_SLOTS, MAX_RINGS};

use crate::Attack;
use crate::forged::{Forged, register};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "large", program, test };

/// A process may have 64 registrations.
const PROCESSES: usize = 8;

fn program(attacker: &Attacker) {
    let shape = Forged { rings: MAX_RINGS, ring_slots: MAX_RING_SLOTS, ..Forged::default() };
    // SAFETY: no other thread of this process runs yet.
    let parent = (1..PROCESSES).all(|_| unsafe { libc::fork() } != 0);
    let held: Vec<_> = (0..60)
        .map(|_| {
            let memfd = shape.memfd();
            (register(&attacker.socket, &memfd.file), memfd)
        })
        .collect();
    if parent {
        std::thread::sleep(std::time::Duration::from_millis(500));
        attacker.stay();
    } else {
        // Longer than the recording, and not for ever.
        std::thread::sleep(std::time::Duration::from_secs(30));
    }
    drop(held);
}

fn test(stage: &Stage) {
    let recorded = stage.attack(&ATTACK, &[]);
    let told = recorded.output.lines().any(|line| line.contains("share of addresses"));
    assert!(told, "{}", recorded.output);
}
