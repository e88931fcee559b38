//! The reading end of a per-thread ring: copies whole committed events, believes nothing.
//!
//! The reader knows its own position and the number of slots; both come from the agent, not from the
//! process. Of `head` it takes at most one ring's length beyond its position. A slot counts only if its
//! tag is the one of the index that is read, so old contents and half-written ones are told apart
//! slot by slot, and wrong ones cost only themselves.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::fence;
use crate::layout::{MAX_EVENT_SLOTS, Slot, commit};
use crate::ring::Ring;

/// What a slot takes in a copy: the commit word and three more.
const SLOT_BYTES: usize = size_of::<[u64; 4]>();

/// What to do about a slot that is reserved and not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncommitted {
    /// Its writer runs: stop there, and come back.
    Wait,
    /// Its writer is gone, or is overwriting it: leave it out, and count it.
    Skip,
}

/// What [`Reader::drain`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Index of the first slot that was copied.
    pub first_index: u64,
    /// Slots that were copied, in one run from `first_index` on.
    pub slots: u64,
    /// Slots that were left out before the run: not committed, overwritten, or corrupt.
    pub skipped: u64,
    /// There is more: the budget was spent, or the run ended at a slot to be left out.
    pub more: bool,
}

/// A position in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    tail: u64,
}

/// Why there is no event at an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// It may still come.
    Pending,
    /// It goes on where must not be looked.
    Beyond,
    /// It will not: a continuation without its first slot, a wrong count, or overwritten meanwhile.
    Corrupt,
}

impl Reader {
    /// Reads from index `tail` on.
    pub fn at(tail: u64) -> Reader {
        Reader { tail }
    }

    /// Reads the newest events, as many as the ring holds: a snapshot of a ring in overwrite mode,
    /// together with [`Uncommitted::Skip`].
    pub fn newest(ring: &Ring<'_>) -> Reader {
        Reader { tail: ring.control.head.load(Acquire).saturating_sub(ring.len()) }
    }

    /// Index of the next slot to read.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Passes over `slots` slots without looking at them.
    pub fn pass(&mut self, slots: u64) {
        self.tail = self.tail.saturating_add(slots);
    }

    /// Appends committed events to `out`, whole ones in the order of their reservation, 32 bytes a
    /// slot, and stops when about `budget` slots were copied or left out. Tells the writer what may be reused: writes
    /// `tail` of the control page.
    ///
    /// One call copies one run without holes. Call again while `more` is set, a bounded number of times:
    /// a process that writes nonsense can keep it set for ever.
    pub fn drain(
        &mut self,
        ring: &Ring<'_>,
        uncommitted: Uncommitted,
        budget: u64,
        out: &mut Vec<u8>,
    ) -> Drained {
        self.drain_below(ring, u64::MAX, uncommitted, budget, out)
    }

    /// The same, and looks at no slot from index `end` on: what lies there may not be in memory yet. Stops in front
    /// of an event that reaches beyond `end`.
    pub fn drain_below(
        &mut self,
        ring: &Ring<'_>,
        end: u64,
        uncommitted: Uncommitted,
        budget: u64,
        out: &mut Vec<u8>,
    ) -> Drained {
        let head = ring.control.head.load(Acquire);
        let head = head.clamp(self.tail, self.tail.saturating_add(ring.len()));
        let end = end.clamp(self.tail, head);
        let mut drained = Drained { first_index: self.tail, ..Drained::default() };
        while self.tail < end {
            let spent = drained.slots + drained.skipped;
            if spent >= budget {
                drained.more = true;
                break;
            }
            let affordable = end.min(self.tail.saturating_add(budget - spent));
            let short = copy_short(ring, self.tail..affordable, out);
            if short > 0 {
                drained.slots += short;
                self.tail += short;
                continue;
            }
            match copy_event(ring, self.tail, end, head, out) {
                Ok(slots) => {
                    drained.slots += slots;
                    self.tail += slots;
                }
                Err(Absent::Beyond) => break,
                Err(Absent::Pending) if uncommitted == Uncommitted::Wait => break,
                Err(_) if drained.slots > 0 => {
                    drained.more = true;
                    break;
                }
                Err(_) => {
                    self.tail += 1;
                    drained.skipped += 1;
                    drained.first_index = self.tail;
                }
            }
        }
        ring.control.tail.store(self.tail, Release); // SYNC: consumed
        drained
    }
}

