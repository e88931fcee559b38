//! A per-thread ring: any head, any slots. The reader ends, and hands out whole events only, each slot
//! at the index that it says.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::Ordering::Relaxed;

use ft_user::layout::{MIN_RING_SLOTS, PAGE, RingControl, Slot, commit};
use ft_user::reader::{Drained, Reader, Uncommitted};
use ft_user::ring::Ring;
use libfuzzer_sys::fuzz_target;

const SLOTS: u64 = MIN_RING_SLOTS as u64;

/// A slot to poke: its place, whether the tag is made right, its commit word, one payload word.
type Poke = (u8, bool, u64, u64);

/// Starts at `base`, with `ahead` slots reserved.
type Input = (u32, u64, bool, u8, Vec<Poke>);

fuzz_target!(|input: Input| {
    let (base, ahead, skip, budget, pokes) = input;
    let bytes = PAGE as usize + SLOTS as usize * size_of::<Slot>();
    let layout = Layout::from_size_align(bytes, PAGE as usize).unwrap();
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    assert!(!memory.is_null());
    // SAFETY: as large as a control page and as many slots, zero, and nobody else's.
    let ring = unsafe { Ring::new(memory.cast::<RingControl>(), MIN_RING_SLOTS) }.unwrap();
    // SAFETY: the slots follow the control page.
    let slots = unsafe {
        std::slice::from_raw_parts(memory.add(PAGE as usize).cast::<Slot>(), SLOTS as usize)
    };

    let base = SLOTS + u64::from(base);
    ring.control.head.store(base.wrapping_add(ahead), Relaxed);
    for (place, right_tag, word, payload) in pokes {
        let index = base + u64::from(place);
        let slot = &slots[index as usize % SLOTS as usize];
        let tagged = word & !(commit::TAG_MASK << commit::TAG_SHIFT)
            | commit::tag(index) << commit::TAG_SHIFT;
        slot.commit.store(if right_tag { tagged } else { word }, Relaxed);
        slot.words[0].store(payload, Relaxed);
    }

    let uncommitted = if skip { Uncommitted::Skip } else { Uncommitted::Wait };
    let (mut reader, mut done) = (Reader::at(base), 0);
    loop {
        let (mut out, before) = (Vec::new(), reader.tail());
        let drained = reader.drain(&ring, uncommitted, u64::from(budget) + 1, &mut out);
        check(&drained, before, reader.tail(), &out);
        done += drained.slots + drained.skipped + drained.passed;
        assert!(done <= 2 * SLOTS, "it does not end");
        if !drained.more {
            break;
        }
    }
    // SAFETY: allocated above with this layout, and used no more.
    unsafe { dealloc(memory, layout) };
});

/// What was handed out is a run of whole events, which ends at the new position.
fn check(drained: &Drained, before: u64, after: u64, out: &[u8]) {
    assert_eq!(out.len() as u64, drained.slots * size_of::<Slot>() as u64);
    assert_eq!(drained.first_index, before + drained.skipped + drained.passed);
    assert_eq!(after, drained.first_index + drained.slots);
    let word = |i: u64| {
        let at = i as usize * size_of::<Slot>();
        u64::from_ne_bytes(out[at..at + 8].try_into().unwrap())
    };
    let mut left = 0;
    for i in 0..drained.slots {
        let word = word(i);
        assert_ne!(word & commit::COMMITTED, 0);
        assert_eq!(word >> commit::TAG_SHIFT, commit::tag(drained.first_index + i));
        assert_eq!(word & commit::CONTINUATION != 0, left > 0);
        left = if left > 0 { left - 1 } else { commit::continuations(word) };
    }
    assert_eq!(left, 0, "the last event is not whole");
}
