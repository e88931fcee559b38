//! A ring in plain memory, for tests of its two ends.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use crate::layout::{MIN_RING_SLOTS, Mode, PAGE, RingControl, Slot, commit};
use crate::reader::{Drained, Reader, Uncommitted};
use crate::ring::{Ring, Written};

/// Slots of every test ring.
pub(crate) const SLOTS: u64 = MIN_RING_SLOTS as u64;

/// Owner of a ring; the clock of its events counts up from 1.
pub(crate) struct TestRing {
    memory: *mut u8,
    now: Cell<u64>,
}

/// An event as it was read: key, TSC, and all words that its slots hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) key: u32,
    pub(crate) tsc: u64,
    pub(crate) words: Vec<u64>,
}

fn layout() -> Layout {
    let bytes = PAGE as usize + SLOTS as usize * size_of::<Slot>();
    Layout::from_size_align(bytes, PAGE as usize).expect("a valid layout")
}

impl TestRing {
    pub(crate) fn new(mode: Mode) -> TestRing {
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout()) };
        if memory.is_null() {
            handle_alloc_error(layout());
        }
        // SAFETY: the memory is large enough, aligned, and nobody else's.
        unsafe { (*memory.cast::<RingControl>()).mask = SLOTS - 1 };
        let ring = TestRing { memory, now: Cell::new(0) };
        ring.ring().prepare(mode);
        ring
    }

    /// The ring. The lifetime is a lie that lets a thread use it as its own; the test clears the
    /// thread before it drops the memory.
    pub(crate) fn ring(&self) -> Ring<'static> {
        // SAFETY: the memory holds a control page and as many slots.
        unsafe { Ring::new(self.memory.cast(), SLOTS as u32) }.expect("a valid number of slots")
    }

    pub(crate) fn tick(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }

    pub(crate) fn write(&self, key: u32, words: &[u64]) -> Written {
        self.ring().write(key, 0, words, || self.tick())
    }

    /// A reader that starts where the ring does.
    pub(crate) fn reader(&self) -> Reader {
        Reader::at(self.ring().control.tail.load(Relaxed))
    }
}

impl Drop for TestRing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.memory, layout()) };
    }
}

/// Drains once without a budget, and takes the bytes apart.
pub(crate) fn drain(
    reader: &mut Reader,
    ring: &Ring<'_>,
    uncommitted: Uncommitted,
) -> (Drained, Vec<Event>) {
    let mut bytes = Vec::new();
    let drained = reader.drain(ring, uncommitted, u64::MAX, &mut bytes);
    assert_eq!(bytes.len() as u64, drained.slots * size_of::<Slot>() as u64);
    (drained, events(&bytes))
}

/// The events that lie one after the other in `bytes`.
pub(crate) fn events(bytes: &[u8]) -> Vec<Event> {
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|chunk| u64::from_ne_bytes(*chunk)).collect();
    let mut slots = words.as_chunks::<4>().0.iter();
    let mut events = Vec::new();
    while let Some(&[commit, tsc, a, b]) = slots.next() {
        let mut words = vec![a, b];
        for slot in slots.by_ref().take(commit::continuations(commit) as usize) {
            words.extend_from_slice(&slot[1..]);
        }
        events.push(Event { key: commit::key(commit), tsc, words });
    }
    events
}
