//! Group `profile`: where in the code a thread is each time that the clock of its CPU strikes.

use aya_ebpf::{
    EbpfContext,
    helpers::generated::bpf_get_stack,
    macros::{map, perf_event},
    maps::PerCpuArray,
    programs::PerfEventContext,
};
use ft_ebpf::{kind, program};

use crate::{
    chain::Place,
    filter::current,
    kernel::TaskStruct,
    record::{header, now},
};

/// The chain, while it is made.
#[map]
static SAMPLE: PerCpuArray<Place> = PerCpuArray::with_max_entries(1, 0);

/// Called by an event of perf (`PERF_COUNT_SW_CPU_CLOCK`) on each CPU.
#[perf_event]
fn sample(ctx: PerfEventContext) -> u32 {
    let thread = current();
    if thread.tid == 0 || !thread.is_observed() {
        return 0;
    }
    let Some(place) = SAMPLE.get_ptr_mut(0) else { return 0 };
    // SAFETY: the slot is this CPU's, and the kernel runs no program within itself.
    let place = unsafe { &mut *place };
    let ts = now();
    place.head.header = header(ts, kind::SAMPLE, thread.tid);
    place.head.tgid = thread.tgid;
    place.take_thread(&ctx);
    place.compact();
    place.finish(const { program::index("sample") }, ts, TaskStruct::current(), |to, bytes| {
        // SAFETY: there is room for `bytes`.
        unsafe { bpf_get_stack(ctx.as_ptr(), to.cast(), bytes, 0) }
    });
    0
}
