//! Writing records, and counting those that find no room.

use aya_ebpf::{
    bindings::BPF_RB_NO_WAKEUP,
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
};
use ft_ebpf::Header;

use crate::{
    lock,
    maps::{LOSS, RECORDS, RingBuffer, add},
};

/// CLOCK_MONOTONIC in nanoseconds.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: the helper takes nothing and only returns the clock.
    unsafe { bpf_ktime_get_ns() }
}

/// The first 16 bytes of a record of this CPU.
#[inline(always)]
pub(crate) fn header(ts: u64, kind: u16, tid: u32) -> Header {
    // SAFETY: the helper takes nothing and only returns a number.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    Header { ts, kind, cpu: cpu as u16, tid }
}

/// Writes the record that `fill` makes, in place; without room, counts it as a loss of `program` at `ts`.
#[inline(always)]
pub(crate) fn write<T: 'static>(program: u32, ts: u64, fill: impl FnOnce() -> T) {
    match buffer().and_then(|buffer| lock::own(|| buffer.reserve_untyped::<T>(0))) {
        Some(mut entry) => {
            entry.write(fill());
            entry.submit(u64::from(BPF_RB_NO_WAKEUP));
        }
        None => lost(program, ts),
    }
}

/// Writes a record that lies in memory already; without room, counts it as a loss of `program` at `ts`.
#[inline(always)]
pub(crate) fn write_bytes(program: u32, ts: u64, record: &[u8]) {
    let output =
        |buffer: &RingBuffer| buffer.output_untyped::<[u8]>(record, u64::from(BPF_RB_NO_WAKEUP));
    if buffer().is_none_or(|buffer| lock::own(|| output(buffer)).is_err()) {
        lost(program, ts);
    }
}

/// The ring buffer of this CPU; there is one for each.
#[inline(always)]
fn buffer() -> Option<&'static RingBuffer> {
    // SAFETY: the helper takes nothing and only returns a number.
    RECORDS.get(unsafe { bpf_get_smp_processor_id() })
}

/// Counts one record of `program` that is lost at `ts`.
///
/// Of the programs that the kernel calls for a tracepoint or an event of perf it runs none within itself. One of a probe may be
/// preempted here by itself, in another thread. The count has both losses then; but the first and the last time may be those of
/// the one that writes them last, so that the other loss lies outside of them, by as long as one of the two was preempted.
#[inline(always)]
pub(crate) fn lost(program: u32, ts: u64) {
    let Some(losses) = LOSS.get_ptr_mut(0) else { return };
    // SAFETY: the slot is this CPU's, which the program does not leave, and this program's.
    unsafe {
        let Some(loss) = (*losses).get_mut(program as usize) else { return };
        let loss = &raw mut *loss;
        if (*loss).first_ts == 0 || ts < (*loss).first_ts {
            (*loss).first_ts = ts;
        }
        if ts > (*loss).last_ts {
            (*loss).last_ts = ts;
        }
        // Behind the times: who reads the count has those of all that it counts.
        add(&raw mut (*loss).count, 1);
    }
}
