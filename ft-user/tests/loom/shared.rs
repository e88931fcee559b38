//! The shared ring: two writers and the reader, around a slot that is used again.

use std::sync::Arc;

use loom::sync::atomic::Ordering::Relaxed;

use crate::atomic::{Access, Role};
use crate::layout::{SharedMemory, commit};
use crate::shared_ring::{Event, Reader, Record, SharedRing};
use crate::{explore, fails};

fn write(memory: &SharedMemory, n: u64) -> bool {
    let event = Event { tid: n as u32, key: (n as u32) << 3, cpu: 0, words: &[n] };
    SharedRing::new(&memory.control, &memory.slots).write(event, || n)
}

fn read(record: Option<Record>, seen: &mut Vec<u64>) {
    if let Some(record) = record {
        let n = record.tsc;
        let key = u64::from(commit::key(record.commit) >> 3);
        assert_eq!((key, u64::from(record.tid), record.words), (n, n, [n]), "torn");
        seen.push(n);
    }
}

/// `before` events are in the ring; two writers add one each while the reader takes `reads` of all.
/// Those that find no room are lost and counted.
fn two_writers_and_reader(before: u64, reads: u64) {
    explore(2, move || {
        let memory = Arc::new(SharedMemory::new());
        assert!((0..before).all(|n| write(&memory, 10 + n)));
        let writers = [20, 21].map(|n| {
            let memory = memory.clone();
            loom::thread::spawn(move || u64::from(write(&memory, n)))
        });
        let mut reader = Reader::new(&memory.control, &memory.slots, 0);
        let mut seen = Vec::new();
        (0..reads).for_each(|_| read(reader.read(), &mut seen));
        let written: u64 = writers.map(|writer| writer.join().unwrap()).iter().sum();
        (0..before + 2).for_each(|_| read(reader.read_any(), &mut seen));
        assert_eq!(seen.len() as u64, before + written, "{seen:?}");
        assert!(seen.iter().copied().take(before as usize).eq(10..10 + before), "{seen:?}");
        assert_eq!(reader.loss().events, 2 - written);
        assert_eq!(memory.control.free.load(Relaxed), memory.slots.len() as i32);
    });
}

/// An empty ring: what a writer fills, the reader may take.
fn hand_over() {
    two_writers_and_reader(0, 1);
}

/// A full ring: what the reader has taken, a writer may fill.
fn use_again() {
    two_writers_and_reader(2, 2);
}

#[test]
fn events_are_handed_over_whole() {
    hand_over();
}

#[test]
fn slots_are_used_again_when_they_are_read() {
    use_again();
}

/// Two writers find a full ring: both losses are within what is told of them, whoever comes first.
#[test]
fn a_loss_is_from_the_earliest_to_the_latest() {
    explore(2, || {
        let memory = Arc::new(SharedMemory::new());
        assert!((0..2).all(|n| write(&memory, 10 + n)));
        let writers = [20, 21].map(|n| {
            let memory = memory.clone();
            loom::thread::spawn(move || assert!(!write(&memory, n)))
        });
        let seen = Reader::new(&memory.control, &memory.slots, 0).loss();
        let is_within = |tsc: u64| seen.tsc[0] <= tsc && tsc <= seen.tsc[1];
        assert!(seen.events == 0 || is_within(20) || is_within(21), "{seen:?}");
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let loss = Reader::new(&memory.control, &memory.slots, 0).loss();
        assert_eq!((loss.events, loss.tsc), (2, [20, 21]));
    });
}

#[test]
fn each_ordering_is_needed() {
    for weakening in [(Role::Marker, Access::Store, Relaxed), (Role::Marker, Access::Load, Relaxed)]
    {
        assert!(fails(weakening, hand_over), "{weakening:?} makes no difference");
    }
    let weakening = (Role::Marker, Access::Modify, Relaxed);
    assert!(fails(weakening, use_again), "{weakening:?} makes no difference");
}
