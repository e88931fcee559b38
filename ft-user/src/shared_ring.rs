//! The shared multi-writer ring: the buffer of the Feather-Trace paper (section 2.2, figure 3).
//!
//! It takes the events of the threads that have no ring of their own: more threads than rings, or a
//! thread that is past its end. A writer takes four steps, whatever the others do: it takes one from the
//! *free count* (locked exchange-and-add), and gives it back and counts an error when there was none;
//! else it takes the next *write index* (locked again), marks the slot busy, fills it, marks it ready.
//! The one reader goes slot by slot, and stops at the first that is not ready.
//!
//! The number of slots divides 2^32, so the write index may overflow. A writer that is descheduled
//! between its reservation and its marker holds up the reader, never another writer.

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

    /// Writes one event, or counts it as lost when the ring is full. Wait-free. `tsc` is read after the
    /// reservation, so that the slots of one thread are in the order of their times.
    pub fn write(&self, event: Event<'_>, tsc: impl FnOnce() -> u64) -> bool {
        let control = self.control;
        // SYNC: shared-free (with the reader's increment: what it has read of the slot, it has read).
        if control.free.fetch_sub(1, Acquire) <= 0 {
            control.free.fetch_add(1, Relaxed);
            let tsc = tsc();
            // The first loss of all stays; the last is whoever comes last.
            let _ = control.loss_tsc[0].compare_exchange(0, tsc, Relaxed, Relaxed);
            control.loss_tsc[1].store(tsc, Relaxed);
            control.lost.fetch_add(1, Release);
            return false;
        }
        // SYNC: shared-write (both ends are here). A writer that took from the free count later may be
        // here earlier. Whoever comes behind it gets the slot that it has seen freed, so must see what it
        // has seen (both halves are needed: `tests/loom/shared.rs`).
        let index = control.write.fetch_add(1, AcqRel) as usize & (self.slots.len() - 1);
        let slot = &self.slots[index];
        slot.marker.store(marker::BUSY, Relaxed);
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

/// The one reader of a shared ring. It keeps the read index for itself and masks it; a copy in the control
/// page tells the next reader where to go on.
pub struct Reader<'a> {
    control: &'a SharedControl,
    slots: &'a [SharedSlot],
    read: u32,
}

impl<'a> Reader<'a> {
    /// A reader that goes on at slot `read` (0 for a ring that was never read).
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two.
    pub fn new(control: &'a SharedControl, slots: &'a [SharedSlot], read: u32) -> Self {
        assert!(slots.len().is_power_of_two());
        Reader { control, slots, read }
    }