/// Appends the events at these indices to `out` as far as each is committed and has one slot; returns how
/// many. Most events are so, and one comparison tells it: the reader's speed is that of this loop.
fn copy_short(ring: &Ring<'_>, indices: Range<u64>, out: &mut Vec<u8>) -> u64 {
    const JUDGED: u64 = commit::TAG_MASK << commit::TAG_SHIFT
        | commit::CONT_MASK << commit::CONT_SHIFT
        | commit::CONTINUATION
        | commit::COMMITTED;
    out.reserve((indices.end - indices.start) as usize * SLOT_BYTES);
    let places = out.spare_capacity_mut().as_chunks_mut::<SLOT_BYTES>().0;
    let mut copied = 0;
    for (index, place) in indices.zip(places) {
        let slot = ring.slot(index);
        let word = slot.commit.load(Acquire); // SYNC: committed
        if word & JUDGED != commit::tag(index) << commit::TAG_SHIFT | commit::COMMITTED {
            break;
        }
        let [a, b, c] = slot.words.each_ref().map(|word| word.load(Relaxed));
        fence(Acquire); // SYNC: busy
        if slot.commit.load(Relaxed) != word {
            break;
        }
        let words = [word, a, b, c].map(u64::to_ne_bytes);
        // SAFETY: the place has as many bytes, and bytes need no alignment.
        unsafe { place.as_mut_ptr().cast::<[[u8; 8]; 4]>().write(words) };
        copied += 1;
    }
    // SAFETY: so many slots were written behind the end.
    unsafe { out.set_len(out.len() + copied * SLOT_BYTES) };
    copied as u64
}

/// Appends the event at `index` to `out`, if it is whole and ends at `end` or before.
fn copy_event(
    ring: &Ring<'_>,
    index: u64,
    end: u64,
    head: u64,
    out: &mut Vec<u8>,
) -> Result<u64, Absent> {
    let start = out.len();
    let first = copy_slot(ring.slot(index), index, out)?;
    let slots = 1 + commit::continuations(first) as u64;
    let possible = first & commit::CONTINUATION == 0
        && slots <= MAX_EVENT_SLOTS as u64
        && slots <= head - index;
    if possible && slots > end - index {
        out.truncate(start);
        return Err(Absent::Beyond);
    }
    let whole = possible
        && (index + 1..index + slots).all(|i| {
            copy_slot(ring.slot(i), i, out).is_ok_and(|word| word & commit::CONTINUATION != 0)
        });
    if whole {
        return Ok(slots);
    }
    out.truncate(start);
    Err(Absent::Corrupt)
}

