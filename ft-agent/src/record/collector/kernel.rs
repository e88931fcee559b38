//! The kernel's stream: its records, and what it has lost.

use std::sync::atomic::Ordering::Relaxed;

use super::Collector;
use crate::collect::kernel::{KernelLoss, LossCause};
use crate::record::notice::Notice;
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, kernel_record_len};

/// Kernel records copied into one frame, bytes.
const KERNEL_FRAME_BYTES: usize = 1 << 20;

/// Kernel frames in one round, at most: 64 MiB.
const KERNEL_FRAMES: usize = 64;

impl Collector {
    /// Copies the kernel's records in a pass over its ring buffers; how full the fullest was, of [`FULL`], or `None` when the
    /// pass is not over.
    ///
    /// [`FULL`]: crate::collect::user::FULL
    pub(super) fn drain_kernel(&mut self) -> Result<Option<u32>, WriteError> {
        let Some(kernel) = &mut self.kernel else { return Ok(Some(0)) };
        for _ in 0..KERNEL_FRAMES {
            self.kernel_buffer.clear();
            let drained = kernel.drain(&mut self.kernel_buffer, KERNEL_FRAME_BYTES);
            if !self.kernel_buffer.is_empty() {
                self.counters.kernel_records.fetch_add(drained.records, Relaxed);
                self.writer.push(&Frame::Kernel(&self.kernel_buffer))?;
            }
            if !drained.more {
                return Ok(Some(drained.fill));
            }
        }
        Ok(None)
    }

    /// Copies all that the kernel's ring buffers hold.
    pub(super) fn empty_kernel(&mut self) -> Result<(), WriteError> {
        // What is left of a pass, and a whole one.
        for _ in 0..2 {
            while self.drain_kernel()?.is_none() {}
        }
        Ok(())
    }

    /// Adds the calls and the waits that have begun and not ended.
    pub(super) fn keep_unreturned(&mut self) -> Result<(), WriteError> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        self.kernel_buffer.clear();
        if !kernel.unreturned(&mut self.kernel_buffer) {
            log::warn!("calls and waits that have not ended cannot be read, and are left out");
        }
        let mut rest = &self.kernel_buffer[..];
        while !rest.is_empty() {
            let (count, bytes) = whole_records(rest, KERNEL_FRAME_BYTES);
            let (records, more) = rest.split_at(bytes);
            self.counters.kernel_records.fetch_add(count, Relaxed);
            self.writer.push(&Frame::Kernel(records))?;
            rest = more;
        }
        Ok(())
    }

    pub(super) fn tell_kernel_losses(&mut self, all: bool) -> Result<(), WriteError> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        let losses = match if all { kernel.losses() } else { kernel.losses_so_far() } {
            Ok(losses) => losses,
            Err(reason) => {
                self.notice(Notice::Unobserved { reason });
                return Ok(());
            }
        };
        let is_skipped_fork = |loss: &KernelLoss| {
            loss.program == "sched_process_fork" && loss.cause == LossCause::Skipped
        };
        if self.scope.follows() && losses.iter().any(is_skipped_fork) {
            // Whoever was started then is not observed, nor what it starts.
            self.intake.look_for_parents();
        }
        for loss in losses {
            self.counters.lost_kernel.fetch_add(loss.count, Relaxed);
            self.writer.push(&Frame::Loss(Loss {
                origin: loss.cause.origin().word().into(),
                what: loss.program.into(),
                cpu: loss.cpu.map_or(-1, |cpu| cpu as i32),
                pid: -1,
                tid: -1,
                from: loss.from_ns as i64,
                to: loss.to_ns as i64,
                is_tsc: false,
                count: loss.count,
            }))?;
        }
        Ok(())
    }
}

/// The first records, as many as fit into `most` bytes, and at least one: how many, and their bytes.
fn whole_records(records: &[u8], most: usize) -> (u64, usize) {
    let (mut count, mut bytes) = (0, 0);
    while let Some(next) = kernel_record_len(&records[bytes..])
        && (bytes == 0 || bytes + next <= most)
    {
        (count, bytes) = (count + 1, bytes + next);
    }
    (count, bytes.clamp(1, records.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_ebpf::{Contention, kind};

    #[test]
    fn records_are_not_cut_where_frames_are() {
        let wait = |kernel: u8| {
            let mut record = vec![0; size_of::<Contention>() + 8 * usize::from(kernel)];
            record[8..10].copy_from_slice(&kind::CONTENTION.to_ne_bytes());
            record[35] = kernel;
            record
        };
        let (one, two) = (wait(3), wait(5));
        let both = [&one[..], &two].concat();
        for (most, expected) in [
            (0, (1, one.len())),
            (both.len() - 1, (1, one.len())),
            (both.len(), (2, both.len())),
            (1 << 20, (2, both.len())),
        ] {
            assert_eq!(whole_records(&both, most), expected, "{most}");
        }
        assert_eq!(whole_records(&[1, 2, 3], 9), (0, 1), "what is none does not go on for ever");
    }
}
