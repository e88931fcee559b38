//! The per-thread ring in overwrite mode: a snapshot beside a running writer holds no torn event.

use std::sync::Arc;

use loom::sync::atomic::Ordering::Relaxed;

use crate::atomic::{Access, Role, payload_may_race};
use crate::layout::{Memory, Mode, SLOTS, commit};
use crate::reader::{Reader, Uncommitted};
use crate::ring::Ring;
use crate::{explore, fails};

fn ring(memory: &Memory) -> Ring<'_> {
    // SAFETY: the slots follow the control page at the distance that the model's layout says.
    unsafe { Ring::new(&raw const memory.control, SLOTS as u32) }.expect("a valid number of slots")
}

/// Writes event `n` of one slot. Its key, its time and its words all say `n`.
fn write(memory: &Memory, n: u64) {
    ring(memory).write((n as u32) << 3, 0, &[n; 2], || n);
}

/// The events of a snapshot, each checked to be whole.
fn snapshot(memory: &Memory) -> Vec<u64> {
    let (ring, mut bytes) = (ring(memory), Vec::new());
    let mut reader = Reader::newest(&ring);
    while reader.drain(&ring, Uncommitted::Skip, u64::MAX, &mut bytes).more {}
    let words: Vec<u64> =
        bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    let event = |slot: &[u64]| {
        let n = u64::from(commit::key(slot[0]) >> 3);
        assert_eq!(slot[1..], [n; 3], "torn");
        n
    };
    words.chunks(4).map(event).collect()
}

/// A full ring, a writer that overwrites its oldest slot, and a snapshot meanwhile.
fn writer_and_snapshot() {
    payload_may_race(true);
    explore(2, || {
        let memory = Arc::new(Memory::new());
        ring(&memory).prepare(Mode::Overwrite);
        (2..2 + SLOTS as u64).for_each(|n| write(&memory, n));
        let writer = loom::thread::spawn({
            let memory = memory.clone();
            move || write(&memory, 9)
        });
        let events = snapshot(&memory);
        assert!(events.is_sorted(), "{events:?}");
        // What nobody touches is there.
        assert!((3..2 + SLOTS as u64).all(|n| events.contains(&n)), "{events:?}");
        writer.join().unwrap();
        assert_eq!(snapshot(&memory), [3, 4, 5, 9]);
    });
}

#[test]
fn snapshot_holds_no_torn_event() {
    writer_and_snapshot();
}

#[test]
fn each_ordering_is_needed() {
    for weakening in [
        (Role::Commit, Access::Store, Relaxed),
        (Role::Commit, Access::Load, Relaxed),
        (Role::Fence, Access::Store, Relaxed),
        (Role::Fence, Access::Load, Relaxed),
    ] {
        assert!(fails(weakening, writer_and_snapshot), "{weakening:?} makes no difference");
    }
}
