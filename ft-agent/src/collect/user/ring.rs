//! One per-thread ring: its owner, its events, its end.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use ft_user::handover;
use ft_user::layout::{LOSS_KEY, MAX_EVENT_SLOTS, Mode, RingControl, Slot, commit, ring_state};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;

use super::owners::{BELIEVED_NS, Owners};
use super::{Offence, Round, Sink, Source};
use crate::clock::read_tsc;
use crate::collect::discover::{self, Identity};
use crate::collect::work::{self, Work};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, Slots, Thread};
use ft_trace::tables::{LossOrigin, LossReason};

/// Slots copied into one frame: 128 KiB, which the second-level cache still holds when they are summed, copied
/// and written.
pub(super) const FRAME_SLOTS: u64 = 1 << 12;

/// What makes up a ring that was filled as fast as it was copied: so much is copied of one at once.
///
/// Limit: in a look the rest is left for the next one; in the last look it is a row of `loss`, *not read at the end*,
/// and the process is named in a warning.
/// Shown by: `the_last_look_is_work_like_others_and_has_an_end`.
const RINGS_AT_ONCE: u64 = 2;

/// For how long a write is waited for behind which its thread has written on, unless a quarter of the ring is behind it.
///
/// Limit: it is passed over and counts once as lost (*slots never committed*), within the time in which it was begun;
/// what comes behind it is recorded. Goes on late, it is left out. A row of adjacent ones that had not said yet how
/// long they are counts as one for each 13 slots. Of one that was left, each child that is forked before it is passed over
/// counts one, too. An event that was to tell of losses counts if it had not marked its slot; what it was to tell is told
/// at the end.
/// Shown by: `an_event_that_was_left_costs_itself_alone`, `a_write_that_was_passed_over_may_go_on_late`,
/// `an_event_that_was_left_is_passed_over_and_counted_once`.
const PATIENCE_NS: i64 = 1_000_000_000;

/// Which look at a ring it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// There are later ones.
    Round,
    /// The last one, and its process may live.
    Last,
    /// Its thread or its process has ended: what is not committed never will be.
    Ended,
}

/// Where reading of one ring stands, and whose it is.
pub(super) struct Owned {
    pub(super) reader: Reader,
    /// Claim of the ring to which `tid` belongs; `None` before its first event.
    pub(super) generation: Option<u32>,
    pub(super) tid: i32,
    /// Until when `tid` is believed, ns.
    believed_until: i64,
    /// TSC of the last look at whose end all was read that was reserved then: what is not read was begun later.
    pub(super) read_at: u64,
    /// TSC of the last look, and what was reserved then.
    looked: (u64, u64),
    /// The unfinished write at which reading stands, since when, ns, and the same as TSC.
    stands: Option<(u64, i64, u64)>,
    /// Slots below this index are in memory: to read them takes none.
    pub(super) backed: u64,
}

impl Owned {
    /// A ring that was not seen before, read from what the last reader, or the first claim, left.
    fn unknown(ring: &Ring<'_>) -> Owned {
        let head = ring.control.head.load(Acquire);
        // Indices below the length of the ring are never written: they would match zeroed memory.
        let oldest = head.saturating_sub(ring.len()).max(ring.len());
        let tail = ring.control.tail.load(Relaxed).clamp(oldest, head.max(oldest));
        Owned {
            reader: Reader::at(tail),
            generation: None,
            tid: -1,
            believed_until: 0,
            read_at: 0,
            looked: (0, u64::MAX),
            stands: None,
            backed: 0,
        }
    }

    /// Begins a look, at which so much is reserved.
    pub(super) fn look(&mut self, now: u64, head: u64) {
        let (looked_at, reserved) = self.looked;
        if reserved <= self.reader.tail() {
            self.read_at = looked_at;
        }
        self.looked = (now, head);
    }

