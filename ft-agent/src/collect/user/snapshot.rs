//! Snapshots of rings in overwrite mode, whose threads may write on meanwhile.
//!
//! Rule: a ring is copied to memory first, as fast as memory allows, and written to the spool then. The copy begins with the oldest
//! slot. Where the thread has overwritten what comes next, the copy goes on so far ahead of it that it is not overtaken again, and
//! up to what is the newest then: at most a quarter of the ring ahead. Who was overtaken goes on with what is written meanwhile until
//! half of the ring is copied, since the copying thread may have lost its CPU.
//!
//! An event that is being written is left for the next snapshot, if all of it lies in memory. One that its thread has not finished
//! although it has written on, or has ended, is counted as lost.

use std::mem::size_of;
use std::ops::Range;
use std::sync::atomic::Ordering::Acquire;

use ft_user::layout::{MARGIN_SLOTS, MAX_EVENT_SLOTS, Mode, Slot};
use ft_user::reader::{Reader, Uncommitted};

use super::ring::{FRAME_SLOTS, Look};
use super::{Offence, Round, Sink, Source};
use crate::clock::read_tsc;
use crate::collect::work::{self, Work};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, Slots};
use ft_trace::tables::{LossOrigin, LossReason};

/// Slots that are copied before any is written: 8 MiB, all of a ring of the default size.
///
/// Limit: of a larger ring, or where the agent gets no CPU, the thread may overwrite slots before they are copied: the
/// newest that can be had are copied. A ring of a living thread that gave nothing is named in a warning.
/// Shown by: `a_snapshot_of_a_thread_that_never_pauses_has_half_of_its_ring`.
const COPIED_AT_ONCE: usize = 1 << 18;

/// How far ahead of the thread that has overwritten the next slot the copy goes on, slots; and how much further each time.
const FIRST_LEAD: u64 = 64;
const FURTHER: u64 = 8;

/// Slots that are looked at in a ring, in rings: a thread that overtakes again and again is given up.
const RINGS: u64 = 16;

/// Runs of slots without holes.
type Runs = Vec<(u64, Range<usize>)>;

