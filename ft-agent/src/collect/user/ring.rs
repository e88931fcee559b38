//! One per-thread ring: its owner, its events, its end.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ft_user::layout::{Mode, ring_state};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;

use super::{Round, Sink, Source};
use crate::clock::read_tsc;
use crate::collect::discover::{self, Identity};
use crate::spool::WriteError;
use crate::spool::frame::{Frame, Loss, Slots, Thread};

/// Slots copied into one frame: 128 KiB, which the second-level cache still holds when they are summed, copied
/// and written.
const FRAME_SLOTS: u64 = 1 << 12;

/// Where reading of one ring stands, and whose it is.
pub(super) struct Owned {
    reader: Reader,
    /// Claim of the ring to which `tid` belongs; `None` before its first event.
    generation: Option<u32>,
    tid: i32,
    /// TSC when the ring was last seen empty: what is never committed was begun later.
    empty_at: u64,
}

impl Owned {
    /// A ring that was not seen before, read from what the last reader, or the first claim, left.
    fn unknown(ring: &Ring<'_>) -> Owned {
        let head = ring.control.head.load(Acquire);
        // Indices below the length of the ring are never written: they would match zeroed memory.
        let oldest = head.saturating_sub(ring.len()).max(ring.len());
        let tail = ring.control.tail.load(Relaxed).clamp(oldest, head.max(oldest));
        Owned { reader: Reader::at(tail), generation: None, tid: -1, empty_at: 0 }
    }

    /// Looks who owns the ring now; the thread when it is another one.
    fn update(&mut self, identity: &Identity, ring: &Ring<'_>, ts: i64) -> Option<Thread> {
        // SYNC: ring-owner (with the claim: thread id and name are in place).
        let generation = Some(ring.control.generation.load(Acquire));
        if self.generation == generation {
            return None;
        }
        let (tid, name) = owner(identity, ring);
        (self.generation, self.tid) = (generation, tid);
        Some(Thread { tid, pid: identity.pid, name, ts })
    }
}

impl Source {
    /// One ring: its owner, its events, its end.
    pub(super) fn drain_ring(
        &mut self,
        index: u32,
        now_ns: i64,
        ended: bool,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let ring = self.memory.ring(index);
        // SYNC: ring-exit (with the thread that ends: all that it wrote is there).
        let state = ring.control.state.load(Acquire);
        if state == ring_state::FREE || ring.control.head.load(Acquire) < ring.len() {
            return Ok(());
        }
        self.rings[index as usize].get_or_insert_with(|| Owned::unknown(&ring));
        let over = ended || state == ring_state::EXITED;
        if self.memory.geometry().mode == Mode::Discard {
            let uncommitted = if over { Uncommitted::Skip } else { Uncommitted::Wait };
            self.copy(index, uncommitted, now_ns, round, sink)?;
        }
        if state == ring_state::EXITED {
            self.snapshot_ring(index, now_ns, round, sink)?;
            self.tell_pending_loss(index, sink)?;
            // SYNC: ring-free (with the thread that claims it next: all of it is read).
            self.memory.ring(index).control.state.store(ring_state::FREE, Release);
        }
        Ok(())
    }

    /// Copies from the reader's position on, at most two rings full: a process that writes faster than
    /// this copies must not keep the others waiting.
    fn copy(
        &mut self,
        index: u32,
        uncommitted: Uncommitted,
        now_ns: i64,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let Some(owned) = &mut self.rings[index as usize] else { return Ok(()) };
        let ring = self.memory.ring(index);
        let before = read_tsc();
        let waiting = ring.control.head.load(Acquire).saturating_sub(owned.reader.tail());
        if waiting == 0 {
            owned.empty_at = before;
        }
        round.found(waiting, ring.len());
        let (mut copied, mut skipped) = (0, 0);
        while copied < 2 * ring.len() {
            self.scratch.clear();
            let drained = owned.reader.drain(&ring, uncommitted, FRAME_SLOTS, &mut self.scratch);
            skipped += drained.skipped;
            if drained.slots > 0 {
                copied += drained.slots;
                // The owner is asked for after its events were read: a ring changes hands only when
                // all of it is read, so one drain never mixes two owners.
                if let Some(thread) = owned.update(&self.identity, &ring, now_ns) {
                    sink(&Frame::Thread(thread))?;
                }
                sink(&Frame::Slots(Slots {
                    source: self.number,
                    ring: index,
                    tid: owned.tid,
                    generation: owned.generation.unwrap_or(0),
                    first_index: drained.first_index,
                    bytes: &self.scratch,
                }))?;
            }
            if !drained.more {
                break;
            }
        }
        round.slots += copied;
        let (tid, from) = (owned.tid, owned.empty_at.max(self.since_tsc) as i64);
        if skipped > 0 && self.memory.geometry().mode == Mode::Discard {
            let to = read_tsc() as i64;
            let loss = self.loss("ring", "slots never committed", tid, skipped);
            sink(&Frame::Loss(Loss { from, to, ..loss }))?;
        }
        Ok(())
    }

    /// The newest events of a ring in overwrite mode.
    pub(super) fn snapshot_ring(
        &mut self,
        index: u32,
        now_ns: i64,
        round: &mut Round,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        if self.memory.geometry().mode == Mode::Discard {
            return Ok(());
        }
        let ring = self.memory.ring(index);
        if let Some(owned) = &mut self.rings[index as usize] {
            let newest = Reader::newest(&ring);
            if newest.tail() > owned.reader.tail() {
                owned.reader = newest;
            }
        }
        self.copy(index, Uncommitted::Skip, now_ns, round, sink)
    }

    /// Losses behind the last event of a ring.
    pub(super) fn tell_pending_loss(
        &self,
        index: u32,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let Some(owned) = &self.rings[index as usize] else { return Ok(()) };
        let control = self.memory.ring(index).control;
        let count = control.lost_pending.load(Relaxed);
        if count == 0 {
            return Ok(());
        }
        let now = read_tsc();
        let begin = control.loss_begin_tsc.load(Relaxed).min(now);
        let loss = self.loss("ring", "ring full", owned.tid, count);
        sink(&Frame::Loss(Loss { from: begin as i64, to: now as i64, ..loss }))
    }
}

/// Thread and name of the owner of a ring; a thread without a number when it is none of this process.
pub(super) fn owner(identity: &Identity, ring: &Ring<'_>) -> (i32, String) {
    let said = ring.control.tid.load(Relaxed);
    let Some(tid) = identity.translate(said) else {
        return (discover::unnumbered(said), name(ring));
    };
    if let Some(name) = discover::comm(identity.pid, tid) {
        return (tid, name);
    }
    // A thread that has ended is nowhere; one that lives elsewhere is not this process's.
    let foreign = discover::comm(tid, tid).is_some();
    (if foreign { discover::unnumbered(said) } else { tid }, name(ring))
}

/// Name of the owner of a ring, as it was when it claimed the ring.
pub(super) fn name(ring: &Ring<'_>) -> String {
    let bytes = ring.control.name.each_ref().map(|word| word.load(Relaxed).to_ne_bytes()).concat();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
