//! Group `fault`: page faults of user space.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use ft_ebpf::{PageFault, kind, program};

use crate::{
    filter::current,
    record::{header, now, write},
};

/// `(unsigned long address, pt_regs *regs, unsigned long error_code)`.
#[btf_tracepoint(function = "page_fault_user")]
fn page_fault_user(ctx: BtfTracePointContext) -> i32 {
    let faulting = current();
    if faulting.is_observed() {
        let ts = now();
        write(const { program::index("page_fault_user") }, ts, || PageFault {
            header: header(ts, kind::PAGE_FAULT, faulting.tid),
            address: ctx.arg(0),
            error: ctx.arg(2),
            tgid: faulting.tgid,
        });
    }
    0
}
