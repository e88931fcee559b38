//! The per-thread ring in discard mode: nothing torn, nothing lost without being recorded, in order.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loom::sync::atomic::Ordering::Relaxed;

use crate::atomic::{Access, Role, calm, strike_after};
use crate::layout::{LOSS_KEY, Memory, Mode, RING_WAIT_KEY, SLOTS, commit};
use crate::reader::{Reader, Uncommitted};
use crate::ring::Ring;
use crate::{explore, fails};

fn ring(memory: &Memory) -> Ring<'_> {
    // SAFETY: the slots follow the control page at the distance that the model's layout says.
    unsafe { Ring::new(&raw const memory.control, SLOTS as u32) }.expect("a valid number of slots")
}

/// Writes event `n` of `slots` slots. Its key, its time and its words all say `n`.
fn write(memory: &Memory, n: u64, slots: usize) {
    let words = [n; 5];
    ring(memory).write((n as u32) << 3, 0, &words[..3 * slots - 1], || n);
}

/// What a reader has seen.
#[derive(Default)]
struct Seen {
    events: Vec<u64>,
    /// Losses that were recorded.
    told: u64,
    /// Waits for room.
    waits: u64,
}

impl Seen {
    /// Drains the ring once, and checks what comes.
    fn drain(&mut self, reader: &mut Reader, memory: &Memory) {
        let mut bytes = Vec::new();
        let drained = reader.drain(&ring(memory), Uncommitted::Wait, u64::MAX, &mut bytes);
        assert_eq!((drained.skipped, drained.more), (0, false));
        let words: Vec<u64> =
            bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        let mut slots = words.chunks(4);
        while let Some(&[word, tsc, a, b]) = slots.next() {
            if commit::key(word) == LOSS_KEY {
                assert!(a <= tsc, "a loss begins before it is told");
                self.told += b;
                continue;
            }
            if commit::key(word) == RING_WAIT_KEY {
                assert!(tsc <= a, "a wait begins before it ends");
                self.waits += 1;
                continue;
            }
            let n = u64::from(commit::key(word) >> 3);
            assert_eq!([tsc, a, b], [n; 3], "torn");
            for slot in slots.by_ref().take(commit::continuations(word) as usize) {
                assert_eq!(slot[1..], [n; 3], "torn");
            }
            self.events.push(n);
        }
    }

    /// Everything was written by now: nothing may be missing.
    fn end(mut self, reader: &mut Reader, memory: &Memory, written: u64) -> Vec<u64> {
        self.drain(reader, memory);
        let pending = memory.control.lost_pending.load(Relaxed);
        let lost = memory.control.lost.load(Relaxed);
        assert_eq!(self.told + pending, lost, "each loss is told once");
        assert_eq!(self.events.len() as u64 + lost, written, "{:?}", self.events);
        self.events
    }
}

/// A full ring, a writer that needs what the reader frees, and the reader.
fn writer_and_reader() {
    explore(2, || {
        let memory = Arc::new(Memory::new());
        ring(&memory).prepare(Mode::Discard);
        let mut reader = Reader::at(SLOTS as u64);
        write(&memory, 2, 1);
        write(&memory, 3, 2);
        let writer = loom::thread::spawn({
            let memory = memory.clone();
            move || {
                write(&memory, 4, 2);
                write(&memory, 5, 1);
            }
        });
        let mut seen = Seen::default();
        seen.drain(&mut reader, &memory);
        seen.drain(&mut reader, &memory);
        writer.join().unwrap();
        let events = seen.end(&mut reader, &memory, 4);
        assert!(events.is_sorted(), "{events:?}");
    });
}

