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

/// Writes event `n` of `slots` slots. Its key, its time and its words all say `n`.
fn write(memory: &Memory, n: u64, slots: usize) {
    ring(memory).write((n as u32) << 3, 0, &[n; 5][..3 * slots - 1], || n);
}

/// The events of a snapshot, each checked to be whole.
fn snapshot(memory: &Memory) -> Vec<u64> {
    let (ring, mut bytes) = (ring(memory), Vec::new());
    let mut reader = Reader::newest(&ring);
    while reader.drain(&ring, Uncommitted::Skip, u64::MAX, &mut bytes).more {}
    let words: Vec<u64> =
        bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    let (mut slots, mut events) = (words.chunks(4), Vec::new());
    while let Some(slot) = slots.next() {
        let n = u64::from(commit::key(slot[0]) >> 3);
        let more = slots.by_ref().take(commit::continuations(slot[0]) as usize);
        assert!(slot[1..] == [n; 3] && more.into_iter().all(|slot| slot[1..] == [n; 3]), "torn");
        events.push(n);
    }
    events
}

/// A ring full of events of so many slots, a writer that overwrites the oldest slots with one more, and a
/// snapshot meanwhile. Event N is the Nth; `left` are those that are whole at the end.
fn writer_and_snapshot(before: &'static [usize], slots: usize, left: &'static [u64]) {
    payload_may_race(true);
    explore(2, move || {
        let memory = Arc::new(Memory::new());
        ring(&memory).prepare(Mode::Overwrite);
        assert_eq!(before.iter().sum::<usize>(), SLOTS);
        let last = before.len() as u64 + 1;
        (1..).zip(before).for_each(|(n, &slots)| write(&memory, n, slots));
        let writer = loom::thread::spawn({
            let memory = memory.clone();
            move || write(&memory, last, slots)
        });
        let events = snapshot(&memory);
        assert!(events.is_sorted(), "{events:?}");
        // What nobody touches is there.
        let kept = left.iter().filter(|&&n| n != last);
        assert!(kept.into_iter().all(|n| events.contains(n)), "{events:?}");
        writer.join().unwrap();
        assert_eq!(snapshot(&memory), left);
    });
}

fn one_slot() {
    writer_and_snapshot(&[1, 1, 1, 1], 1, &[2, 3, 4, 5]);
}

#[test]
fn snapshot_holds_no_torn_event() {
    one_slot();
}

/// The end of an event is overwritten before its beginning, or the beginning before its end.
#[test]
fn snapshot_holds_no_half_of_an_event() {
    writer_and_snapshot(&[1, 2, 1], 2, &[3, 4]);
    writer_and_snapshot(&[2, 1, 1], 1, &[2, 3, 4]);
    writer_and_snapshot(&[2, 2], 2, &[2, 3]);
}

#[test]
fn each_ordering_is_needed() {
    for weakening in [
        (Role::Commit, Access::Store, Relaxed),
        (Role::Commit, Access::Load, Relaxed),
        (Role::Fence, Access::Store, Relaxed),
        (Role::Fence, Access::Load, Relaxed),
    ] {
        assert!(fails(weakening, one_slot), "{weakening:?} makes no difference");
    }
}
