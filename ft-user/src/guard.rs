//! What keeps a thread from overwriting a write of its own that it has not finished.
//!
//! A signal handler interrupts a write and writes itself. It may come back after a whole lap, and the interrupted write then goes on
//! in its slot, which by now holds a later event: a reader that looks at this moment would take words of two events for one. So no
//! write reuses the slot of an unfinished one:
//!
//! - In overwrite mode always. The limit ends a part of a lap ahead, and there the writer looks at the commit words of the next part.
//! - In discard mode the reader stops at an unfinished write, and nothing needs to be looked at, unless it has passed over one, or may
//!   have when it began, or a fork has cut one in two ([`RingControl::passed_at`](crate::layout::RingControl)).
//!
//! A slot that must not be reused is passed over: the slots before it are marked [`commit::PASSED`], and the last of them says how many
//! slots follow that are not to be read. The write may also have been left (`siglongjmp`), which nobody can tell from one that goes on
//! late. So a slot is kept for [`MAX_LAPS`], and then used again. In the ring of a forked child all slots are kept from the first write on
//! that the fork has cut in two ([`crate::unfinished`]).
//!
//! Only a write that has marked its slot busy matters in overwrite mode. One that was interrupted before does that first when it goes
//! on, and a reader sees the mark.

use core::ops::Range;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::layout::{MARGIN_SLOTS, MAX_EVENT_SLOTS, commit};
use crate::ring::{Ring, begin};

/// Laps for which the slot of an unfinished write is not used again.
///
/// Limit: a write that was interrupted for longer and goes on then can damage one later event, which may look whole
/// while it does so: see *What is not marked*.
/// Shown by: `the_slot_of_a_write_that_was_left_is_used_again_in_the_end`,
/// `overwriting_leaves_out_the_slot_of_a_write_that_is_not_finished`.
pub(crate) const MAX_LAPS: u64 = 8;

/// Slots that are looked at ahead at once, at most.
const STEP: u64 = 4096;

const MARGIN: u64 = MARGIN_SLOTS as u64;

impl Ring<'_> {
    /// An index up to which this thread may write, `end` at most. Passes over slots of unfinished writes that are next.
    ///
    /// Only the thread that owns the ring may call this, with or without signal handlers in between.
    pub(crate) fn clear_until(&self, end: u64) -> u64 {
        let control = self.control;
        if !self.is_guarded() {
            return end;
        }
        // What is passed over in one call: less than a lap, or a ring full of unfinished writes would be passed over for ever.
        let last = control.head.load(Relaxed).saturating_add(self.len());
        loop {
            let head = control.head.load(Relaxed);
            let near = head.saturating_add(MARGIN + 2 * MAX_EVENT_SLOTS as u64);
            let known = control.clear_until.load(Relaxed);
            if known > near {
                return known.min(end);
            }
            let until = head.saturating_add(STEP.min(self.len() / 2) + MARGIN).min(end);
            let clear = match self.first_unfinished(head..until) {
                Some(next) if next.start <= near && next.end < end && head < last => {
                    self.pass_over(head, next);
                    continue;
                }
                Some(next) if head < last => next.start,
                _ => until,
            };
            control.clear_until.store(clear, Relaxed);
            return clear;
        }
    }

    /// Whether a write could come to the slot of an unfinished one.
    fn is_guarded(&self) -> bool {
        let passed_at = self.control.passed_at.load(Relaxed);
        let kept = passed_at.saturating_add((MAX_LAPS + 1) * self.len());
        self.overwrites() || (passed_at > 0 && self.control.head.load(Relaxed) < kept)
    }

    /// The first slots in a row among these indices in which a write of the lap before, or of an earlier one, is not finished.
    fn first_unfinished(&self, indices: Range<u64>) -> Option<Range<u64>> {
        if self.overwrites() && self.are_committed(&indices) {
            return None;
        }
        let end = indices.end.saturating_add(MARGIN);
        let start = indices.into_iter().find(|&index| self.is_unfinished(index))?;
        let end = (start + 1..end).find(|&index| !self.is_unfinished(index)).unwrap_or(end);
        Some(start..end)
    }

    /// Whether a write is committed in each of the slots of these indices, fewer than a lap. The common case, and two instructions a slot.
    fn are_committed(&self, indices: &Range<u64>) -> bool {
        let slots = self.slots();
        let first = indices.start as usize & (slots.len() - 1);
        let count = (indices.end - indices.start) as usize;
        let (behind, before) = slots.split_at(first);
        let to_the_end = before.len().min(count);
        let both = [&before[..to_the_end], &behind[..(count - to_the_end).min(behind.len())]];
        let flags = both.into_iter().flatten();
        flags.fold(commit::COMMITTED, |all, slot| all & slot.commit.load(Relaxed)) != 0
    }

    /// Whether a write is not finished in the slot that `index` uses next.
    fn is_unfinished(&self, index: u64) -> bool {
        let word = self.slot(index).commit.load(Relaxed);
        if word & commit::COMMITTED != 0
            && (self.overwrites() || word >> commit::TAG_SHIFT == commit::tag(index - self.len()))
        {
            return false;
        }
        // Whoever owned the ring before has ended.
        let first = self.control.claimed_at.load(Relaxed).max(self.len());
        index >= first + self.len() && commit::age(word, index) <= MAX_LAPS * self.len()
    }

    /// Reserves what is left before the slots of an unfinished write, and these. Does nothing if a handler has written meanwhile.
    fn pass_over(&self, head: u64, unfinished: Range<u64>) {
        if self.control.head.compare_exchange(head, unfinished.end, Relaxed, Relaxed).is_err() {
            return;
        }
        for index in head..unfinished.start {
            let slot = self.slot(index);
            let word = commit::tag(index) << commit::TAG_SHIFT | commit::PASSED;
            begin(slot, word);
            // The first says so of all, for a thread that leaves this here; of each a reader that begins behind it wants to know.
            let behind = match index {
                _ if index == head => unfinished.end - head - 1,
                _ if index + 1 == unfinished.start => unfinished.end - unfinished.start,
                _ => 0,
            };
            slot.words[2].store(behind, Relaxed);
            slot.commit.store(word | commit::COMMITTED, Release); // SYNC: committed
        }
    }
}
