//! What the counters of a CPU counted while a thread had it; a part of `sched_switch`, where the agent has asked for it.
//!
//! The counters count on each CPU from before the programs are attached, whoever runs there, and nothing is added when a thread
//! comes. So a record is a difference between two switches of one CPU, and a lost one takes no other with it.

use core::mem::MaybeUninit;

use aya_ebpf::{
    bindings::{BPF_F_CURRENT_CPU, bpf_perf_event_value},
    helpers::generated::bpf_perf_event_read_value,
    macros::map,
    maps::{PerCpuArray, PerfEventArray},
};
use ft_ebpf::{CpuCount, kind, program};

use crate::{
    config,
    kernel::TaskStruct,
    record::{header, write},
};

/// The first counter of each CPU, by its number, which the agent opens.
#[map]
static COUNTER_0: PerfEventArray<u64> = PerfEventArray::new(0);

/// The second.
#[map]
static COUNTER_1: PerfEventArray<u64> = PerfEventArray::new(0);

/// What the counters of this CPU showed at its last switch.
#[map]
static SHOWN: PerCpuArray<Shown> = PerCpuArray::with_max_entries(1, 0);

/// What they show at a switch.
#[derive(Clone, Copy)]
#[repr(C)]
struct Shown {
    /// Time; 0: there was none.
    ts: u64,
    /// Thread that came.
    tid: u64,
    values: [bpf_perf_event_value; 2],
}

/// At `ts`, `prev` leaves this CPU and `next` comes.
#[inline(always)]
pub(crate) fn switched(ts: u64, prev: TaskStruct, next: TaskStruct) {
    let Some(shown) = SHOWN.get_ptr_mut(0) else { return };
    // SAFETY: the slot is this CPU's, and nothing interrupts a switch that switches.
    let before = unsafe { *shown };
    let second = match config::counters() {
        1 => NOTHING,
        _ => read(&COUNTER_1),
    };
    let now = Shown { ts, tid: u64::from(next.tid()), values: [read(&COUNTER_0), second] };
    // SAFETY: as above.
    unsafe { *shown = now };
    // Who leaves is who came, unless the kernel left a run of this program out.
    if before.ts == 0 || prev.tid() == 0 || before.tid != u64::from(prev.tid()) {
        return;
    }
    if prev.is_observed() {
        write(const { program::index("cpu_count") }, ts, || CpuCount {
            header: header(ts, kind::CPU_COUNT, prev.tid()),
            from_ts: before.ts,
            counted: [
                counted(&before.values[0], &now.values[0]),
                counted(&before.values[1], &now.values[1]),
            ],
            tgid: prev.tgid(),
            prio: prev.prio(),
            comm: prev.comm(),
        });
    }
}

/// What a counter shows that cannot be read.
const NOTHING: bpf_perf_event_value = bpf_perf_event_value { counter: 0, enabled: 0, running: 0 };

#[inline(always)]
fn read(counter: &'static PerfEventArray<u64>) -> bpf_perf_event_value {
    let mut value = MaybeUninit::<bpf_perf_event_value>::uninit();
    // SAFETY: the kernel takes the address for the map's, and fills what is `value`, with zeros where there is no counter.
    unsafe {
        bpf_perf_event_read_value(
            (&raw const *counter).cast_mut().cast(),
            u64::from(BPF_F_CURRENT_CPU as u32),
            value.as_mut_ptr(),
            size_of::<bpf_perf_event_value>() as u32,
        );
        value.assume_init()
    }
}

/// What was counted in between; known where the counter was enabled at both ends, and had a register for all the time.
#[inline(always)]
fn counted(before: &bpf_perf_event_value, now: &bpf_perf_event_value) -> u64 {
    let enabled = now.enabled.wrapping_sub(before.enabled);
    let running = now.running.wrapping_sub(before.running);
    match before.enabled != 0 && now.enabled > before.enabled && enabled == running {
        true => now.counter.wrapping_sub(before.counter),
        false => CpuCount::UNKNOWN,
    }
}
