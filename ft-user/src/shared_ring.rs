//! The shared multi-writer ring: the buffer of the Feather-Trace paper (section 2.2, figure 3).
//!
//! It takes the events of the threads that have no ring of their own: more threads than rings, or a
//! thread that is past its end. A writer takes four steps, whatever the others do: it takes one from the
//! *free count* (locked exchange-and-add), and gives it back and counts an error when there was none;
//! else it takes the next *write index* (locked again), marks the slot busy, fills it, marks it ready.
//!
//! In one thing it differs from the paper's: a writer that is descheduled between its reservation and its marker holds up nobody. The
//! one reader goes slot by slot, and passes over those that are not ready while one behind them is; it looks at them again later. A
//! writer marks a slot busy by compare-and-exchange, and where a slow one of the lap before is still at it, takes the next index. So
//! each slot has one writer at a time, and a slot whose write was left (`siglongjmp`, a thread that was killed by a debugger) is used no
//! more: the ring has one less until its process ends. What was taken from the free count and never given back is the number of events
//! that were never finished.
//!
//! The number of slots divides 2^32, so the write index may overflow.

use core::sync::atomic::Ordering::*;

use crate::layout::{
    MAX_EVENT_SLOTS, SHARED_SLOTS, SHARED_WORDS, SharedControl, SharedSlot, commit, marker,
};

const _: () = assert!(SHARED_SLOTS.is_power_of_two());

/// A mapped shared ring, for its writers.
#[derive(Clone, Copy)]
pub struct SharedRing<'a> {
    control: &'a SharedControl,
    slots: &'a [SharedSlot],
}

/// One event to write.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Thread id of the writer in its own PID namespace.
    pub tid: u32,
    /// Key of the site.
    pub key: u32,
    /// CPU, [`commit::CPU_UNKNOWN`] when not known.
    pub cpu: u16,
    /// Payload; words behind [`SHARED_WORDS`] are cut, and the event says that they were there.
    pub words: &'a [u64],
}

impl<'a> SharedRing<'a> {
    /// The ring with these parts; `control.free` is the number of slots at first.
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two.
    pub fn new(control: &'a SharedControl, slots: &'a [SharedSlot]) -> Self {
        assert!(slots.len().is_power_of_two());
        SharedRing { control, slots }
    }

    /// Writes one event, or counts it as lost when the ring is full. Wait-free, but that of those who lose events at the same time one after
    /// the other says when. `tsc` is read after the
    /// reservation, so that the slots of one thread are in the order of their times.
    pub fn write(&self, event: Event<'_>, tsc: impl FnOnce() -> u64) -> bool {
        let control = self.control;
        let free = control.free.fetch_sub(1, Relaxed) > 0;
        let Some(slot) = free.then(|| self.take_slot()).flatten() else {
            control.free.fetch_add(1, Relaxed);
            self.count_lost(1, tsc());
            return false;
        };
        slot.tid.store(event.tid, Relaxed);
        slot.tsc.store(tsc(), Relaxed);
        slot.commit.store(commit_word(&event), Relaxed);
        for (word, &value) in slot.words.iter().zip(event.words) {
            word.store(value, Relaxed);
        }
        // Words of an earlier event must not look like arguments of this one.
        for word in slot.words.iter().skip(event.words.len()) {
            word.store(0, Relaxed);
        }
        // SYNC: shared-ready (with the reader's load of the marker).
        slot.marker.store(marker::READY, Release);
        true
    }

    /// Counts events as lost at the time `tsc`.
    pub(crate) fn count_lost(&self, events: u32, tsc: u64) {
        if events > 0 {
            let control = self.control;
            let [first, last] = &control.loss_tsc;
            // Who comes later may have lost earlier: a handler or another thread was in between.
            if first.compare_exchange(0, tsc, Relaxed, Relaxed).is_err_and(|first| first > tsc) {
                first.fetch_min(tsc, Relaxed);
            }
            last.fetch_max(tsc, Relaxed);
            control.lost.fetch_add(events.into(), Release);
        }
    }

