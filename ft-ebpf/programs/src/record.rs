//! Writing records, and counting those that find no room.
//!
//! The agent looks at the buffers now and then. It is woken before when one of them comes to be so full that it must be emptied
//! ([`config::ring_mark`]): by the record that passes the mark, not by each behind it, for a wake-up is an interrupt.

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_ringbuf_query},
};
use ft_ebpf::{Header, ring_bytes};

use crate::{
    config, lock,
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
    let Some(buffer) = buffer() else { return lost(program, ts) };
    let passes = passes_mark(buffer, size_of::<T>());
    match lock::own(|| buffer.reserve_untyped::<T>(0)) {
        Some(mut entry) => {
            entry.write(fill());
            entry.submit(wakes(passes));
        }
        None => lost(program, ts),
    }
}

/// Writes a record that lies in memory already; without room, counts it as a loss of `program` at `ts`. `is_urgent`: the agent should
/// look at once.
#[inline(always)]
pub(crate) fn write_bytes(program: u32, ts: u64, record: &[u8], is_urgent: bool) {
    let Some(buffer) = buffer() else { return lost(program, ts) };
    let flags = wakes(is_urgent || passes_mark(buffer, record.len()));
    if lock::own(|| buffer.output_untyped::<[u8]>(record, flags)).is_err() {
        lost(program, ts);
    }
}

/// Whether a record of so many bytes is the one by which its buffer passes the mark. Of two that are written at once by CPUs that
/// share a buffer, neither may be: then the agent comes when it would have come anyway.
#[inline(always)]
fn passes_mark(buffer: &RingBuffer, bytes: usize) -> bool {
    let (mark, bytes) = (u64::from(config::ring_mark()), ring_bytes(bytes) as u64);
    // SAFETY: the helper takes a ring buffer, which this is.
    let before = unsafe {
        bpf_ringbuf_query(
            core::ptr::from_ref(buffer).cast_mut().cast(),
            u64::from(BPF_RB_AVAIL_DATA),
        )
    };
    before < mark && before + bytes >= mark
}

#[inline(always)]
fn wakes(agent: bool) -> u64 {
    u64::from(if agent { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP })
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
