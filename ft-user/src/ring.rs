//! The ring of one thread: how an event is written.
//!
//! One writer, its thread, with any depth of signal handlers on top of it; one reader, in another
//! process ([`crate::reader`]). Writing is wait-free: no loop, no lock, no system call.
//!
//! # The steps of a write
//!
//! 1. *Room*: `head < limit`. The limit leaves [`MARGIN_SLOTS`] free, so that a handler that runs
//!    between this step and the next cannot make the writer overrun the reader.
//! 2. *Reserve*: add the number of slots to `head`. One instruction, so that a handler comes before it
//!    or after it.
//! 3. *Busy*: store the commit word without `COMMITTED`. In overwrite mode this tells a reader that
//!    the old contents are going.
//! 4. *Time*: read the time stamp counter. After the reservation, so that an event that a handler
//!    writes later, to a later slot, does not get an earlier time, except in the instant between the
//!    two steps. `arch` reads it in front of step 3, which changes nothing for a reader.
//! 5. *Fill*, and *commit*: continuation slots one by one, the first slot last.
//!
//! `arch` does the same steps in assembly for enabled triggers, while there is room. This file
//! is the general form: it also finds new room, and accounts for losses.
//!
//! # A full ring
//!
//! In [`Mode::Discard`] the event is lost and counted. The first event that fits again is preceded by a
//! loss event with the number of events lost and the time at which the loss began. That time is never
//! too late; if a handler interrupts the accounting, it can be the beginning of an earlier loss. In
//! [`Mode::Overwrite`] the limit is never reached. Before an event is lost, its thread may wait for room
//! ([`crate::wait`]).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::{AtomicU64, fence};
use crate::layout::{
    LOSS_KEY, MARGIN_SLOTS, MAX_EVENT_SLOTS, MAX_RING_SLOTS, MIN_RING_SLOTS, Mode, PAGE,
    RingControl, Slot, commit,
};

/// Payload words of one event, at most.
pub const MAX_WORDS: usize = 2 + 3 * (MAX_EVENT_SLOTS as usize - 1);

/// A ring in memory: its control page and its slots.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    /// Positions, limit and loss counters.
    pub control: &'a RingControl,
    /// A power of two of slots, `MIN_RING_SLOTS ..= MAX_RING_SLOTS`.
    slots: &'a [Slot],
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is in the ring.
    Whole,
    /// The ring is full; the event is counted.
    Lost,
}

