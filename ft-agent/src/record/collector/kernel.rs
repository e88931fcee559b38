//! The kernel's stream: its records, and what it has lost.

use std::sync::atomic::Ordering::Relaxed;

use super::Collector;
use crate::record::notice::Notice;
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss};

/// Kernel records copied into one frame, bytes.
const KERNEL_FRAME_BYTES: usize = 1 << 20;

/// Bytes of a call that has not ended.
const RECORD: usize = size_of::<ft_ebpf::Futex>();

/// Kernel frames in one round, at most: 64 MiB.
const KERNEL_FRAMES: usize = 64;

impl Collector {
    /// Copies the kernel's records; whether there are more.
    pub(super) fn drain_kernel(&mut self) -> Result<bool, WriteError> {
        let Some(kernel) = &mut self.kernel else { return Ok(false) };
        for _ in 0..KERNEL_FRAMES {
            self.kernel_buffer.clear();
            let drained = kernel.drain(&mut self.kernel_buffer, KERNEL_FRAME_BYTES);
            if !self.kernel_buffer.is_empty() {
                self.counters.kernel_records.fetch_add(drained.records, Relaxed);
                self.writer.push(&Frame::Kernel(&self.kernel_buffer))?;
            }
            if !drained.more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the calls that have begun and not ended.
    pub(super) fn keep_unreturned(&mut self) -> Result<(), WriteError> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        self.kernel_buffer.clear();
        if !kernel.unreturned(&mut self.kernel_buffer) {
            log::warn!("waits for futexes that have not ended cannot be read, and are left out");
        }
        for records in self.kernel_buffer.chunks(KERNEL_FRAME_BYTES / 2 / RECORD * RECORD) {
            self.writer.push(&Frame::Kernel(records))?;
        }
        Ok(())
    }

    pub(super) fn tell_kernel_losses(&mut self) -> Result<(), WriteError> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        let losses = match kernel.losses() {
            Ok(losses) => losses,
            Err(reason) => {
                self.notice(Notice::Unobserved { reason });
                return Ok(());
            }
        };
        for loss in losses {
            self.counters.lost_kernel.fetch_add(loss.count, Relaxed);
            self.writer.push(&Frame::Loss(Loss {
                origin: loss.cause.origin().into(),
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
