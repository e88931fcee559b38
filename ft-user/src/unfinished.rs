//! Events of a ring that are reserved and not yet committed, as a forked child finds them when a signal handler forks that has
//! interrupted one.
//!
//! The child goes on behind them: what the handler returns to writes the rest where no reader looks, so each is one event that the
//! child has lost. The parent's is written to its end in the parent. In the child's ring its slots are kept out of use, as those of
//! any write that may go on late ([`crate::guard`]).

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{LOSS_KEY, MARGIN_SLOTS, commit};
use crate::ring::Ring;

impl Ring<'_> {
    /// How many there are, and the index of the oldest, or the next one. The calling thread owns the ring. Those that the reader has
    /// passed over are not counted: it has told of them, also where their thread has left them (`siglongjmp`).
    ///
    /// An event that was interrupted before it has marked its first slot is counted as one with another one right behind it of
    /// which the same is true.
    pub(crate) fn unfinished(&self) -> (u32, u64) {
        let control = self.control;
        let head = control.head.load(Relaxed);
        let first = head.saturating_sub(MARGIN_SLOTS.into()).max(control.claimed_at.load(Relaxed));
        let (mut count, mut oldest, mut index) = (0, head, first.max(self.len()));
        let consumed = control.tail.load(Relaxed);
        let mut is_unmarked = false;
        while index < head {
            let word = self.slot(index).commit.load(Relaxed);
            let is_marked = word >> commit::TAG_SHIFT == commit::tag(index);
            let is_first = is_marked && word & commit::CONTINUATION == 0;
            if is_first && word & commit::COMMITTED != 0 {
                is_unmarked = false;
                index += 1 + u64::from(commit::continuations(word));
            } else if is_first {
                // A loss that one was to tell is the parent's.
                count += u32::from(index >= consumed && commit::key(word) != LOSS_KEY);
                is_unmarked = false;
                oldest = oldest.min(index);
                index += 1 + u64::from(commit::continuations(word));
            } else if is_marked {
                // Behind the first slot of an event that began before the oldest that is looked at.
                index += 1;
            } else {
                count += u32::from(!is_unmarked && index >= consumed);
                oldest = oldest.min(index);
                is_unmarked = true;
                index += 1;
            }
        }
        (count, oldest)
    }

    /// In a forked child, whose ring is prepared to go on behind these indices: writes may go on late in their slots.
    pub(crate) fn keep_out_of(&self, indices: Range<u64>) {
        let control = self.control;
        if indices.is_empty() {
            return;
        }
        // As a write marks its slot that is not finished.
        for index in indices.clone() {
            self.slot(index).commit.store(commit::tag(index) << commit::TAG_SHIFT, Relaxed);
        }
        control.claimed_at.store(indices.start, Relaxed);
        control.passed_at.store(indices.end, Relaxed);
        control.clear_until.store(indices.start, Relaxed);
        control.limit.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Mode;
    use crate::reader::Uncommitted;
    use crate::ring::Written;
    use crate::test_ring::{SLOTS, TestRing, drain};

    /// A ring with events of so many words, the ones that are `None` reserved only.
    fn check(events: &[(usize, bool)], expected: u32) {
        let memory = TestRing::new(Mode::Discard);
        let ring = memory.ring();
        for &(words, is_finished) in events {
            let before = ring.control.head.load(Relaxed);
            ring.put(0x1000, 0, &vec![7; words], || 1);
            if !is_finished {
                let first = &ring.slot(before).commit;
                first.store(first.load(Relaxed) & !commit::COMMITTED, Relaxed);
            }
        }
        assert_eq!(ring.unfinished().0, expected, "{events:?}");
    }

    #[test]
    fn those_that_are_marked_and_not_committed_are_counted() {
        check(&[], 0);
        check(&[(2, true), (8, true), (0, true)], 0);
        check(&[(2, false)], 1);
        check(&[(8, false)], 1);
        check(&[(2, true), (8, false), (5, true), (2, true)], 1);
        check(&[(8, false), (5, false), (2, true), (2, false)], 3);
        check(&vec![(8, true); 400], 0);
    }

    /// The child of a handler's fork writes on, for laps, before the handler returns to what it has interrupted.
    #[test]
    fn no_event_of_the_child_uses_the_slots_of_what_was_interrupted() {
        for (mode, lap) in [(Mode::Discard, 1), (Mode::Discard, 70_000), (Mode::Overwrite, 1)] {
            let (parent, child) = (TestRing::new(mode), TestRing::new(mode));
            let (parent, ring) = (parent.ring(), child.ring());
            for place in [&parent.control.head, &parent.control.tail, &parent.control.claimed_at] {
                place.store(lap * SLOTS, Relaxed);
            }
            parent.put(0x1000, 0, &[1; 5], || 1);
            // One of two slots, and one of which nothing is marked.
            let cut = parent.control.head.load(Relaxed);
            parent.put(0x1000, 0, &[1; 5], || 1);
            parent.slot(cut).commit.fetch_and(!commit::COMMITTED, Relaxed);
            parent.control.head.fetch_add(1, Relaxed);
            let head = parent.control.head.load(Relaxed);
            let (count, oldest) = parent.unfinished();
            assert_eq!((count, oldest, head), (2, cut, cut + 3));

            ring.control.tail.store(head, Relaxed);
            ring.control.head.store(head, Relaxed);
            ring.prepare(mode);
            ring.keep_out_of(oldest..head);
            assert_eq!(ring.unfinished().1, cut, "for a child of the child");
            let mut reader = child.reader();
            let mut read = 0;
            for n in 0..3 * SLOTS {
                assert_eq!(child.write(0x1000, &[n]), Written::Whole);
                let mut is_read = mode == Mode::Overwrite || n % 512 < 511;
                while !is_read {
                    let (drained, events) = drain(&mut reader, &ring, Uncommitted::Wait);
                    read += events.len() as u64;
                    is_read = !drained.more;
                }
                for index in oldest..head {
                    let word = ring.slot(index).commit.load(Relaxed);
                    assert_eq!(word, commit::tag(index) << commit::TAG_SHIFT, "{n}");
                }
            }
            assert!(mode == Mode::Overwrite || read == 3 * SLOTS, "{read}");
        }
    }

    /// The reader has told of it: it was left, or its thread is within a handler for long.
    #[test]
    fn one_that_the_reader_has_passed_over_is_not_counted_again() {
        for marked in [true, false] {
            let memory = TestRing::new(Mode::Discard);
            let (ring, mut reader) = (memory.ring(), memory.reader());
            let left = ring.control.head.fetch_add(1, Relaxed);
            if marked {
                let word = commit::tag(left) << commit::TAG_SHIFT;
                ring.slot(left).commit.store(word, Relaxed);
            }
            ring.put(0x1000, 0, &[1], || 1);
            assert_eq!(ring.unfinished(), (1, left));
            reader.pass_unfinished(&ring, 1);
            assert_eq!(ring.unfinished(), (0, left), "it may go on all the same");
        }
    }

    #[test]
    fn one_that_is_only_reserved_is_counted_once() {
        let memory = TestRing::new(Mode::Discard);
        let ring = memory.ring();
        ring.put(0x1000, 0, &[1], || 1);
        ring.control.head.fetch_add(3, Relaxed);
        assert_eq!(ring.unfinished().0, 1);
        ring.put(0x1000, 0, &[1; 5], || 1);
        assert_eq!(ring.unfinished().0, 1);
        ring.control.head.fetch_add(1, Relaxed);
        assert_eq!(ring.unfinished().0, 2);
        // One that was to tell of losses is none of the program's.
        let index = ring.control.head.fetch_add(1, Relaxed);
        let word = commit::tag(index) << commit::TAG_SHIFT | u64::from(LOSS_KEY);
        ring.slot(index).commit.store(word, Relaxed);
        assert_eq!(ring.unfinished().0, 2);
    }
}