impl Source {
    /// The newest events of a ring in overwrite mode that were not copied yet. Whether all were copied.
    pub(super) fn snapshot_ring(
        &mut self,
        index: u32,
        look: Look,
        now_ns: i64,
        round: &mut Round,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<bool, WriteError> {
        let Some(Some(owned)) = self.rings.get_mut(index as usize) else { return Ok(true) };
        if self.memory.geometry().mode == Mode::Discard {
            return Ok(true);
        }
        let newest = Reader::newest(&self.memory.ring(index));
        let is_known = newest.tail() <= owned.reader.tail();
        if !is_known {
            owned.reader = newest;
        }
        let before = read_tsc();
        let mut copy = Copy::begin(&self.memory.ring(index), look, is_known);
        owned.look(before, copy.end);
        let from = owned.read_at.max(self.since_tsc) as i64;
        let unread = copy.end.saturating_sub(owned.reader.tail());
        loop {
            self.scratch.clear();
            let runs = self.copy_to_memory(index, &mut copy, work);
            self.write_runs(index, &runs, now_ns, work, sink)?;
            if runs.is_empty() || copy.is_over(work) {
                break;
            }
        }
        self.scratch.shrink_to(FRAME_SLOTS as usize * size_of::<Slot>());
        round.slots += copy.copied;
        // A thread is within no more writes than that.
        if unread > MARGIN_SLOTS.into() && copy.copied == 0 && !work.is_done() {
            self.offences.add(Offence::Overrun);
        }
        if copy.lost > 0 {
            let known = self.rings[index as usize].as_ref().filter(|_| copy.copied > 0);
            let tid = match known {
                Some(owned) => owned.tid,
                None => self.ask_owner(index, now_ns, work, sink)?,
            };
            let loss = self.loss(LossOrigin::Ring, LossReason::NeverCommitted, tid, copy.lost);
            self.tell_loss(Loss { from, to: read_tsc() as i64, ..loss }, sink)?;
        }
        Ok(copy.done)
    }

    /// Copies until the end, or as much as is copied at once.
    fn copy_to_memory(&mut self, index: u32, copy: &mut Copy, work: &mut Work) -> Runs {
        let mut runs = Runs::new();
        let Some(Some(owned)) = self.rings.get_mut(index as usize) else { return runs };
        let ring = self.memory.ring(index);
        while self.scratch.len() < COPIED_AT_ONCE * size_of::<Slot>() && !copy.is_over(work) {
            let head = ring.control.head.load(Acquire);
            let oldest = head.saturating_sub(ring.len());
            let tail = owned.reader.tail();
            if tail < oldest {
                owned.reader.pass((oldest + copy.lead).min(head) - tail);
                copy.lead = (copy.lead * FURTHER).min(ring.len() / 4);
                copy.end = head;
                copy.is_known = false;
                work.spend(1);
                continue;
            }
            if tail >= copy.end && copy.lead > FIRST_LEAD && copy.copied < ring.len() / 2 {
                copy.end = head;
            }
            if tail >= copy.end {
                copy.done = true;
                break;
            }
            if copy.end > owned.backed {
                work.spend(work::ASK);
                owned.backed = tail.saturating_add(self.memory.backed_slots(index, tail));
            }
            let is_overtaken = || ring.control.head.load(Acquire) > tail.saturating_add(ring.len());
            if owned.backed <= tail {
                let hole = self.memory.unbacked_slots(index, tail).clamp(1, copy.end - tail);
                if hole == copy.end - tail && copy.waits() {
                    break;
                }
                owned.reader.pass(hole);
                if copy.is_known && !is_overtaken() {
                    copy.lost += hole.div_ceil(MAX_EVENT_SLOTS.into());
                }
                continue;
            }
            let (start, end) = (self.scratch.len(), owned.backed.min(copy.end));
            let budget = FRAME_SLOTS.min(work.left());
            let mut drain = |reader: &mut Reader, uncommitted| {
                reader.drain_below(&ring, end, uncommitted, budget, &mut self.scratch)
            };
            let mut drained = drain(&mut owned.reader, Uncommitted::Wait);
            if drained.slots + drained.skipped + drained.passed == 0 && !is_overtaken() {
                let is_last = end == copy.end && owned.reader.unfinished(&ring, end).is_none();
                if is_last && copy.waits() {
                    break;
                }
                drained = drain(&mut owned.reader, Uncommitted::Skip);
                // What its thread overwrites meanwhile is no loss.
                if copy.is_known && !is_overtaken() {
                    copy.lost += drained.lost;
                }
            }
            if drained.slots > 0 {
                runs.push((drained.first_index, start..self.scratch.len()));
                copy.copied += drained.slots;
                copy.is_known = true;
            }
            let all = drained.slots + drained.skipped + drained.passed;
            if all == 0 && !is_overtaken() {
                // An event that reaches beyond what is in memory, or beyond the end.
                owned.reader.pass(1);
            }
            copy.looked += all.max(1);
            work.spend(all.max(1));
        }
        runs
    }

    fn write_runs(
        &mut self,
        index: u32,
        runs: &Runs,
        now_ns: i64,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let Some(Some(owned)) = self.rings.get_mut(index as usize) else { return Ok(()) };
        if runs.is_empty() {
            return Ok(());
        }
        // After its events were read, and before they are consumed, as where rings are drained.
        let ring = self.memory.ring(index);
        if let Some(thread) = owned.update(&mut self.owners, &self.identity, &ring, now_ns, work) {
            work.spend(work::LOOK_UP);
            sink(&Frame::Thread(thread))?;
        }
        owned.reader.consume(&ring);
        for (first_index, bytes) in runs {
            sink(&Frame::Slots(Slots {
                source: self.number,
                ring: index,
                tid: owned.tid,
                generation: owned.generation.unwrap_or(0),
                first_index: *first_index,
                bytes: &self.scratch[bytes.clone()],
            }))?;
        }
        Ok(())
    }
}

/// Where the copy of one ring stands.
struct Copy {
    /// Where it ends.
    end: u64,
    /// How far ahead of the thread it goes on when it is overtaken.
    lead: u64,
    copied: u64,
    /// Events that were not finished.
    lost: u64,
    /// All up to here was read, or is the ring's first lap. Else the oldest slots may be those of a write that was left, which are kept out of
    /// use: what they have in them is of an earlier lap.
    is_known: bool,
    /// There are later snapshots, or the recording ends before its thread does.
    is_live: bool,
    /// Slots that were looked at, and how many at most.
    looked: u64,
    most: u64,
    done: bool,
}

impl Copy {
    fn begin(ring: &ft_user::ring::Ring<'_>, look: Look, is_known: bool) -> Copy {
        Copy {
            is_known,
            end: ring.control.head.load(Acquire),
            lead: FIRST_LEAD,
            copied: 0,
            lost: 0,
            is_live: look != Look::Ended,
            looked: 0,
            most: RINGS * ring.len(),
            done: false,
        }
    }

    /// Ends in front of what is not finished and has nothing behind it, if it may still be.
    fn waits(&mut self) -> bool {
        self.done |= self.is_live;
        self.is_live
    }

    fn is_over(&self, work: &Work) -> bool {
        self.done || self.looked >= self.most || work.is_done()
    }
}
