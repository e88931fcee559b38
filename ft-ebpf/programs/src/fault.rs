//! Group `fault`: page faults of user space, and of the kernel where it touches a program's memory for a system call.
//!
//! There is no tracepoint where a fault ends. But the last that is done of one that was served is to count it, as minor or
//! major, and what perf counts can call a program: `mm_account_fault`, mm/memory.c. What is left then is the way back.
//! A fault that is not served (the thread gets a signal) comes to no end that can be seen: its record says so.

use aya_ebpf::{
    EbpfContext,
    bindings::bpf_perf_event_data,
    macros::{btf_tracepoint, map, perf_event},
    maps::HashMap,
    programs::{BtfTracePointContext, PerfEventContext},
};
use ft_ebpf::{Header, PageFault, ServedFault, kind, program};

use crate::{
    filter::{current, ended},
    kernel::TaskStruct,
    lock::own,
    record::{header, lost, now, write},
};

/// The faults of a thread that are under way: `ts` is 0 where there is none. One of the kernel's can come upon one of user
/// space that was not served, when the signal is delivered.
#[repr(C)]
#[derive(Clone, Copy)]
struct Open {
    user: PageFault,
    kernel: PageFault,
}

const NONE: PageFault = PageFault {
    header: Header { ts: 0, kind: kind::PAGE_FAULT, cpu: 0, tid: 0 },
    address: 0,
    error: 0,
    tgid: 0,
};

/// By thread, which leaves with its end. All are there beforehand: older kernels let programs of perf have no others.
#[map]
static FAULTS: HashMap<u32, Open> = HashMap::with_max_entries(1 << 16, 0);

/// `(unsigned long address, pt_regs *regs, unsigned long error_code)`.
#[inline(always)]
fn begin(program: u32, ctx: &BtfTracePointContext, of_user: bool) {
    let faulting = current();
    // What takes no page, such as who walks a stack, is not served, and can have struck a fault that is.
    if !faulting.is_observed() || !of_user && TaskStruct::current().takes_no_pages() {
        return;
    }
    let ts = now();
    let fault = PageFault {
        header: header(ts, kind::PAGE_FAULT, faulting.tid),
        address: ctx.arg(0),
        error: ctx.arg(2),
        tgid: faulting.tgid,
    };
    match FAULTS.get_ptr_mut(faulting.tid) {
        Some(open) => {
            // SAFETY: only this thread looks at its entry while it runs, and what interrupts it takes no page from user
            // space.
            let open = unsafe { &mut *open };
            if !of_user {
                open.kernel = fault;
                return;
            }
            if open.user.header.ts != 0 {
                write(program, ts, || open.user);
            }
            open.user = fault;
        }
        None => {
            let open = match of_user {
                true => Open { user: fault, kernel: NONE },
                false => Open { user: NONE, kernel: fault },
            };
            if own(|| FAULTS.insert(faulting.tid, open, 0)).is_err() {
                lost(program, ts);
            }
        }
    }
}

/// As [`begin`] says.
#[btf_tracepoint(function = "page_fault_user")]
fn page_fault_user(ctx: BtfTracePointContext) -> i32 {
    begin(const { program::index("page_fault_user") }, &ctx, true);
    0
}

/// As [`begin`] says.
#[btf_tracepoint(function = "page_fault_kernel")]
fn page_fault_kernel(ctx: BtfTracePointContext) -> i32 {
    begin(const { program::index("page_fault_kernel") }, &ctx, false);
    0
}

/// A fault was served.
#[inline(always)]
fn served(program: u32, kind: u16, ctx: &PerfEventContext) {
    /// Where the code segment has its level (arch/x86/include/asm/segment.h).
    const USER_RPL: u64 = 3;
    if ended() {
        return;
    }
    let faulting = current();
    let Some(open) = FAULTS.get_ptr_mut(faulting.tid) else { return };
    // SAFETY: as in `begin`.
    let open = unsafe { &mut *open };
    // SAFETY: the context of a program of perf is one of these.
    let cs = unsafe { (*ctx.as_ptr().cast::<bpf_perf_event_data>()).regs.cs };
    let of_user = cs & USER_RPL == USER_RPL;
    let fault = if of_user { &mut open.user } else { &mut open.kernel };
    if fault.header.ts == 0 {
        return;
    }
    let (ts, entry_ts) = (now(), fault.header.ts);
    fault.header.ts = 0;
    let header = header(ts, kind, faulting.tid);
    write(program, ts, || ServedFault { fault: PageFault { header, ..*fault }, entry_ts });
    if !of_user && TaskStruct::current().is_exiting() {
        // Since Linux 6.16 a thread ends (`ends`) before it gives its memory back, and has faults behind that.
        forget(faulting.tid);
    }
}

/// Called by an event of perf (`PERF_COUNT_SW_PAGE_FAULTS_MIN`) on each CPU.
#[perf_event]
fn fault_minor(ctx: PerfEventContext) -> u32 {
    served(const { program::index("fault_minor") }, kind::FAULT_MINOR, &ctx);
    0
}

/// Called by an event of perf (`PERF_COUNT_SW_PAGE_FAULTS_MAJ`) on each CPU.
#[perf_event]
fn fault_major(ctx: PerfEventContext) -> u32 {
    served(const { program::index("fault_major") }, kind::FAULT_MAJOR, &ctx);
    0
}

/// The thread of this number ends.
#[inline(always)]
pub(crate) fn ends(tid: u32) {
    let Some(open) = FAULTS.get_ptr_mut(tid) else { return };
    // SAFETY: as in `begin`.
    let fault = unsafe { (*open).user };
    if fault.header.ts != 0 {
        write(const { program::index("fault_end") }, fault.header.ts, || fault);
    }
    forget(tid);
}

/// Nothing is known of the thread of this number.
#[inline(always)]
pub(crate) fn forget(tid: u32) {
    let _ = own(|| FAULTS.remove(tid));
}
