//! The header of a memfd: any header, any file size. What is accepted lies in the file, in the
//! documented order, without overlaps.
#![no_main]

use std::mem::offset_of;

use ft_agent::collect::geometry::{Geometry, HEADER_BYTES};
use ft_user::layout::{
    DIR_BYTES, Header, MAGIC, MAX_RING_SLOTS, MAX_RINGS, MIN_RING_SLOTS, PAGE, SharedSlot, Slot,
    VERSION,
};
use libfuzzer_sys::fuzz_target;

/// Size of the file, whether the fields that are easy to get right are made right, the header.
type Input = (u64, bool, [u8; HEADER_BYTES]);

fuzz_target!(|input: Input| {
    let (mut file_bytes, repaired, mut header) = input;
    if repaired {
        file_bytes = repair(&mut header);
    }
    let Ok(g) = Geometry::check(&header, file_bytes) else { return };
    assert_eq!(g.total_bytes as u64, file_bytes);
    assert!(g.ring_slots.is_power_of_two() && g.shared_slots.is_power_of_two());
    assert!((MIN_RING_SLOTS..=MAX_RING_SLOTS).contains(&g.ring_slots));
    assert!((1..=MAX_RINGS).contains(&g.ring_count));
    // Each region from its start to its end, by hand.
    let page = PAGE as usize;
    let shared_end = g.shared_offset + page + g.shared_slots as usize * size_of::<SharedSlot>();
    let ring_bytes = page + g.ring_slots as usize * size_of::<Slot>();
    assert!(ring_bytes <= g.ring_stride);
    let regions = [
        (0, HEADER_BYTES),
        (g.dir_offset, g.dir_offset + DIR_BYTES as usize),
        (g.shared_offset, shared_end),
        (g.rings_offset, g.rings_offset + g.ring_count as usize * g.ring_stride),
        (g.total_bytes, g.total_bytes),
    ];
    for [before, behind] in regions.array_windows() {
        assert!(before.1 <= behind.0 && behind.0.is_multiple_of(page), "{g:?}");
    }
});

/// Makes right what follows from other fields, so that the rest is reached; the size of the file.
fn repair(header: &mut [u8; HEADER_BYTES]) -> u64 {
    let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    put(offset_of!(Header, magic), &MAGIC.to_ne_bytes());
    put(offset_of!(Header, version), &VERSION.to_ne_bytes());
    put(offset_of!(Header, header_bytes), &(HEADER_BYTES as u32).to_ne_bytes());
    put(offset_of!(Header, mode), &0u32.to_ne_bytes());
    let u32_at = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().unwrap());
    let slots = 1u32 << (u32_at(offset_of!(Header, ring_slots)) % 25);
    let shared = 1u32 << (u32_at(offset_of!(Header, shared_slots)) % 23);
    let stride = PAGE + u64::from(slots) * size_of::<Slot>() as u64;
    let rings = u64::from(u32_at(offset_of!(Header, ring_count)));
    let total = u64_at(offset_of!(Header, rings_offset)).wrapping_add(rings.wrapping_mul(stride));
    header[offset_of!(Header, ring_slots)..][..4].copy_from_slice(&slots.to_ne_bytes());
    header[offset_of!(Header, shared_slots)..][..4].copy_from_slice(&shared.to_ne_bytes());
    header[offset_of!(Header, ring_stride)..][..8].copy_from_slice(&stride.to_ne_bytes());
    header[offset_of!(Header, total_bytes)..][..8].copy_from_slice(&total.to_ne_bytes());
    total
}