    /// The next slot that is free, marked busy. There is one for whoever has taken from the free count; two laps are enough to find it,
    /// unless others take and give back slots all the while.
    fn take_slot(&self) -> Option<&'a SharedSlot> {
        (0..2 * self.slots.len()).find_map(|_| {
            let index = self.control.write.fetch_add(1, Relaxed) as usize;
            let slot = &self.slots[index & (self.slots.len() - 1)];
            let (free, busy) = (marker::FREE, marker::BUSY);
            // SYNC: shared-free (with the reader's store of the marker: what it has read of the slot, it has read).
            slot.marker.compare_exchange(free, busy, Acquire, Relaxed).ok().map(|_| slot)
        })
    }
}

fn commit_word(event: &Event<'_>) -> u64 {
    let continuations =
        event.words.len().saturating_sub(2).div_ceil(3).min(MAX_EVENT_SLOTS as usize - 1);
    (continuations as u64) << commit::CONT_SHIFT
        | (u64::from(event.cpu) & commit::CPU_UNKNOWN) << commit::CPU_SHIFT
        | u64::from(event.key)
        | commit::COMMITTED
}

/// An event as it was read, not judged yet: every field is what the process wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Thread id of the writer in its own PID namespace.
    pub tid: u32,
    /// Commit word without a tag. The event was cut when `2 + 3 * continuations` words are more than
    /// `words` can hold.
    pub commit: u64,
    /// TSC.
    pub tsc: u64,
    /// Payload.
    pub words: [u64; SHARED_WORDS],
}

/// What the ring lost so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Events lost in all.
    pub events: u64,
    /// TSC of the first and of the latest loss; zero when there was none.
    pub tsc: [u64; 2],
}

/// How far a ring is read: the next index, and the slots that were passed over.
#[derive(Clone, Debug, Default)]
pub struct Position {
    read: u32,
    /// A bit for each slot: it was not ready when one behind it was, and has not been read since.
    passed: Vec<u64>,
}

impl Position {
    fn set_passed(&mut self, slot: u32, is_passed: bool) {
        let word = &mut self.passed[slot as usize / 64];
        *word = *word & !(1 << (slot % 64)) | u64::from(is_passed) << (slot % 64);
    }
}

/// The one reader of a shared ring. It keeps its position for itself and masks it; a copy of the index in the control
/// page tells the next reader where to go on.
pub struct Reader<'a> {
    control: &'a SharedControl,
    slots: &'a [SharedSlot],
    position: Position,
}

impl<'a> Reader<'a> {
    /// A reader that goes on at index `read` (0 for a ring that was never read).
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two.
    pub fn new(control: &'a SharedControl, slots: &'a [SharedSlot], read: u32) -> Self {
        Reader::at(control, slots, Position { read, passed: Vec::new() })
    }

    /// A reader that goes on where [`Reader::into_position`] says.
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two.
    pub fn at(control: &'a SharedControl, slots: &'a [SharedSlot], mut position: Position) -> Self {
        assert!(slots.len().is_power_of_two());
        position.passed.resize(slots.len().div_ceil(64), 0);
        Reader { control, slots, position }
    }

