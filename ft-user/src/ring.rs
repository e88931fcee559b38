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
//! loss event with the number of events lost and the time at which the loss began. If a handler
//! interrupts the accounting, that can be the beginning of an earlier loss. It is too late only where a second handler comes within
//! that, and tells of a loss that the first has counted and not dated. Before an event is lost, its
//! thread may wait for room ([`crate::wait`]).
//!
//! In [`Mode::Overwrite`] no event is lost. There the limit only has the writer look, once in a part of a lap, whether it would
//! overwrite a write that it has not finished (`guard`).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::{AtomicU64, fence};
use crate::layout::{
    LOSS_KEY, MARGIN_SLOTS, MAX_EVENT_SLOTS, MAX_RING_SLOTS, MIN_RING_SLOTS, Mode, PAGE,
    RingControl, Slot, commit,
};

/// Payload words of one event, at most.
///
/// Limit: as `MAX_STRING_BYTES` of `directory/mod.rs`.
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

    /// All slots, in the order of memory.
    pub(crate) fn slots(&self) -> &'a [Slot] {
        self.slots
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
        control.mode.store(mode as u32, Relaxed);
        let head = control.head.load(Relaxed);
        control.claimed_at.store(head, Relaxed);
        control.clear_until.store(head.saturating_add(self.len()), Relaxed);
        control.limit.store(self.limit(), Relaxed);
    }

    /// The limit that follows from what the reader has consumed, and from what this thread may not have finished.
    fn limit(&self) -> u64 {
        let end = if self.overwrites() { u64::MAX } else { self.consumed_end() };
        self.clear_until(end).saturating_sub(MARGIN_SLOTS.into())
    }

    /// Whether the oldest events give way to new ones.
    pub(crate) fn overwrites(&self) -> bool {
        self.control.mode.load(Relaxed) == Mode::Overwrite as u32
    }

    /// The index where the oldest slot that is not consumed is used again.
    fn consumed_end(&self) -> u64 {
        // SYNC: consumed
        let tail = self.control.tail.load(Acquire);
        // A tail beyond the head is no reader's work; believing it would let the writer run forever.
        tail.min(self.control.head.load(Relaxed)).saturating_add(self.len())
    }

    /// Whether an event fits, with the newest word of the reader.
    fn has_room(&self) -> bool {
        self.has_room_behind(0)
    }

    /// Has `arch` find no room for the next event, so that it comes here, too. Not in overwrite mode.
    pub(crate) fn decline(&self) {
        self.control.limit.store(0, Relaxed);
    }

    /// Whether an event fits behind one of so many slots.
    pub(crate) fn has_room_behind(&self, slots: u64) -> bool {
        let fits = |limit| self.control.head.load(Relaxed).saturating_add(slots) < limit;
        if fits(self.control.limit.load(Relaxed)) {
            return true;
        }
        let limit = self.limit();
        self.control.limit.store(limit, Relaxed);
        fits(limit)
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

    /// [`Ring::write`] of an event with `front` before it, of the same time: so what signal handlers write in between is not taken for
    /// it. Where both have no room, `front` is left out.
    pub(crate) fn write_behind(
        &self,
        front: (u32, &[u64]),
        key: u32,
        cpu: u64,
        words: &[u64],
        clock: impl Fn() -> u64,
    ) -> Written {
        let now = clock();
        let loss = u64::from(self.control.lost_pending.load(Relaxed) > 0);
        if self.has_room_behind(loss + slots(front.1)) {
            self.write(front.0, cpu, front.1, || now);
        }
        self.write(key, cpu, words, || now)
    }

    /// Steps 2 to 5. There is room.
    pub(crate) fn put(&self, key: u32, cpu: u64, words: &[u64], clock: impl Fn() -> u64) {
        let words = &words[..words.len().min(MAX_WORDS)];
        let continuations = slots(words) - 1;
        let (index, slot, word) = self.start(continuations, cpu, key, &clock);
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

    /// Steps 2 to 4: the index, the first slot, and its commit word, which is not committed.
    fn start(
        &self,
        continuations: u64,
        cpu: u64,
        key: u32,
        clock: impl Fn() -> u64,
    ) -> (u64, &'a Slot, u64) {
        let index = self.control.head.fetch_add(1 + continuations, Relaxed);
        let slot = self.slot(index);
        let word = commit::tag(index) << commit::TAG_SHIFT
            | continuations << commit::CONT_SHIFT
            | (cpu & commit::CPU_UNKNOWN) << commit::CPU_SHIFT
            | (key & !(commit::FLAGS as u32)) as u64;
        begin(slot, word);
        slot.words[0].store(clock(), Relaxed);
        (index, slot, word)
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

    /// Writes the loss event, if there is a loss that is not recorded.
    fn tell_loss(&self, cpu: u64, clock: impl Fn() -> u64) {
        let control = self.control;
        if control.lost_pending.load(Relaxed) == 0 {
            return;
        }
        // The beginning first: a handler that loses an event in between leaves its own beginning
        // behind, too early for the next loss but not missing.
        let begin = control.loss_begin_tsc.swap(u64::MAX, Relaxed);
        let count = control.lost_pending.swap(0, Relaxed);
        if count == 0 {
            return;
        }
        let (_, slot, word) = self.start(0, cpu, LOSS_KEY, &clock);
        // Of a child that a handler has forked since then, the loss is the parent's: the child's ring has none. Once the slot is reserved, it is
        // none that the child's reader looks at.
        let count = count.min(control.lost.load(Relaxed));
        fill(&slot.words[1..], &[begin.min(clock()), count]);
        slot.commit.store(word | commit::COMMITTED, Release); // SYNC: committed
    }
}

/// Slots of an event with these words.
pub(crate) fn slots(words: &[u64]) -> u64 {
    1 + words.len().saturating_sub(2).div_ceil(3) as u64
}

/// Step 3. The fence keeps the contents behind the mark, for a reader of overwrite mode.
pub(crate) fn begin(slot: &Slot, word: u64) {
    slot.commit.store(word, Relaxed);
    fence(Release); // SYNC: busy
}

/// Fills words of a slot, the ones that are not used with zero.
fn fill(to: &[AtomicU64], from: &[u64]) {
    for (i, word) in to.iter().enumerate() {
        word.store(from.get(i).copied().unwrap_or(0), Relaxed);
    }
}

// The path, because a loom model includes this file under another name.
#[cfg(all(test, not(loom)))]
#[path = "ring/tests.rs"]
mod tests;
