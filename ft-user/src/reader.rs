//! The reading end of a per-thread ring: copies whole committed events, believes nothing.
//!
//! The reader knows its own position and the number of slots; both come from the agent, not from the
//! process. Of `head` it takes at most one ring's length beyond its position. A slot counts only if its
//! tag is the one of the index that is read, so old contents and half-written ones are told apart
//! slot by slot, and wrong ones cost only themselves.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::fence;
use crate::layout::{LOSS_KEY, MARGIN_SLOTS, MAX_EVENT_SLOTS, Slot, commit};
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
    /// Events that these were of, as far as can be told: at least so many.
    pub lost: u64,
    /// Slots that hold nothing, by the word of their writer ([`commit::PASSED`]).
    pub passed: u64,
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
    /// There is none: the writer has passed over so many slots.
    Passed(u64),
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
        let drained = self.drain_below(ring, u64::MAX, uncommitted, budget, out);
        self.consume(ring);
        drained
    }

    /// Tells the writer that everything below the position may be reused.
    pub fn consume(&self, ring: &Ring<'_>) {
        ring.control.tail.store(self.tail, Release); // SYNC: consumed
    }

    /// The same as [`Reader::drain`], but looks at no slot from index `end` on: what lies there may not be in memory yet. Stops in front
    /// of an event that reaches beyond `end`. The writer learns nothing of it before [`Reader::consume`].
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
            let spent = drained.slots + drained.skipped + drained.passed;
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
                Err(Absent::Passed(slots)) => {
                    self.tail += slots;
                    drained.passed += slots;
                    drained.first_index = self.tail;
                }
                Err(_) => {
                    let slots = slots_of_one(ring, self.tail..end);
                    drained.lost += count_of_one(ring, self.tail);
                    self.tail += slots;
                    drained.skipped += slots;
                    drained.first_index = self.tail;
                }
            }
        }
        drained
    }

    /// How many slots at its position are reserved and not committed, if their thread has committed something behind them; looks at no
    /// slot from index `end` on. Such writes were interrupted: they may go on, or were left (`siglongjmp`).
    ///
    /// Looks at as many slots as a thread can have interrupted writes in; more count as if something were committed behind them.
    pub fn unfinished(&self, ring: &Ring<'_>, end: u64) -> Option<u64> {
        let head = ring.control.head.load(Acquire).min(end);
        let most = self.tail.saturating_add(MARGIN_SLOTS.into());
        let is_first = |index: u64| {
            let word = ring.slot(index).commit.load(Relaxed);
            let flags = word & commit::FLAGS & !commit::PASSED;
            word >> commit::TAG_SHIFT == commit::tag(index) && flags == commit::COMMITTED
        };
        match (self.tail..head.min(most)).find(|&index| is_first(index)) {
            Some(index) => Some(index - self.tail).filter(|&slots| slots > 0),
            None => (head > most).then_some(MARGIN_SLOTS.into()),
        }
    }

    /// Passes over so many slots, of [`Reader::unfinished`] writes of a thread that lives; returns how many events these are, as far as
    /// can be told: at least so many. The writer keeps these slots out of use for some laps, in case that the writes go on.
    pub fn pass_unfinished(&mut self, ring: &Ring<'_>, slots: u64) -> u64 {
        let (end, mut events) = (self.tail.saturating_add(slots), 0);
        while self.tail < end {
            events += count_of_one(ring, self.tail);
            self.tail += slots_of_one(ring, self.tail..end);
        }
        // Before the tail: whoever finds room knows that it must look.
        ring.control.passed_at.store(self.tail, Relaxed);
        self.consume(ring);
        events
    }
}

/// Appends the events at these indices to `out` as far as each is committed and has one slot; returns how
/// many. Most events are so, and one comparison tells it: the reader's speed is that of this loop.
fn copy_short(ring: &Ring<'_>, indices: Range<u64>, out: &mut Vec<u8>) -> u64 {
    const JUDGED: u64 = commit::TAG_MASK << commit::TAG_SHIFT
        | commit::CONT_MASK << commit::CONT_SHIFT
        | commit::CONTINUATION
        | commit::PASSED
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
    if first & commit::PASSED != 0 {
        let [.., behind] = *out[start..].as_chunks::<8>().0 else { return Err(Absent::Corrupt) };
        out.truncate(start);
        return Err(Absent::Passed(u64::from_ne_bytes(behind).min(head - index - 1) + 1));
    }
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

/// Slots from the first of these indices on that are of one event, which is not there: up to where the next one begins.
pub(crate) fn slots_of_one(ring: &Ring<'_>, indices: Range<u64>) -> u64 {
    let begins = |index: u64| {
        let word = ring.slot(index).commit.load(Relaxed);
        let (tag, flags) = (word >> commit::TAG_SHIFT, word & commit::FLAGS & !commit::COMMITTED);
        (tag == commit::tag(index) && flags == 0)
            .then(|| 1 + u64::from(commit::continuations(word)))
    };
    // One that was interrupted before it marked its first slot is of unknown length.
    let most = u64::from(MAX_EVENT_SLOTS);
    let most = begins(indices.start).unwrap_or(most).min(most);
    let end = indices.end.min(indices.start.saturating_add(most));
    let next = (indices.start + 1..end).find(|&index| begins(index).is_some());
    next.unwrap_or(end) - indices.start
}

/// For how many events of the program the one at this index counts, which is not there: none if it was to tell of losses, which are told
/// all the same.
fn count_of_one(ring: &Ring<'_>, index: u64) -> u64 {
    let word = ring.slot(index).commit.load(Relaxed);
    u64::from(word >> commit::TAG_SHIFT != commit::tag(index) || commit::key(word) != LOSS_KEY)
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

// The path, because a loom model includes this file under another name.
#[cfg(all(test, not(loom)))]
#[path = "reader/tests.rs"]
mod tests;