    /// How many slots at its position are to be passed over: of writes that their thread has not finished, although it has written
    /// on since.
    /// The second number is the TSC when it was first seen there.
    fn passed_over(
        &mut self,
        ring: &Ring<'_>,
        look: Look,
        now_ns: i64,
        work: &mut Work,
    ) -> Option<(u64, u64)> {
        let slots = self.reader.unfinished(ring, self.backed)?;
        work.spend(slots);
        let tail = self.reader.tail();
        let before = self.stands.filter(|(index, ..)| *index == tail);
        let (_, since, tsc) =
            *self.stands.insert(before.unwrap_or_else(|| (tail, now_ns, read_tsc())));
        let behind = ring.control.head.load(Relaxed).saturating_sub(tail);
        let passes = look == Look::Last
            || behind >= ring.len() / 4
            || now_ns.saturating_sub(since) >= PATIENCE_NS;
        passes.then_some((slots, tsc))
    }

    /// Looks who owns the ring now; the thread when it is another one.
    pub(super) fn update(
        &mut self,
        owners: &mut Owners,
        identity: &Identity,
        ring: &Ring<'_>,
        now_ns: i64,
        work: &mut Work,
    ) -> Option<Thread> {
        let (generation, said) = handover::owner(ring.control);
        let generation = Some(generation);
        let is_new = self.generation != generation;
        if !is_new && now_ns < self.believed_until {
            return None;
        }
        let tid = owners.find(identity, said, now_ns, work);
        let is_new = is_new || tid != self.tid;
        self.generation = generation;
        self.tid = tid;
        self.believed_until = now_ns.saturating_add(BELIEVED_NS);
        let name = || discover::comm(identity.pid, tid).unwrap_or_else(|| name(ring));
        is_new.then(|| Thread { tid, pid: identity.pid, name: name(), ts: now_ns })
    }
}

