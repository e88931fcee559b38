//! The per-thread ring in overwrite mode: a snapshot beside a running writer holds no torn event.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use loom::sync::atomic::Ordering::Relaxed;

use crate::atomic::{Access, Role, calm, payload_may_race, strike_after};
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

/// A full ring. A handler interrupts a write before its access number `at`, and writes so many events; a snapshot is taken before the
/// access number `then` of what is left of the write, and one at the end. How many of the two came.
fn handler_laps(at: u32, written: u64, then: u32) -> u32 {
    const FIRST: u64 = 10;
    let most = Arc::new(AtomicU32::new(0));
    let any = most.clone();
    payload_may_race(true);
    explore(0, move || {
        let memory = Arc::new(Memory::new());
        ring(&memory).prepare(Mode::Overwrite);
        (0..SLOTS as u64).for_each(|n| write(&memory, n, 1));
        let came = Rc::new(Cell::new(0));
        strike_after(at, {
            let (memory, came) = (memory.clone(), came.clone());
            move || {
                (FIRST..FIRST + written).for_each(|n| write(&memory, n, 1));
                came.set(1);
                strike_after(then, move || {
                    snapshot(&memory);
                    came.set(2);
                });
            }
        });
        write(&memory, SLOTS as u64, 1);
        calm();
        let mut events = snapshot(&memory);
        // That of the write may stand anywhere among those of the handler.
        events.retain(|&n| n != SLOTS as u64);
        assert!(events.is_sorted(), "{events:?}");
        most.fetch_max(came.get(), Relaxed);
    });
    any.load(Relaxed)
}

/// Wherever it strikes, however often it goes around, and whenever one looks, a snapshot holds no torn event. A reader that is copying
/// meanwhile would be too much to explore.
#[test]
fn a_handler_laps_a_write() {
    let mut looks = 0;
    for written in 1..=3 * SLOTS as u64 {
        for at in (0..).take_while(|&at| handler_laps(at, written, 1000) > 0) {
            looks += (0..).take_while(|&then| handler_laps(at, written, then) > 1).count();
        }
    }
    assert!(looks > 500, "{looks} looks");
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
