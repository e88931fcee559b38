//! Two gibibytes of rings that say they are full, of which nothing was written: whoever reads them makes them
//! real.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use ft_user::layout::ring_state;

use crate::Attack;
use crate::forged::{Forged, register};
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "sparse", program, test };

const RINGS: u32 = 256;

const SLOTS: u32 = 1 << 18;

fn program(attacker: &Attacker) {
    let shape = Forged { rings: RINGS, ring_slots: SLOTS, rings_used: RINGS, ..Forged::default() };
    let memfd = shape.memfd();
    (0..RINGS).for_each(|i| memfd.claim(i, 2 * u64::from(SLOTS), ring_state::EXITED));
    let resident = || 512 * memfd.file.metadata().expect("a memfd").blocks();
    let before = resident();
    let _connection = register(&attacker.socket, &memfd.file);
    let since = Instant::now();
    while (0..RINGS).any(|index| memfd.state(index) != ring_state::FREE) {
        assert!(since.elapsed() < Duration::from_secs(300), "the agent reads no further");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The page of the shared ring and that of the directory, at most.
    assert!(resident() <= before + 4 * 4096, "the agent took {} bytes", resident() - before);
    attacker.stay();
}

fn test(stage: &Stage) {
    stage.attack(&ATTACK, &[]);
}
