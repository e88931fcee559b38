//! Events of a ring that are reserved and not yet committed, as a forked child finds them when a signal handler forks that has
//! interrupted one.
//!
//! The child goes on behind them: what the handler returns to writes the rest where no reader looks, so each is one event that the
//! child has lost. The parent's is written to its end in the parent.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{MARGIN_SLOTS, commit};
use crate::ring::Ring;

impl Ring<'_> {
    /// How many there are. The calling thread owns the ring.
    ///
    /// An event that was interrupted before it has marked its first slot is counted as one with another one right behind it of
    /// which the same is true.
    pub(crate) fn unfinished(&self) -> u32 {
        let control = self.control;
        let head = control.head.load(Relaxed);
        let oldest = head.saturating_sub(MARGIN_SLOTS.into()).max(control.claimed_at.load(Relaxed));
        let (mut count, mut index) = (0, oldest.max(self.len()));
        let mut is_unmarked = false;
        while index < head {
            let word = self.slot(index).commit.load(Relaxed);
            let is_marked = word >> commit::TAG_SHIFT == commit::tag(index);
            let is_first = is_marked && word & commit::CONTINUATION == 0;
            if is_first && word & commit::COMMITTED != 0 {
                is_unmarked = false;
                index += 1 + u64::from(commit::continuations(word));
            } else if is_first {
                (count, is_unmarked) = (count + 1, false);
                index += 1 + u64::from(commit::continuations(word));
            } else if is_marked {
                // Behind the first slot of an event that began before the oldest that is looked at.
                index += 1;
            } else {
                count += u32::from(!is_unmarked);
                is_unmarked = true;
                index += 1;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Mode;
    use crate::test_ring::TestRing;

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
        assert_eq!(ring.unfinished(), expected, "{events:?}");
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

    #[test]
    fn one_that_is_only_reserved_is_counted_once() {
        let memory = TestRing::new(Mode::Discard);
        let ring = memory.ring();
        ring.put(0x1000, 0, &[1], || 1);
        ring.control.head.fetch_add(3, Relaxed);
        assert_eq!(ring.unfinished(), 1);
        ring.put(0x1000, 0, &[1; 5], || 1);
        assert_eq!(ring.unfinished(), 1);
        ring.control.head.fetch_add(1, Relaxed);
        assert_eq!(ring.unfinished(), 2);
    }
}
