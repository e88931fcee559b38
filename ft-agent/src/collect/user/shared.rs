//! The shared ring of a process: events of threads without a ring of their own.

use std::mem::size_of;
use std::sync::atomic::Ordering::Acquire;

use ft_user::layout::SharedSlot;
use ft_user::shared_ring;

use super::{Round, Sink, Source};
use crate::clock::read_tsc;
use crate::collect::work::{self, Work};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, Shared};
use ft_trace::tables::{LossOrigin, LossReason};

impl Source {
    /// Copies what is ready, at most one ring full. With `ended`, what is not ready is left out.
    pub(super) fn drain_shared(
        &mut self,
        now_ns: i64,
        ended: bool,
        round: &mut Round,
        work: &mut Work,
        sink: &mut impl Sink,
    ) -> Result<(), WriteError> {
        let before = read_tsc();
        let (control, slots) = self.memory.shared();
        let all = slots.len() as u64;
        let free = u64::try_from(control.free.load(Acquire)).unwrap_or(0);
        if free == all {
            self.shared_empty_at = before;
        }
        let mut reader = shared_ring::Reader::new(control, slots, self.shared_position);
        let (mut copied, mut skipped) = (0, 0);
        self.scratch.clear();
        while copied < all && skipped < all && !work.is_done() && (free < all || ended) {
            if self.shared_backed == 0 {
                work.spend(work::ASK);
                self.shared_backed = self.memory.backed_shared(reader.position());
            }
            // Where nobody has written, nothing is ready.
            let record = if self.shared_backed > 0 { reader.read() } else { None };
            if let Some(record) = record {
                work.spend(work::SHARED_SLOT);
                let tid = self.owners.find(&self.identity, record.tid, now_ns, work);
                encode_shared(&record, tid, &mut self.scratch);
                copied += 1;
            } else if ended && reader.skip() {
                work.spend(1);
                skipped += 1;
            } else {
                break;
            }
            self.shared_backed = self.shared_backed.saturating_sub(1);
        }
        if copied > 0 {
            round.found(all.saturating_sub(free), all);
        }
        self.shared_position = reader.position();
        let loss = reader.loss();
        if copied > 0 {
            round.slots += copied;
            sink(&Frame::Shared(Shared { source: self.number, bytes: &self.scratch }))?;
        }
        if skipped > 0 {
            let (from, to) = (self.shared_empty_at as i64, read_tsc() as i64);
            let loss = self.loss(LossOrigin::SharedRing, LossReason::NeverCommitted, -1, skipped);
            self.tell_loss(Loss { from, to, ..loss }, sink)?;
        }
        let lost = loss.events.saturating_sub(self.shared_lost);
        if lost > 0 {
            self.shared_lost = loss.events;
            let [from, to] = loss.tsc.map(|tsc| tsc as i64);
            let loss = self.loss(LossOrigin::SharedRing, LossReason::SharedRingFull, -1, lost);
            self.tell_loss(Loss { from, to, ..loss }, sink)?;
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