    /// A reader that goes on where the last one ended, or at the start. Writers may be at work, and the last
    /// reader may have been killed between any two instructions: then the event that it has read last may be read again.
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two.
    pub fn resume(control: &'a SharedControl, slots: &'a [SharedSlot]) -> Reader<'a> {
        let mut reader = Reader::new(control, slots, control.read.load(Relaxed));
        // The last one has passed over what is taken before its position.
        for ahead in reader.reserved()..slots.len() as u32 {
            let number = reader.number(reader.position.read.wrapping_add(ahead));
            let is_taken = slots[number as usize].marker.load(Relaxed) != marker::FREE;
            reader.position.set_passed(number, is_taken);
        }
        reader
    }

    /// The next index to read, modulo 2^32: where a later [`Reader::new`] goes on.
    pub fn position(&self) -> u32 {
        self.position.read
    }

    /// Where a later [`Reader::at`] goes on.
    pub fn into_position(self) -> Position {
        self.position
    }

    /// Slots that it has passed over and not read since; a writer may have passed over some of them, too.
    pub fn passed(&self) -> usize {
        self.position.passed.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Slots that are taken and not given back, as far as there can be.
    pub fn taken(&self) -> u64 {
        let free = u64::try_from(self.control.free.load(Acquire)).unwrap_or(0);
        (self.slots.len() as u64).saturating_sub(free)
    }

    /// All that was taken so far is read, or passed over.
    pub fn is_at_end(&self) -> bool {
        self.reserved() == 0
    }

    /// Takes the event of the next slot, when it is ready.
    ///
    /// A hostile writer can make this return an event each time: take a bounded number at once.
    pub fn read(&mut self) -> Option<Record> {
        if self.reserved() == 0 {
            return None;
        }
        let number = self.number(self.position.read);
        let record = self.take(number)?;
        self.position.set_passed(number, false);
        self.go_to(self.position.read.wrapping_add(1));
        Some(record)
    }

    /// Passes over slots that are taken and not ready, if one of the next `limit` slots is ready behind them; returns how many it has
    /// looked at.
    pub fn pass(&mut self, limit: u32) -> u32 {
        let (from, most) = (self.position.read, self.reserved().min(limit));
        let is_ready = |n: &u32| {
            let slot = &self.slots[self.number(from.wrapping_add(*n)) as usize];
            slot.marker.load(Relaxed) == marker::READY
        };
        let Some(ready) = (0..most).find(is_ready) else { return most };
        for n in 0..ready {
            self.position.set_passed(self.number(from.wrapping_add(n)), true);
        }
        self.go_to(from.wrapping_add(ready));
        ready
    }

    /// Takes the event of the first slot from number `from` on that was passed over and is ready by now; also returns the number behind
    /// that slot.
    pub fn read_late(&mut self, from: u32) -> Option<(u32, Record)> {
        let first = from / 64;
        for word in first..self.position.passed.len() as u32 {
            let mut passed = self.position.passed[word as usize];
            if word == first {
                passed &= u64::MAX << (from % 64);
            }
            while passed != 0 {
                let slot = 64 * word + passed.trailing_zeros();
                passed &= passed - 1;
                if let Some(record) = self.take(slot) {
                    self.position.set_passed(slot, false);
                    return Some((slot + 1, record));
                }
            }
        }
        None
    }

    /// Takes the next event that is ready, wherever it is. Those of one thread come in the order of their times, unless a slot was
    /// passed over on the way, by the reader or by a writer.
    pub fn read_any(&mut self) -> Option<Record> {
        let late = self.read_late(0).map(|(_, record)| record);
        if let Some(record) = late.or_else(|| self.read()) {
            return Some(record);
        }
        self.pass(u32::MAX);
        self.read()
    }

    /// Indices that are taken from the position on. Of what is a lap away each slot is looked at once.
    fn reserved(&self) -> u32 {
        let taken = self.control.write.load(Acquire).wrapping_sub(self.position.read);
        taken.min(self.slots.len() as u32)
    }

    /// The slot of an index.
    fn number(&self, index: u32) -> u32 {
        index & (self.slots.len() as u32 - 1)
    }

    fn go_to(&mut self, index: u32) {
        self.position.read = index;
        self.control.read.store(index, Relaxed);
    }

    /// What is in a slot, if it is ready, and frees the slot.
    fn take(&self, number: u32) -> Option<Record> {
        let slot = &self.slots[number as usize];
        // SYNC: shared-ready (with the writer's store of the marker).
        if slot.marker.load(Acquire) != marker::READY {
            return None;
        }
        let record = Record {
            tid: slot.tid.load(Relaxed),
            commit: slot.commit.load(Relaxed),
            tsc: slot.tsc.load(Relaxed),
            words: core::array::from_fn(|n| slot.words[n].load(Relaxed)),
        };
        // SYNC: shared-free (with the writer's compare-and-exchange). Killed before the next step, a reader leaves a slot that nobody
        // counts on.
        slot.marker.store(marker::FREE, Release);
        self.control.free.fetch_add(1, Relaxed);
        Some(record)
    }

    /// What was lost so far. The three numbers are read one after the other while writers go on.
    pub fn loss(&self) -> Loss {
        let events = self.control.lost.load(Acquire);
        Loss { events, tsc: [0, 1].map(|n: usize| self.control.loss_tsc[n].load(Relaxed)) }
    }
}

// The path, because a loom model includes this file under another name.
#[cfg(all(test, not(loom)))]
#[path = "shared_ring/tests.rs"]
mod tests;