impl<'a> Ring<'a> {
    /// The ring at `control` with `slots` slots; `None` if their number is not a power of two in
    /// `MIN_RING_SLOTS ..= MAX_RING_SLOTS`.
    ///
    /// # Safety
    ///
    /// `control` points to a control page that is followed by `slots` slots, mapped and readable for
    /// `'a`, and writable where a method says that it writes.
    pub unsafe fn new(control: *const RingControl, slots: u32) -> Option<Ring<'a>> {
        if !slots.is_power_of_two() || !(MIN_RING_SLOTS..=MAX_RING_SLOTS).contains(&slots) {
            return None;
        }
        // SAFETY: the caller vouches for both; every field that changes is atomic.
        unsafe {
            let first = control.byte_add(PAGE as usize).cast::<Slot>();
            Some(Ring {
                control: &*control,
                slots: core::slice::from_raw_parts(first, slots as usize),
            })
        }
    }

    /// Number of slots.
    pub fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Never: a ring has slots.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slot of a reservation index.
    pub(crate) fn slot(&self, index: u64) -> &'a Slot {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    /// Makes the ring ready for a thread that has just claimed it: room, and no loss to tell.
    ///
    /// Positions stay as they are, so that tags keep differing; a ring that was never used starts at
    /// index `len()`.
    pub fn prepare(&self, mode: Mode) {
        let control = self.control;
        if control.head.load(Relaxed) == 0 {
            control.tail.store(self.len(), Relaxed);
            control.head.store(self.len(), Relaxed);
        }
        control.lost_pending.store(0, Relaxed);
        control.loss_begin_tsc.store(u64::MAX, Relaxed);
        self.forget_waits();
        let limit = match mode {
            Mode::Discard => self.limit(),
            Mode::Overwrite => u64::MAX,
        };
        control.limit.store(limit, Relaxed);
    }

    /// The limit that follows from what the reader has consumed.
    fn limit(&self) -> u64 {
        // SYNC: consumed
        let tail = self.control.tail.load(Acquire);
        // A tail beyond the head is no reader's work; believing it would let the writer run forever.
        tail.min(self.control.head.load(Relaxed)).saturating_add(self.len() - MARGIN_SLOTS as u64)
    }

    /// Whether an event fits, with the newest word of the reader.
    fn has_room(&self) -> bool {
        self.has_room_behind(0)
    }

    /// Whether an event fits behind one of so many slots.
    pub(crate) fn has_room_behind(&self, slots: u64) -> bool {
        let head = self.control.head.load(Relaxed).saturating_add(slots);
        if head < self.control.limit.load(Relaxed) {
            return true;
        }
        let limit = self.limit();
        self.control.limit.store(limit, Relaxed);
        head < limit
    }

    /// Writes an event of at most [`MAX_WORDS`] words, or counts it as lost.
    ///
    /// `key` is that of the site, `cpu` the number of the CPU or `CPU_UNKNOWN`, `clock` reads the time
    /// stamp counter. Words beyond the maximum are dropped.
    ///
    /// Only the thread that owns the ring may call this, with or without signal handlers in between.
    pub fn write(&self, key: u32, cpu: u64, words: &[u64], clock: impl Fn() -> u64) -> Written {
        if self.has_room() {
            self.tell_loss(cpu, &clock);
            // The loss event took a slot.
            if self.has_room() {
                self.put(key, cpu, words, &clock);
                return Written::Whole;
            }
        }
        self.count_loss(clock());
        Written::Lost
    }

    /// Steps 2 to 5. There is room.
    pub(crate) fn put(&self, key: u32, cpu: u64, words: &[u64], clock: impl Fn() -> u64) {
        let words = &words[..words.len().min(MAX_WORDS)];
        let continuations = words.len().saturating_sub(2).div_ceil(3) as u64;
        let index = self.control.head.fetch_add(1 + continuations, Relaxed);
        let slot = self.slot(index);
        let word = commit::tag(index) << commit::TAG_SHIFT
            | continuations << commit::CONT_SHIFT
            | (cpu & commit::CPU_UNKNOWN) << commit::CPU_SHIFT
            | (key & !(commit::FLAGS as u32)) as u64;
        begin(slot, word);
        slot.words[0].store(clock(), Relaxed);
        let (first, rest) = words.split_at(words.len().min(2));
        fill(&slot.words[1..], first);
        for (i, words) in (index + 1..).zip(rest.chunks(3)) {
            let slot = self.slot(i);
            let word = commit::tag(i) << commit::TAG_SHIFT | commit::CONTINUATION;
            begin(slot, word);
            fill(&slot.words, words);
            slot.commit.store(word | commit::COMMITTED, Release); // SYNC: committed
        }
        slot.commit.store(word | commit::COMMITTED, Release); // SYNC: committed
    }

    /// Counts one event that found no room.
    ///
    /// A signal handler may run between any two steps, and may lose events or tell of losses itself.
    /// The beginning is lowered before and after the count, so that whoever sees the count sees a
    /// beginning that is early enough.
    fn count_loss(&self, now: u64) {
        let control = self.control;
        control.lost.fetch_add(1, Relaxed);
        control.loss_begin_tsc.fetch_min(now, Relaxed);
        control.lost_pending.fetch_add(1, Relaxed);
        control.loss_begin_tsc.fetch_min(now, Relaxed);
    }

    /// Writes the loss event, if there is a loss that is not told.
    fn tell_loss(&self, cpu: u64, clock: impl Fn() -> u64) {
        let control = self.control;
        if control.lost_pending.load(Relaxed) == 0 {
            return;
        }
        // The beginning first: a handler that loses an event in between leaves its own beginning
        // behind, too early for the next loss but not missing.
        let begin = control.loss_begin_tsc.swap(u64::MAX, Relaxed);
        let count = control.lost_pending.swap(0, Relaxed);
        if count > 0 {
            self.put(LOSS_KEY, cpu, &[begin.min(clock()), count], clock);
        }
    }
}

/// Step 3. The fence keeps the contents behind the mark, for a reader of overwrite mode.
fn begin(slot: &Slot, word: u64) {
    slot.commit.store(word, Relaxed);
    fence(Release); // SYNC: busy
}