impl Source {
    /// One ring: its owner, its events, its end. Whether it is done with for now.
    pub(super) fn drain_ring(
        &mut self,
        index: u32,
        now_ns: i64,
        look: Look,
        round: &mut Round,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<bool, WriteError> {
        work.spend(work::RING);
        if !self.is_known(index, work) {
            return Ok(true);
        }
        let ring = self.memory.ring(index);
        let state = handover::state(ring.control);
        if state == ring_state::FREE || ring.control.head.load(Acquire) < ring.len() {
            return Ok(true);
        }
        self.rings[index as usize].get_or_insert_with(|| Owned::unknown(&ring));
        self.tell_cut_by_fork(index, now_ns, work, sink)?;
        let look = if state == ring_state::EXITED { Look::Ended } else { look };
        if self.memory.geometry().mode == Mode::Discard
            && !self.copy(index, look, now_ns, round, work, sink)?
        {
            return Ok(false);
        }
        if state == ring_state::EXITED {
            if !self.snapshot_ring(index, look, now_ns, round, work, sink)? {
                return Ok(false);
            }
            self.tell_pending_loss(index, true, sink)?;
            handover::set_free(self.memory.ring(index).control);
        }
        Ok(true)
    }

    /// The last look at the rings, from the one on at which it stands. Whether it is done: where it `goes_on`, there are
    /// later rounds for what was no work left for in this one.
    pub(super) fn finish_rings(
        &mut self,
        now_ns: i64,
        ended: bool,
        goes_on: bool,
        round: &mut Round,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<bool, WriteError> {
        let look = if ended { Look::Ended } else { Look::Last };
        while self.last.next_ring < self.rings_used() {
            let index = self.last.next_ring;
            let done = self.drain_ring(index, now_ns, look, round, work, sink)?
                && self.snapshot_ring(index, look, now_ns, round, work, sink)?;
            if goes_on && work.is_done() {
                return Ok(false);
            }
            self.end_ring(index, ended, done, now_ns, work, sink)?;
            self.last.next_ring += 1;
        }
        Ok(true)
    }

    /// Nobody looks at a ring any more: what is left in it, and what its thread has lost, is told.
    fn end_ring(
        &mut self,
        index: u32,
        ended: bool,
        done: bool,
        now_ns: i64,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let Some(owned) = self.rings.get(index as usize).and_then(Option::as_ref) else {
            return Ok(());
        };
        let ring = self.memory.ring(index);
        let left = ring.control.head.load(Acquire).saturating_sub(owned.reader.tail());
        if !done && left > 0 {
            self.offences.add(Offence::Endless);
            let (from, to) = (owned.read_at.max(self.since_tsc) as i64, read_tsc() as i64);
            let tid = self.ask_owner(index, now_ns, work, sink)?;
            let loss = self.loss(LossOrigin::Ring, LossReason::NotRead, tid, left);
            self.tell_loss(Loss { from, to, ..loss }, sink)?;
        }
        self.tell_pending_loss(index, ended, sink)
    }

    /// Whether the control page of a ring may be looked at: it was before, or somebody has written it. A ring below
    /// the number of those that are in use can be one that its first thread is about to claim.
    fn is_known(&mut self, index: u32, work: &mut Work) -> bool {
        let place = index as usize;
        if self.rings.get(place).is_some_and(Option::is_some) {
            return true;
        }
        work.spend(work::ASK);
        let claimed = self.memory.is_claimed(index);
        if claimed && self.rings.len() <= place {
            self.rings.resize_with(place + 1, || None);
        }
        claimed
    }

    /// Copies from the reader's position on, at most two rings full: a process that writes faster than
    /// this copies must not keep the others waiting. Whether all was copied that was there at first, but for what is
    /// waited for.
    fn copy(
        &mut self,
        index: u32,
        look: Look,
        now_ns: i64,
        round: &mut Round,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<bool, WriteError> {
        let Some(owned) = &mut self.rings[index as usize] else { return Ok(true) };
        let ring = self.memory.ring(index);
        let before = read_tsc();
        let head = ring.control.head.load(Acquire);
        let waiting = head.saturating_sub(owned.reader.tail());
        owned.look(before, head);
        // In one step, however far it claims to be.
        let far = waiting.saturating_sub(ring.len());
        owned.reader.pass(far);
        if far > 0 {
            self.offences.add(Offence::Ring);
        }
        let uncommitted = if look == Look::Ended { Uncommitted::Skip } else { Uncommitted::Wait };
        // Slots that were copied or left out, and events that were left out.
        let (mut copied, mut left_out, mut lost) = (0, 0, far);
        let (mut asked_at, mut until) = (None, None);
        let done = loop {
            let tail = owned.reader.tail();
            if tail >= head {
                break true;
            }
            if work.is_done() || copied + left_out >= RINGS_AT_ONCE * ring.len() {
                break false;
            }
            if head > owned.backed {
                work.spend(work::ASK);
                owned.backed = tail.saturating_add(self.memory.backed_slots(index, tail));
                asked_at = Some(tail);
            }
            if owned.backed <= tail {
                if uncommitted == Uncommitted::Wait {
                    break true;
                }
                let hole = self.memory.unbacked_slots(index, tail).clamp(1, head - tail);
                owned.reader.pass(hole);
                lost += hole.div_ceil(MAX_EVENT_SLOTS.into());
                continue;
            }
            self.scratch.clear();
            let budget = FRAME_SLOTS.min(work.left());
            let end = owned.backed;
            let drained =
                owned.reader.drain_below(&ring, end, uncommitted, budget, &mut self.scratch);
            let others = drained.skipped + drained.passed;
            work.spend(drained.slots + others);
            lost += drained.lost;
            left_out += others;
            if drained.slots > 0 {
                copied += drained.slots;
                hear_losses(ring.control, &self.scratch);
                // The owner is asked for after its events were read, and before they are consumed: until then the ring does
                // not change hands, so no event is taken for another owner's.
                let thread = owned.update(&mut self.owners, &self.identity, &ring, now_ns, work);
                owned.reader.consume(&ring);
                if let Some(thread) = thread {
                    work.spend(work::LOOK_UP);
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
            if drained.more || drained.slots + others > 0 {
                continue;
            }
            // Not committed, or reaching beyond what was in memory when that was asked.
            if owned.backed < head && asked_at != Some(tail) {
                owned.backed = 0;
            } else if uncommitted == Uncommitted::Skip {
                owned.reader.pass(1);
                lost += 1;
                left_out += 1;
                work.spend(1);
            } else if let Some((slots, seen_at)) = owned.passed_over(&ring, look, now_ns, work) {
                lost += owned.reader.pass_unfinished(&ring, slots);
                left_out += slots;
                until = Some(seen_at);
            } else {
                break true;
            }
        };
        if copied > 0 {
            round.found(waiting, ring.len());
        }
        round.slots += copied;
        let (reader, mut tid) = (owned.reader, owned.tid);
        let from = owned.read_at.max(self.since_tsc) as i64;
        // Before it is consumed, as above.
        if lost > 0 && copied == 0 {
            tid = self.ask_owner(index, now_ns, work, sink)?;
        }
        reader.consume(&self.memory.ring(index));
        if lost > 0 {
            let to = until.unwrap_or_else(read_tsc) as i64;
            let loss = self.loss(LossOrigin::Ring, LossReason::NeverCommitted, tid, lost);
            self.tell_loss(Loss { from, to, ..loss }, sink)?;
        }
        Ok(done)
    }

    /// The thread whose ring it is: looks at it, for one of whom no event was read.
    pub(super) fn ask_owner(
        &mut self,
        index: u32,
        now_ns: i64,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<i32, WriteError> {
        let Some(Some(owned)) = self.rings.get_mut(index as usize) else { return Ok(-1) };
        let ring = self.memory.ring(index);
        let thread = owned.update(&mut self.owners, &self.identity, &ring, now_ns, work);
        let tid = owned.tid;
        if let Some(thread) = thread {
            work.spend(work::LOOK_UP);
            sink(&Frame::Thread(thread))?;
        }
        Ok(tid)
    }

    /// Events that the fork of the process has cut in two: their other half is the parent's.
    fn tell_cut_by_fork(
        &mut self,
        index: u32,
        now_ns: i64,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let ring = self.memory.ring(index);
        if ring.control.cut_by_fork.load(Relaxed) == 0 {
            return Ok(());
        }
        let count = ring.control.cut_by_fork.swap(0, Relaxed);
        let tid = self.ask_owner(index, now_ns, work, sink)?;
        let (from, to) = (self.since_tsc as i64, read_tsc() as i64);
        let loss = self.loss(LossOrigin::Ring, LossReason::NeverCommitted, tid, count.into());
        self.tell_loss(Loss { from, to, ..loss }, sink)
    }

    /// Losses behind the last event of a ring. With `over`, its thread tells of nothing more, and neither is this
    /// told again.
    fn tell_pending_loss(
        &mut self,
        index: u32,
        over: bool,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let Some(Some(owned)) = self.rings.get(index as usize) else { return Ok(()) };
        let control = self.memory.ring(index).control;
        // Also what the thread was about to tell when it ended, or left that: then nobody tells it later.
        let (lost, told) = (control.lost.load(Relaxed), control.told.load(Relaxed));
        let later = if over { 0 } else { control.lost_pending.load(Relaxed) };
        control.told.store(lost.saturating_sub(later).max(told), Relaxed);
        let before = self.lost_before.get(index as usize).copied().unwrap_or(0);
        let count = lost.saturating_sub(told.max(before));
        if count == 0 {
            return Ok(());
        }
        let now = read_tsc();
        let begin = match control.loss_begin_tsc.load(Relaxed) {
            // It was about to be told.
            u64::MAX => self.since_tsc,
            begin => begin.min(now),
        };
        let loss = self.loss(LossOrigin::Ring, LossReason::RingFull, owned.tid, count);
        self.tell_loss(Loss { from: begin as i64, to: now as i64, ..loss }, sink)
    }
}

/// Adds up what loss events among these slots tell of. A process may claim more than it has lost.
fn hear_losses(control: &RingControl, slots: &[u8]) {
    let (lost, before) = (control.lost.load(Relaxed), control.told.load(Relaxed));
    // The usual case: nothing is lost that was not told.
    if lost <= before {
        return;
    }
    let slots = slots.as_chunks::<{ size_of::<Slot>() }>().0;
    let losses = slots.iter().filter_map(|slot| {
        let [first, _, _, count] = *slot.as_chunks().0 else { return None };
        let [first, count] = [first, count].map(u64::from_ne_bytes);
        let is_loss = first & commit::CONTINUATION == 0 && commit::key(first) == LOSS_KEY;
        is_loss.then_some(count)
    });
    let told = losses.fold(before, u64::saturating_add);
    control.told.store(told.min(lost), Relaxed);
}

/// Name of the owner of a ring, as it was when it claimed the ring.
pub(super) fn name(ring: &Ring<'_>) -> String {
    let bytes = ring.control.name.each_ref().map(|word| word.load(Relaxed).to_ne_bytes()).concat();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
