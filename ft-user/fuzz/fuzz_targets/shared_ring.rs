//! The shared ring: any counts, any slots, any position. The reader takes one slot at a time, each
//! that is ready once.
#![no_main]

use std::sync::atomic::Ordering::Relaxed;

use ft_user::layout::{SharedControl, SharedSlot, marker};
use ft_user::shared_ring::Reader;
use libfuzzer_sys::fuzz_target;

const SLOTS: usize = 16;

/// Free count, write index, position of the reader, and for each slot marker, commit word, TSC.
type Input = (i32, u32, u32, [(u8, u64, u64); SLOTS]);

fuzz_target!(|input: Input| {
    let (free, write, position, content) = input;
    // SAFETY: all of `SharedControl` and `SharedSlot` may be zero.
    let (control, slots) = unsafe { std::mem::zeroed::<(SharedControl, [SharedSlot; SLOTS])>() };
    control.free.store(free, Relaxed);
    control.write.store(write, Relaxed);
    for (slot, &(marker, commit, tsc)) in slots.iter().zip(&content) {
        slot.marker.store(marker.into(), Relaxed);
        slot.commit.store(commit, Relaxed);
        slot.tsc.store(tsc, Relaxed);
    }
    let mut reader = Reader::new(&control, &slots, position);
    let ready = content.iter().filter(|(m, ..)| u32::from(*m) == marker::READY).count();
    let mut read = 0;
    while let Some(record) = reader.read_any() {
        let found = |at: &usize| (record.commit, record.tsc) == (content[*at].1, content[*at].2);
        assert!((0..SLOTS).any(|at| found(&at) && slots[at].marker.load(Relaxed) == marker::FREE));
        read += 1;
        assert!(read <= ready, "a slot was read twice");
    }
    assert!(reader.passed() <= SLOTS && reader.taken() <= SLOTS as u64);
    reader.loss();
});
