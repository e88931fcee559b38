//! The rings of this process, written by hand: events of a real site in the name of any thread.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use ft_user::layout::{Header, PAGE, RingControl, SharedControl, SharedSlot, commit, marker};
use ft_user::sync::Mutex;

use crate::forged::recorded;

/// A process that records, with one thread, and the file behind its rings.
pub(crate) struct OwnRings {
    memfd: File,
    /// Where the ring of its thread begins, and the shared one.
    ring: u64,
    shared: u64,
    shared_slots: u32,
    /// The first word of an event: that a thread acquires a lock.
    word: u64,
    /// Events in the shared ring.
    shared_events: u32,
}

impl OwnRings {
    /// Registers this process, and waits until its locks are recorded.
    pub(crate) fn record(socket: &str) -> OwnRings {
        let memfd = recorded(socket);
        drop(Mutex::named("stolen", 0).lock());
        let number = |at: u64| {
            let mut bytes = [0; 8];
            memfd.read_exact_at(&mut bytes, at).expect("a file of ours");
            u64::from_ne_bytes(bytes)
        };
        let ring = number(offset_of!(Header, rings_offset) as u64);
        let shared = number(offset_of!(Header, shared_offset) as u64);
        let shared_slots = number(offset_of!(Header, shared_slots) as u64) as u32;
        let slots = number(ring + offset_of!(RingControl, mask) as u64) + 1;
        assert!(number(ring + offset_of!(RingControl, head) as u64) > slots, "it records");
        let word = number(ring + PAGE) & !(commit::TAG_MASK << commit::TAG_SHIFT);
        OwnRings { memfd, ring, shared, shared_slots, word, shared_events: 0 }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memfd.write_all_at(bytes, at).expect("a file of ours");
    }

    /// Makes the ring of this thread that of thread `tid`, its next one.
    pub(crate) fn rename(&self, tid: u32, generation: u32) {
        let at = |offset: usize| self.ring + offset as u64;
        self.put(at(offset_of!(RingControl, tid)), &tid.to_ne_bytes());
        self.put(at(offset_of!(RingControl, generation)), &generation.to_ne_bytes());
    }

    /// Writes into the shared ring, as the library does, that thread `tid` acquires a lock now. Waits while the ring is full.
    pub(crate) fn acquire_as(&mut self, tid: u32) {
        // SAFETY: reads the time stamp counter.
        self.acquire_at(tid, unsafe { std::arch::x86_64::_rdtsc() });
    }

    /// The same, at any time.
    pub(crate) fn acquire_at(&mut self, tid: u32, tsc: u64) {
        let control = |offset: usize| self.shared + offset as u64;
        while self.shared_events.wrapping_sub(self.read()) >= self.shared_slots {
            std::thread::sleep(Duration::from_millis(1));
        }
        let index = u64::from(self.shared_events % self.shared_slots);
        let slot = self.shared + PAGE + index * size_of::<SharedSlot>() as u64;
        self.put(slot + offset_of!(SharedSlot, tid) as u64, &tid.to_ne_bytes());
        self.put(slot + offset_of!(SharedSlot, commit) as u64, &self.word.to_ne_bytes());
        self.put(slot + offset_of!(SharedSlot, tsc) as u64, &tsc.to_ne_bytes());
        // Counted, then ready.
        self.put(slot + offset_of!(SharedSlot, marker) as u64, &marker::READY.to_ne_bytes());
        self.shared_events = self.shared_events.wrapping_add(1);
        self.put(control(offset_of!(SharedControl, write)), &self.shared_events.to_ne_bytes());
        self.put(control(offset_of!(SharedControl, free)), &1i32.to_ne_bytes());
    }

    /// Events of the shared ring that the agent has read.
    pub(crate) fn read(&self) -> u32 {
        let mut bytes = [0; 4];
        let at = self.shared + offset_of!(SharedControl, read) as u64;
        self.memfd.read_exact_at(&mut bytes, at).expect("a file of ours");
        u32::from_ne_bytes(bytes)
    }
}