/// Fills words of a slot, the ones that are not used with zero.
fn fill(to: &[AtomicU64], from: &[u64]) {
    for (i, word) in to.iter().enumerate() {
        word.store(from.get(i).copied().unwrap_or(0), Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::reader::{Reader, Uncommitted};
    use crate::test_ring::{Event, SLOTS, TestRing, drain};

    const KEY: u32 = 0x1000;
    /// Slots that discard mode fills.
    const CAPACITY: u64 = SLOTS - MARGIN_SLOTS as u64;

    fn event(key: u32, tsc: u64, words: &[u64]) -> Event {
        Event { key, tsc, words: words.to_vec() }
    }

    #[test]
    fn events_of_every_length_come_back() {
        let test = TestRing::new(Mode::Discard);
        let words: Vec<u64> = (1..=MAX_WORDS as u64).collect();
        let mut reader = test.reader();
        for n in 0..=MAX_WORDS {
            assert_eq!(test.write(KEY, &words[..n]), Written::Whole);
            let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
            let slots = 1 + n.saturating_sub(2).div_ceil(3);
            let mut padded = words[..n].to_vec();
            padded.resize(2 + 3 * (slots - 1), 0);
            assert_eq!((drained.slots, drained.skipped), (slots as u64, 0));
            assert_eq!(events, [event(KEY, n as u64 + 1, &padded)]);
        }
    }

    #[test]
    fn words_beyond_the_maximum_are_dropped() {
        let test = TestRing::new(Mode::Discard);
        test.write(KEY, &[1; MAX_WORDS + 1]);
        let (drained, _) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
        assert_eq!(drained.slots, MAX_EVENT_SLOTS as u64);
    }

    #[test]
    fn laps_keep_order_and_indices() {
        let test = TestRing::new(Mode::Discard);
        let mut reader = test.reader();
        let mut next = SLOTS;
        for i in 0..SLOTS {
            // Two slots, and then three: events lie across the end of the ring.
            let words = [i; 6];
            test.write(KEY, &words[..if i % 2 == 0 { 5 } else { 6 }]);
            if i % 100 == 99 {
                let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
                assert_eq!((drained.first_index, drained.slots), (next, 250));
                assert!(events.iter().map(|event| event.words[0]).eq(i - 99..=i));
                next += 250;
            }
        }
        assert!(next > 3 * SLOTS);
    }

    #[test]
    fn loss_is_told_before_the_first_event_that_fits() {
        let test = TestRing::new(Mode::Discard);
        let mut reader = test.reader();
        for _ in 0..CAPACITY {
            assert_eq!(test.write(KEY, &[]), Written::Whole);
        }
        for _ in 0..3 {
            assert_eq!(test.write(KEY, &[]), Written::Lost);
        }
        let (drained, _) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
        assert_eq!(drained.slots, CAPACITY);
        test.write(KEY, &[7]);
        test.write(KEY, &[8]);
        let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
        // The clock was read for each event: CAPACITY + 1 is the first that was lost.
        let told = &events[0];
        assert_eq!((told.key, &told.words[..]), (LOSS_KEY, &[CAPACITY + 1, 3][..]));
        let kept: Vec<_> = events[1..].iter().map(|event| event.words[0]).collect();
        assert_eq!(kept, [7, 8]);
        assert!(told.tsc < events[1].tsc);
        assert_eq!(test.ring().control.lost.load(Relaxed), 3);
    }

    #[test]
    fn every_loss_is_told_once() {
        let test = TestRing::new(Mode::Discard);
        let mut reader = test.reader();
        let (mut told, mut whole) = (0, 0);
        for _ in 0..3 {
            for _ in 0..CAPACITY + 5 {
                whole += u64::from(test.write(KEY, &[]) == Written::Whole);
            }
            let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
            told += events.iter().filter(|e| e.key == LOSS_KEY).map(|e| e.words[1]).sum::<u64>();
        }
        let control = test.ring().control;
        assert_eq!(told + control.lost_pending.load(Relaxed), control.lost.load(Relaxed));
        assert_eq!(whole + control.lost.load(Relaxed), 3 * (CAPACITY + 5));
    }

    /// The clock is read between the reservation and the commit: a clock that writes is a signal
    /// handler that strikes there, to any depth.
    #[test]
    fn handler_between_reservation_and_commit() {
        fn strike(test: &TestRing, depth: u64) -> u64 {
            if depth > 0 {
                test.ring().write(KEY, 0, &[depth; 6], || strike(test, depth - 1));
            }
            test.tick()
        }
        let test = TestRing::new(Mode::Discard);
        strike(&test, 10);
        let (drained, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
        assert_eq!(drained.slots, 30);
        // Reserved from the outermost to the innermost, timed the other way.
        let order: Vec<_> = events.iter().map(|event| (event.words[0], event.tsc)).collect();
        assert!(order.into_iter().eq((1..=10).rev().map(|depth| (depth, depth))));
    }

    #[test]
    fn nested_handlers_at_the_limit_stay_within_the_margin() {
        let test = TestRing::new(Mode::Discard);
        let ring = test.ring();
        for _ in 0..CAPACITY - 1 {
            test.write(KEY, &[]);
        }
        // 64 handlers have found room and then been interrupted, each by the next.
        assert!(ring.has_room());
        for _ in 0..64 {
            ring.put(KEY, 0, &[9; MAX_WORDS], || 0);
        }
        let used = ring.control.head.load(Relaxed) - ring.control.tail.load(Relaxed);
        assert!(used <= SLOTS, "{used} slots overrun the reader");
        assert_eq!(test.write(KEY, &[]), Written::Lost);
    }

    #[test]
    fn tail_beyond_the_head_is_not_believed() {
        let test = TestRing::new(Mode::Discard);
        test.ring().control.tail.store(u64::MAX, Relaxed);
        let written = (0..2 * SLOTS).filter(|_| test.write(KEY, &[]) == Written::Whole).count();
        assert!(written > 0);
        assert!(
            test.ring().control.limit.load(Relaxed)
                <= test.ring().control.head.load(Relaxed) + SLOTS
        );
    }

    #[test]
    fn overwriting_keeps_the_newest() {
        let test = TestRing::new(Mode::Overwrite);
        for i in 0..3 * SLOTS {
            assert_eq!(test.write(KEY, &[i]), Written::Whole);
        }
        let ring = test.ring();
        let (drained, events) = drain(&mut Reader::newest(&ring), &ring, Uncommitted::Skip);
        assert_eq!((drained.slots, drained.skipped), (SLOTS, 0));
        assert!(events.iter().map(|event| event.words[0]).eq(2 * SLOTS..3 * SLOTS));
    }

    #[test]
    fn a_new_owner_starts_without_a_loss() {
        let test = TestRing::new(Mode::Discard);
        for _ in 0..CAPACITY + 1 {
            test.write(KEY, &[]);
        }
        let mut reader = test.reader();
        drain(&mut reader, &test.ring(), Uncommitted::Wait);
        test.ring().prepare(Mode::Discard);
        test.write(KEY, &[]);
        let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
        assert!(events.iter().all(|event| event.key == KEY));
    }

    #[test]
    fn reader_and_writer_at_once() {
        const EVENTS: u64 = if cfg!(miri) { 5_000 } else { 300_000 };
        let test = TestRing::new(Mode::Discard);
        let (ring, mut reader) = (test.ring(), test.reader());
        let (mut read, mut told, mut last) = (0, 0, 0);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for i in 0..EVENTS {
                    let words = [i; 9];
                    ring.write(KEY, 0, &words[..i as usize % 10], || i + 1);
                }
            });
            loop {
                // Asked before the drain: what was written before the end is then there to be read.
                let ended = writer.is_finished();
                let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
                assert_eq!((drained.skipped, drained.more), (0, false));
                for event in events {
                    if event.key == LOSS_KEY {
                        assert!(last < event.words[0] && event.words[0] <= event.tsc);
                        told += event.words[1];
                        continue;
                    }
                    let (i, n) = (event.tsc - 1, (event.tsc - 1) as usize % 10);
                    assert!(last < event.tsc, "time goes backwards");
                    assert!(event.words.iter().take(n).all(|&word| word == i), "torn: {event:?}");
                    last = event.tsc;
                    read += 1;
                }
                if ended && drained.slots == 0 {
                    break;
                }
            }
        });
        let pending = test.ring().control.lost_pending.load(Relaxed);
        assert_eq!(read + told + pending, EVENTS);
    }
}
