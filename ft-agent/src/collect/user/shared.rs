//! The shared ring of a process: events of threads without a ring of their own.

use std::mem::size_of;
use std::sync::atomic::Ordering::Relaxed;

use ft_user::layout::SharedSlot;
use ft_user::shared_ring;

use super::{Offence, Round, Sink, Source};
use crate::clock::read_tsc;
use crate::collect::work::{self, Work};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, Shared};
use ft_trace::tables::{LossOrigin, LossReason};

impl Source {
    /// Copies what is ready, at most one ring full, wherever it is. A slot that is not ready holds up nobody, and is looked at again in
    /// each round.
    pub(super) fn drain_shared(
        &mut self,
        now_ns: i64,
        round: &mut Round,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let before = read_tsc();
        self.look_for_hidden(before);
        let (control, slots) = self.memory.shared();
        let all = slots.len() as u64;
        if self.unknown_children.is_none() {
            let has_some = control.unknown_children.load(Relaxed) != self.children_before;
            // It began after the last look.
            self.unknown_children = has_some.then_some(self.without_tsc_looked);
            self.unknown_children.iter().for_each(|_| self.offences.add(Offence::Child));
        }
        let without_tsc = control.without_tsc.load(Relaxed);
        let position = std::mem::take(&mut self.shared_position);
        let mut reader = shared_ring::Reader::at(control, slots, position);
        let taken = reader.taken();
        let mut copied = 0;
        self.scratch.clear();
        let mut late = Some(0).filter(|_| reader.passed() > 0);
        while copied < all && !work.is_done() {
            let record = if let Some(from) = late {
                work.spend(work::ASK);
                let found = reader.read_late(from);
                late = found.as_ref().map(|(next, _)| *next);
                let Some((_, record)) = found else { continue };
                record
            } else {
                if self.shared_backed == 0 {
                    work.spend(work::ASK);
                    self.shared_backed = self.memory.backed_shared(reader.position());
                }
                // Where nobody has written, nothing is ready.
                let next = if self.shared_backed > 0 { reader.read() } else { None };
                let Some(record) = next else {
                    let from = reader.position();
                    work.spend(reader.pass(self.shared_backed).into());
                    let passed = reader.position().wrapping_sub(from);
                    self.shared_backed -= passed.min(self.shared_backed);
                    if passed == 0 {
                        break;
                    }
                    let begin = self.shared_passed.map_or(self.shared_read_at, |(begin, _)| begin);
                    self.shared_passed = Some((begin, read_tsc()));
                    continue;
                };
                self.shared_backed = self.shared_backed.saturating_sub(1);
                record
            };
            work.spend(work::SHARED_SLOT);
            let tid = self.owners.find(&self.identity, record.tid, now_ns, work);
            encode_shared(&record, tid, &mut self.scratch);
            copied += 1;
        }
        if copied > 0 {
            round.found(taken, all);
        }
        if reader.passed() == 0 {
            self.shared_passed = None;
        }
        if reader.is_at_end() {
            self.shared_read_at = before;
        }
        // Writes that were under way when the recording began have ended since.
        self.shared_left = self.shared_left.min(reader.taken());
        let loss = reader.loss();
        self.shared_position = reader.into_position();
        if copied > 0 {
            round.slots += copied;
            sink(&Frame::Shared(Shared { source: self.number, bytes: &self.scratch }))?;
        }
        let lost = loss.events.saturating_sub(self.shared_lost);
        if lost > 0 {
            self.shared_lost = loss.events;
            let [from, to] = loss.tsc.map(|tsc| tsc as i64);
            let loss = self.loss(LossOrigin::SharedRing, LossReason::SharedRingFull, -1, lost);
            self.tell_loss(Loss { from, to, ..loss }, sink)?;
        }
        let from = std::mem::replace(&mut self.without_tsc_looked, before) as i64;
        let lost = without_tsc.saturating_sub(self.without_tsc);
        if lost > 0 {
            self.without_tsc = without_tsc;
            let loss = self.loss(LossOrigin::Tsc, LossReason::TscForbidden, -1, lost);
            self.tell_loss(Loss { from, to: before as i64, ..loss }, sink)?;
        }
        Ok(())
    }
}

impl Source {
    /// Says at the end of the recording, or of the process if it has `ended`, what was taken of the ring and is not ready: as far as the
    /// recording is concerned, it never will be.
    pub(super) fn tell_unfinished_shared(
        &mut self,
        ended: bool,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let (control, slots) = self.memory.shared();
        let reader = shared_ring::Reader::at(control, slots, self.shared_position.clone());
        let mut count = reader.taken().saturating_sub(self.shared_left);
        if !ended {
            // Those of threads that are at it in this moment come after the recording.
            count = count.min(reader.passed() as u64);
        }
        if count == 0 {
            return Ok(());
        }
        self.shared_left += count;
        let place = self.shared_passed.unwrap_or_else(|| (self.shared_read_at, read_tsc()));
        let [from, to] = [place.0, place.1].map(|tsc| tsc as i64);
        let loss = self.loss(LossOrigin::SharedRing, LossReason::NeverCommitted, -1, count);
        self.tell_loss(Loss { from, to, ..loss }, sink)
    }

    /// Notes the first site that the process has switched on beneath a breakpoint.
    fn look_for_hidden(&mut self, now: u64) {
        if self.hidden.is_none() {
            let key = self.memory.shared().0.hidden_site.load(Relaxed);
            self.hidden = (key != 0).then_some((key, now));
            self.hidden.iter().for_each(|_| self.offences.add(Offence::Breakpoint));
        }
    }

    /// The name of the first site that the process itself has switched on beneath a breakpoint: the process tells of it.
    pub fn hidden_site(&mut self) -> Option<&str> {
        self.look_for_hidden(read_tsc());
        self.hidden.and_then(|(key, _)| self.sites.get(&key)).map(|name| &**name)
    }

    /// Says that an unknown number of events is missing: of a site on which a breakpoint stood when it was switched on, and of children.
    pub(super) fn tell_unknown(&mut self, sink: &mut impl Sink) -> Result<(), WriteError> {
        let to = read_tsc() as i64;
        if let Some((key, since)) = self.hidden {
            let name = self.sites.get(&key);
            let what = name.map_or("(unknown)".into(), |name| name.escape_debug().to_string());
            let loss = self.loss(LossOrigin::Site, LossReason::Other, -1, 0);
            sink(&Frame::Loss(Loss { what, from: since as i64, to, ..loss }))?;
        }
        if let Some(since) = self.unknown_children {
            let loss = self.loss(LossOrigin::Child, LossReason::NotRecorded, -1, 0);
            sink(&Frame::Loss(Loss { from: since as i64, to, ..loss }))?;
        }
        Ok(())
    }
}

/// A record in the form of [`SharedSlot`], with the thread id of the agent's namespace.
fn encode_shared(record: &shared_ring::Record, tid: i32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&ft_user::layout::marker::READY.to_ne_bytes());
    out.extend_from_slice(&tid.to_ne_bytes());
    out.extend_from_slice(&record.commit.to_ne_bytes());
    out.extend_from_slice(&record.tsc.to_ne_bytes());
    for word in record.words {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.resize(start + size_of::<SharedSlot>(), 0);
}
