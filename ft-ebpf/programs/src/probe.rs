//! Probes: an observed thread calls a function or returns from it, or passes a mark that its program has for that.
//!
//! The kernel calls these programs from a breakpoint in the code of whatever process has the file, so the filter is here. It
//! may preempt them, and run others of them on the same CPU meanwhile: nothing of a CPU's own is used but the count of losses.

use aya_ebpf::{
    EbpfContext,
    bindings::pt_regs,
    helpers::generated::bpf_get_attach_cookie,
    macros::{uprobe, uretprobe},
    programs::{ProbeContext, RetProbeContext},
};
use ft_ebpf::{Probe, kind, program};

use crate::{
    filter::current,
    record::{header, now, write},
};

/// Bytes of the return address, which a function that returns has taken from the stack.
const RETURN_ADDRESS: u64 = 8;

/// `taken`: bytes that the stack has lost since the entry of the function.
#[inline(always)]
fn hit(program: u32, kind: u16, ctx: &impl EbpfContext, taken: u64) -> u32 {
    let thread = current();
    if !thread.is_observed() {
        return 0;
    }
    let ts = now();
    // SAFETY: the context of these programs are the registers of user space.
    let stack_pointer = unsafe { (*ctx.as_ptr().cast::<pt_regs>()).rsp } - taken;
    // SAFETY: the helper takes the context and returns the number that was given when the program was attached.
    let number = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) } as u32;
    write(program, ts, || Probe {
        header: header(ts, kind, thread.tid),
        stack_pointer,
        number,
        tgid: thread.tgid,
    });
    0
}

/// The entry of a function, or the first mark of a pair.
#[uprobe]
fn probe_begin(ctx: ProbeContext) -> u32 {
    hit(const { program::index("probe_begin") }, kind::PROBE_BEGIN, &ctx, 0)
}

/// The second mark of a pair.
#[uprobe]
fn probe_end(ctx: ProbeContext) -> u32 {
    hit(const { program::index("probe_end") }, kind::PROBE_END, &ctx, 0)
}

/// The return of a function.
#[uretprobe]
fn probe_return(ctx: RetProbeContext) -> u32 {
    hit(const { program::index("probe_return") }, kind::PROBE_END, &ctx, RETURN_ADDRESS)
}