/// A full ring, a writer that waits until there is room, and the reader: nothing is lost.
fn waiting_writer_and_reader() {
    explore(1, || {
        let memory = Arc::new(Memory::new());
        ring(&memory).prepare(Mode::Discard);
        let mut reader = Reader::at(SLOTS as u64);
        for n in 2..5 {
            write(&memory, n, 1);
        }
        let writer = loom::thread::spawn({
            let memory = memory.clone();
            move || {
                let sleep = || {
                    loom::thread::yield_now();
                    true
                };
                ring(&memory).wait_for_room(0, 0, || 5, sleep);
                write(&memory, 5, 1);
            }
        });
        let mut seen = Seen::default();
        while seen.events.len() < 4 {
            seen.drain(&mut reader, &memory);
            loom::thread::yield_now();
        }
        writer.join().unwrap();
        assert_eq!(memory.control.lost.load(Relaxed), 0);
        assert_eq!(seen.end(&mut reader, &memory, 4), [2, 3, 4, 5]);
    });
}

#[test]
fn a_writer_that_waits_loses_nothing() {
    waiting_writer_and_reader();
}

#[test]
fn waiting_needs_the_orderings_too() {
    for weakening in [
        (Role::Commit, Access::Store, Relaxed),
        (Role::Commit, Access::Load, Relaxed),
        (Role::Tail, Access::Store, Relaxed),
        (Role::Tail, Access::Load, Relaxed),
    ] {
        assert!(fails(weakening, waiting_writer_and_reader), "{weakening:?} makes no difference");
    }
}

#[test]
fn writer_and_reader_share_nothing_torn() {
    writer_and_reader();
}

#[test]
fn each_ordering_is_needed() {
    for weakening in [
        (Role::Commit, Access::Store, Relaxed),
        (Role::Commit, Access::Load, Relaxed),
        (Role::Tail, Access::Store, Relaxed),
        (Role::Tail, Access::Load, Relaxed),
    ] {
        assert!(fails(weakening, writer_and_reader), "{weakening:?} makes no difference");
    }
}

/// Commit words order all that a reader takes: of the head it believes nothing that they do not say.
#[test]
fn spare_ordering_of_the_head() {
    assert!(!fails((Role::Head, Access::Load, Relaxed), writer_and_reader));
}

/// A handler interrupts the writer before its access number `accesses`, and writes an event; `filled`
/// slots are taken before. Whether it has struck in any execution.
fn handler_strikes(accesses: u32, filled: u64) -> bool {
    let struck = Arc::new(AtomicBool::new(false));
    let any = struck.clone();
    explore(1, move || {
        let memory = Arc::new(Memory::new());
        ring(&memory).prepare(Mode::Discard);
        let mut reader = Reader::at(SLOTS as u64);
        for n in 0..filled {
            write(&memory, 10 + n, 1);
        }
        let writer = loom::thread::spawn({
            let (memory, struck) = (memory.clone(), struck.clone());
            move || {
                let handled = Rc::new(Cell::new(false));
                strike_after(accesses, {
                    let (memory, handled) = (memory.clone(), handled.clone());
                    move || {
                        write(&memory, 30, 1);
                        handled.set(true);
                    }
                });
                write(&memory, 20, 1);
                write(&memory, 21, 1);
                calm();
                struck.fetch_or(handled.get(), Relaxed);
                u64::from(handled.get())
            }
        });
        let mut seen = Seen::default();
        seen.drain(&mut reader, &memory);
        let handled = writer.join().unwrap();
        let mut events = seen.end(&mut reader, &memory, filled + 2 + handled);
        // The handler's event may stand anywhere among those of the writer, which keep their order.
        events.retain(|&n| n != 30);
        assert!(events.is_sorted(), "{events:?}");
    });
    any.load(Relaxed)
}

#[test]
fn handler_strikes_anywhere() {
    // An empty ring, one that is full for the second event, and a full one.
    for filled in [0, 2, 3] {
        let last = (0..).find(|&accesses| !handler_strikes(accesses, filled)).unwrap();
        assert!(last > 10, "a write has more than {last} accesses");
    }
}

/// A handler that strikes between the reservation and the commit of an event changes nothing of what
/// the reader relies on.
#[test]
fn handler_needs_the_orderings_too() {
    let strikes = || _ = handler_strikes(8, 2);
    assert!(fails((Role::Commit, Access::Store, Relaxed), strikes));
    assert!(fails((Role::Commit, Access::Load, Relaxed), strikes));
}
