//! The reading end of a per-thread ring: copies whole committed events, believes nothing.
//!
//! The reader knows its own position and the number of slots; both come from the agent, not from the
//! process. Of `head` it takes at most one ring's length beyond its position. A slot counts only if its
//! tag is the one of the index that is read, so old contents and half-written ones are told apart
//! slot by slot, and wrong ones cost only themselves.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::fence;

use crate::layout::{MAX_EVENT_SLOTS, Slot, commit};
use crate::ring::Ring;

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

    /// Appends committed events to `out`, whole ones in the order of their reservation, 32 bytes a
    /// slot, and stops after about `budget` slots. Tells the writer what may be reused: writes
    /// `tail` of the control page.
    ///
    /// One call copies one run without holes. Call again while `more` is set.
    pub fn drain(
        &mut self,
        ring: &Ring<'_>,
        uncommitted: Uncommitted,
        budget: u64,
        out: &mut Vec<u8>,
    ) -> Drained {
        let head = ring.control.head.load(Acquire);
        let end = head.clamp(self.tail, self.tail.saturating_add(ring.len()));
        let mut drained = Drained { first_index: self.tail, ..Drained::default() };
        while self.tail < end {
            if drained.slots >= budget {
                drained.more = true;
                break;
            }
            match copy_event(ring, self.tail, end, out) {
                Ok(slots) => {
                    drained.slots += slots;
                    self.tail += slots;
                }
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

/// Appends the event at `index` to `out`, if it is whole and ends at `end` or before.
fn copy_event(ring: &Ring<'_>, index: u64, end: u64, out: &mut Vec<u8>) -> Result<u64, Absent> {
    let start = out.len();
    let first = copy_slot(ring.slot(index), index, out)?;
    let slots = 1 + commit::continuations(first) as u64;
    let whole = first & commit::CONTINUATION == 0
        && slots <= MAX_EVENT_SLOTS as u64
        && slots <= end - index
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
    for word in [word].iter().chain(&words) {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    Ok(word)
}