/// Appends one slot to `out` and returns its commit word.
fn copy_slot(slot: &Slot, index: u64, out: &mut Vec<u8>) -> Result<u64, Absent> {
    let word = slot.commit.load(Acquire); // SYNC: committed
    if word & commit::COMMITTED == 0 || word >> commit::TAG_SHIFT != commit::tag(index) {
        return Err(Absent::Pending);
    }
    let words = slot.words.each_ref().map(|word| word.load(Relaxed));
    fence(Acquire); // SYNC: busy
    if slot.commit.load(Relaxed) != word {
        return Err(Absent::Corrupt);
    }
    let [a, b, c] = words;
    out.extend_from_slice([word, a, b, c].map(u64::to_ne_bytes).as_flattened());
    Ok(word)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::{MARGIN_SLOTS, Mode};
    use crate::test_ring::{SLOTS, TestRing, drain, events};

    const KEY: u32 = 0x1000;

    /// A ring with three events of one, two and one slots, from index `SLOTS` on.
    fn three() -> TestRing {
        let test = TestRing::new(Mode::Discard);
        for words in [&[1][..], &[2, 2, 2], &[3]] {
            test.write(KEY, words);
        }
        test
    }

    /// Damages the ring, drains it, and compares: first word of each event, slots left out, more.
    fn check(uncommitted: Uncommitted, damage: impl Fn(&Ring<'_>), expected: (&[u64], u64, bool)) {
        let test = three();
        damage(&test.ring());
        let (drained, events) = drain(&mut test.reader(), &test.ring(), uncommitted);
        let words: Vec<u64> = events.iter().map(|event| event.words[0]).collect();
        assert_eq!((&words[..], drained.skipped, drained.more), expected);
    }

    fn damage(index: u64, change: impl Fn(u64) -> u64) -> impl Fn(&Ring<'_>) {
        move |ring| {
            let commit = &ring.slot(SLOTS + index).commit;
            commit.store(change(commit.load(Relaxed)), Relaxed);
        }
    }

    #[test]
    fn nothing_is_damaged() {
        check(Uncommitted::Wait, |_| (), (&[1, 2, 3], 0, false));
    }

    #[test]
    fn slot_that_is_being_written() {
        let busy = |index| damage(index, |word| word & !commit::COMMITTED);
        check(Uncommitted::Wait, busy(0), (&[], 0, false));
        check(Uncommitted::Wait, busy(1), (&[1], 0, false));
        check(Uncommitted::Skip, busy(0), (&[2, 3], 1, false));
        // The run ends before the hole; the next call leaves the hole out.
        check(Uncommitted::Skip, busy(1), (&[1], 0, true));
    }

    #[test]
    fn slot_of_another_lap() {
        let older = |index| damage(index, |word| word.wrapping_sub(1 << commit::TAG_SHIFT));
        check(Uncommitted::Wait, older(0), (&[], 0, false));
        check(Uncommitted::Skip, older(0), (&[2, 3], 1, false));
    }

    #[test]
    fn continuation_without_its_first_slot() {
        let orphan = damage(0, |word| word | commit::CONTINUATION);
        check(Uncommitted::Wait, orphan, (&[2, 3], 1, false));
    }

    #[test]
    fn event_with_a_slot_that_is_not_a_continuation() {
        check(Uncommitted::Wait, damage(2, |word| word & !commit::CONTINUATION), (&[1], 0, true));
    }

    #[test]
    fn count_of_continuations_is_bounded() {
        for count in [3, 12, 13, 15] {
            let long = damage(0, |word| word | count << commit::CONT_SHIFT);
            check(Uncommitted::Wait, long, (&[2, 3], 1, false));
        }
    }

    #[test]
    fn hole_is_left_out_by_the_next_call() {
        let test = three();
        damage(1, |word| word & !commit::COMMITTED)(&test.ring());
        let mut reader = test.reader();
        drain(&mut reader, &test.ring(), Uncommitted::Skip);
        let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Skip);
        assert_eq!((drained.first_index, drained.slots, drained.skipped), (SLOTS + 3, 1, 2));
        assert_eq!(events[0].words[0], 3);
    }

    #[test]
    fn head_is_not_believed() {
        for head in [0, SLOTS - 1, u64::MAX] {
            let test = three();
            test.ring().control.head.store(head, Relaxed);
            let mut reader = test.reader();
            let (drained, _) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
            let read = if head < SLOTS { 0 } else { 4 };
            assert_eq!((drained.slots, reader.tail()), (read, SLOTS + read), "head {head}");
        }
        let test = three();
        test.ring().control.head.store(u64::MAX, Relaxed);
        let mut reader = test.reader();
        while drain(&mut reader, &test.ring(), Uncommitted::Skip).0.more {}
        assert_eq!(reader.tail(), 2 * SLOTS + 4);
    }

    #[test]
    fn budget_ends_between_events() {
        let test = three();
        let (mut reader, mut bytes) = (test.reader(), Vec::new());
        let drained = reader.drain(&test.ring(), Uncommitted::Wait, 2, &mut bytes);
        assert_eq!((drained.slots, drained.more), (3, true));
        let drained = reader.drain(&test.ring(), Uncommitted::Wait, 2, &mut bytes);
        assert_eq!((drained.first_index, drained.slots, drained.more), (SLOTS + 3, 1, false));
        assert_eq!(events(&bytes).len(), 3);
    }

    #[test]
    fn slots_that_are_left_out_are_work() {
        let test = TestRing::new(Mode::Discard);
        test.ring().control.head.store(2 * SLOTS, Relaxed);
        let (mut reader, mut bytes) = (test.reader(), Vec::new());
        let drained = reader.drain(&test.ring(), Uncommitted::Skip, 100, &mut bytes);
        assert_eq!((drained.slots, drained.skipped, drained.more), (0, 100, true));
    }

    #[test]
    fn an_event_that_reaches_beyond_the_end_is_left_for_later() {
        let (test, mut bytes) = (three(), Vec::new());
        let (mut reader, ring) = (test.reader(), test.ring());
        let drained = reader.drain_below(&ring, SLOTS + 2, Uncommitted::Skip, u64::MAX, &mut bytes);
        assert_eq!((drained.slots, drained.skipped, drained.more), (1, 0, false));
        let drained = reader.drain_below(&ring, SLOTS + 3, Uncommitted::Skip, u64::MAX, &mut bytes);
        assert_eq!((drained.first_index, drained.slots, drained.skipped), (SLOTS + 1, 2, 0));
    }

    #[test]
    fn writer_may_go_on_after_a_drain() {
        let test = three();
        let mut reader = test.reader();
        drain(&mut reader, &test.ring(), Uncommitted::Wait);
        assert_eq!(test.ring().control.tail.load(Relaxed), reader.tail());
        for _ in 0..SLOTS - MARGIN_SLOTS as u64 {
            assert_eq!(test.write(KEY, &[]), crate::ring::Written::Whole);
        }
    }

    /// Whatever stands in a ring, the reader ends, and hands out whole events only.
    #[test]
    fn any_bytes_are_survived() {
        // A linear congruential generator: the same bytes each time (Knuth, MMIX).
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 11
        };
        for _ in 0..if cfg!(miri) { 1 } else { 50 } {
            let test = TestRing::new(Mode::Discard);
            let ring = test.ring();
            ring.control.head.store(SLOTS + next() % (2 * SLOTS), Relaxed);
            for i in 0..SLOTS {
                // Three in four slots are plausible: the right tag, committed or not.
                let tag = commit::tag(SLOTS + i) << commit::TAG_SHIFT;
                let noise = next() << 11 & !(commit::TAG_MASK << commit::TAG_SHIFT) | next() & 3;
                ring.slot(i)
                    .commit
                    .store(if next() % 4 > 0 { tag | noise } else { next() }, Relaxed);
            }
            let mut reader = test.reader();
            let mut total = 0;
            loop {
                let (drained, events) = drain(&mut reader, &ring, Uncommitted::Skip);
                let slots: usize = events.iter().map(|event| 1 + (event.words.len() - 2) / 3).sum();
                assert_eq!(slots as u64, drained.slots);
                total += drained.slots + drained.skipped;
                if !drained.more {
                    break;
                }
            }
            assert_eq!(total, reader.tail() - SLOTS);
        }
    }
}