    /// A reader that goes on where the last one ended, or at the start. Writers may be at work, and the last
    /// reader may have been killed between any two instructions.
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two.
    pub fn resume(control: &'a SharedControl, slots: &'a [SharedSlot]) -> Reader<'a> {
        let reader = Reader::new(control, slots, control.read.load(Relaxed));
        let last = &slots[reader.read.wrapping_sub(1) as usize & (slots.len() - 1)];
        // Ready is the last slot that was read if its writer is a lap ahead. Then all slots are taken (the
        // marker first, the index then: that writer has moved it before). Else it was not freed.
        let ready = last.marker.load(Acquire) == marker::READY; // SYNC: shared-ready
        let taken = control.write.load(Relaxed).wrapping_sub(reader.read);
        if ready && taken < slots.len() as u32 {
            last.marker.store(marker::FREE, Relaxed);
            control.free.fetch_add(1, Release); // SYNC: shared-free
        }
        reader
    }

    /// Slots that were read, modulo 2^32: where a later [`Reader::new`] goes on.
    pub fn position(&self) -> u32 {
        self.read
    }

    /// Takes the next event, when there is one that is ready.
    ///
    /// A hostile writer can make this return an event each time: take a bounded number at once.
    pub fn read(&mut self) -> Option<Record> {
        if self.control.free.load(Relaxed) as i64 == self.slots.len() as i64 {
            return None;
        }
        let slot = &self.slots[self.read as usize & (self.slots.len() - 1)];
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
        self.read = self.read.wrapping_add(1);
        // In this order, of which `resume` makes use. Killed before the last step, a reader leaves a slot
        // that nobody uses again.
        self.control.read.store(self.read, Relaxed);
        slot.marker.store(marker::FREE, Release);
        // SYNC: shared-free (with the writer's decrement).
        self.control.free.fetch_add(1, Release);
        Some(record)
    }

    /// Passes over a slot that is taken and not ready, when there is one: for a ring whose process has
    /// ended. What its writer had not finished never will be, and must not hide what stands behind it.
    pub fn skip(&mut self) -> bool {
        let taken = self.control.write.load(Acquire).wrapping_sub(self.read);
        let skips = (1..=self.slots.len() as u32).contains(&taken);
        self.read = self.read.wrapping_add(skips.into());
        self.control.read.store(self.read, Relaxed);
        skips
    }

    /// What was lost so far. The three numbers are read one after the other while writers go on.
    pub fn loss(&self) -> Loss {
        let events = self.control.lost.load(Acquire);
        Loss { events, tsc: [0, 1].map(|n: usize| self.control.loss_tsc[n].load(Relaxed)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ring(slots: usize) -> (SharedControl, Vec<SharedSlot>) {
        // SAFETY: all of `SharedControl` and `SharedSlot` may be zero.
        let (control, slot) =
            unsafe { (core::mem::zeroed::<SharedControl>(), || core::mem::zeroed::<SharedSlot>()) };
        control.free.store(slots as i32, Relaxed);
        (control, (0..slots).map(|_| slot()).collect())
    }

    fn event(words: &[u64]) -> Event<'_> {
        Event { tid: 7, key: 64, cpu: 3, words }
    }

    #[test]
    fn event_comes_back() {
        let (control, slots) = ring(4);
        let mut reader = Reader::new(&control, &slots, 0);
        assert_eq!(reader.read(), None);
        assert!(SharedRing::new(&control, &slots).write(event(&[1, 2, 3]), || 99));
        let record = reader.read().unwrap();
        assert_eq!((record.tid, record.tsc, &record.words[..4]), (7, 99, &[1, 2, 3, 0][..]));
        assert_eq!(commit::key(record.commit), 64);
        assert_eq!(commit::cpu(record.commit), 3);
        assert_eq!(commit::continuations(record.commit), 1);
        assert_eq!(reader.read(), None);
        assert_eq!(control.free.load(Relaxed), 4);
    }

    #[test]
    fn long_event_is_cut_and_says_so() {
        let (control, slots) = ring(4);
        SharedRing::new(&control, &slots).write(event(&[5; 38]), || 1);
        let record = Reader::new(&control, &slots, 0).read().unwrap();
        assert_eq!(commit::continuations(record.commit), 12);
        assert_eq!(record.words, [5; SHARED_WORDS]);
    }

    #[test]
    fn full_ring_counts_the_loss() {
        let (control, slots) = ring(4);
        let writer = SharedRing::new(&control, &slots);
        let written: Vec<_> = (10..17).map(|tsc| writer.write(event(&[tsc]), || tsc)).collect();
        assert_eq!(written, [true, true, true, true, false, false, false]);
        let mut reader = Reader::new(&control, &slots, 0);
        assert_eq!(reader.loss(), Loss { events: 3, tsc: [14, 16] });
        assert_eq!(reader.read().unwrap().tsc, 10);
        assert!(writer.write(event(&[]), || 17));
        let left: Vec<_> = std::iter::from_fn(|| reader.read()).map(|r| r.tsc).collect();
        assert_eq!(left, [11, 12, 13, 17]);
    }

    #[test]
    fn busy_slot_holds_up_the_reader_only() {
        let (control, slots) = ring(4);
        let writer = SharedRing::new(&control, &slots);
        writer.write(event(&[]), || 1);
        writer.write(event(&[]), || 2);
        slots[0].marker.store(marker::BUSY, Relaxed);
        let mut reader = Reader::new(&control, &slots, 0);
        assert_eq!(reader.read(), None);
        assert!(writer.write(event(&[]), || 3));
        slots[0].marker.store(marker::READY, Relaxed);
        assert_eq!(std::iter::from_fn(|| reader.read()).count(), 3);
    }

    #[test]
    fn unfinished_slots_of_the_dead_are_passed_over() {
        let (control, slots) = ring(4);
        control.write.store(u32::MAX, Relaxed);
        let writer = SharedRing::new(&control, &slots);
        (1..=4).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
        // Killed before the marker, while filling, and at the very end.
        for (at, unfinished) in [(3, marker::FREE), (1, marker::BUSY), (2, marker::BUSY)] {
            slots[at].marker.store(unfinished, Relaxed);
        }
        let mut reader = Reader::new(&control, &slots, u32::MAX);
        assert_eq!(reader.read(), None);
        assert!(reader.skip());
        assert_eq!(reader.read().map(|r| r.tsc), Some(2));
        assert_eq!(
            (reader.read(), reader.skip(), reader.skip(), reader.skip()),
            (None, true, true, false)
        );
        // A write index that no writer has made.
        control.write.store(reader.position().wrapping_add(5), Relaxed);
        assert!(!reader.skip());
    }

    /// What the next reader finds, whatever a writer is about to do.
    #[test]
    fn next_reader_goes_on_where_the_last_one_ended() {
        let (control, slots) = ring(4);
        let writer = SharedRing::new(&control, &slots);
        (1..=3).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
        assert_eq!(Reader::resume(&control, &slots).read().map(|r| r.tsc), Some(1));
        // A writer between its two steps: one taken from the free count, the write index where it was.
        control.free.fetch_sub(1, Relaxed);
        let mut reader = Reader::resume(&control, &slots);
        control.free.fetch_add(1, Relaxed);
        assert!(writer.write(event(&[]), || 4));
        let rest: Vec<_> = std::iter::from_fn(|| reader.read()).map(|r| r.tsc).collect();
        assert_eq!(rest, [2, 3, 4]);
        assert_eq!(reader.position(), 4);
    }

    #[test]
    fn next_reader_frees_what_a_killed_one_had_read() {
        let (control, slots) = ring(4);
        let writer = SharedRing::new(&control, &slots);
        (1..=2).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
        control.read.store(1, Relaxed);
        let mut reader = Reader::resume(&control, &slots);
        assert_eq!(reader.read().map(|r| r.tsc), Some(2));
        assert_eq!((reader.read(), control.free.load(Relaxed)), (None, 4));
        // All slots are taken, and the one before the position belongs to the newest event.
        (3..=6).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
        let mut reader = Reader::resume(&control, &slots);
        let all: Vec<_> = std::iter::from_fn(|| reader.read()).map(|r| r.tsc).collect();
        assert_eq!(all, [3, 4, 5, 6]);
    }

    #[test]
    fn indices_may_overflow() {
        let (control, slots) = ring(4);
        control.write.store(u32::MAX - 1, Relaxed);
        let mut reader = Reader::new(&control, &slots, u32::MAX - 1);
        for tsc in 1..=20 {
            assert!(SharedRing::new(&control, &slots).write(event(&[]), || tsc));
            assert_eq!(reader.read().map(|r| r.tsc), Some(tsc));
        }
        assert_eq!(reader.position(), 18);
    }

    #[test]
    fn writers_and_reader_at_once() {
        const WRITERS: u64 = 4;
        let each = if cfg!(miri) { 20 } else { 20_000 };
        let (control, slots) = ring(64);
        let mut seen = [0; WRITERS as usize];
        let mut lost = 0;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..WRITERS)
                .map(|id| {
                    let writer = SharedRing::new(&control, &slots);
                    scope.spawn(move || {
                        (1..=each).filter(|&n| !writer.write(event(&[id, n, !n]), || n)).count()
                    })
                })
                .collect();
            let mut reader = Reader::new(&control, &slots, 0);
            let mut take = |reader: &mut Reader<'_>| {
                let mut count = 0;
                while let Some(record) = reader.read() {
                    let [id, n, inverse, ..] = record.words;
                    assert_eq!(n, !inverse, "torn");
                    assert_eq!(n, record.tsc, "mixed");
                    assert!(n > seen[id as usize], "out of order");
                    seen[id as usize] = n;
                    count += 1;
                }
                count
            };
            let mut read = 0;
            while !threads.iter().all(|thread| thread.is_finished()) {
                read += take(&mut reader);
            }
            for thread in threads {
                lost += thread.join().unwrap();
            }
            read += take(&mut reader);
            assert_eq!(read + lost, (WRITERS * each) as usize);
            assert_eq!(reader.loss().events, lost as u64);
        });
    }
}
