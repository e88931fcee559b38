//! Group `syscall`: one record per system call, written at its exit.

use aya_ebpf::{
    macros::{btf_tracepoint, map},
    maps::LruHashMap,
    programs::BtfTracePointContext,
};
use ft_ebpf::{Syscall, kind, program};

use crate::{
    filter::current,
    record::{header, lost, now, write},
};

/// A call that was entered.
#[repr(C)]
#[derive(Clone, Copy)]
struct Call {
    ts: u64,
    number: u64,
}

/// Calls that go on, by thread. A thread that dies in one (`exit` never returns) leaves its entry,
/// which the newer ones displace.
#[map]
static CALLS: LruHashMap<u32, Call> = LruHashMap::with_max_entries(65_536, 0);

/// `(pt_regs *regs, long id)`.
#[btf_tracepoint(function = "sys_enter")]
fn sys_enter(ctx: BtfTracePointContext) -> i32 {
    let caller = current();
    if caller.is_observed() {
        let call = Call { ts: now(), number: ctx.arg(1) };
        if CALLS.insert(caller.tid, call, 0).is_err() {
            lost(const { program::index("sys_enter") }, call.ts);
        }
    }
    0
}

/// `(pt_regs *regs, long ret)`.
#[btf_tracepoint(function = "sys_exit")]
fn sys_exit(ctx: BtfTracePointContext) -> i32 {
    let caller = current();
    if !caller.is_observed() {
        return 0;
    }
    // A call without an entry began before the recording did.
    let Some(call) = CALLS.get_ptr(caller.tid) else { return 0 };
    // SAFETY: only this thread inserts and removes its entry.
    let Call { ts: entry_ts, number } = unsafe { *call };
    let _ = CALLS.remove(caller.tid);
    let ts = now();
    write(const { program::index("sys_exit") }, ts, || Syscall {
        header: header(ts, kind::SYSCALL, caller.tid),
        entry_ts,
        ret: ctx.arg(1),
        number: number as u32,
        tgid: caller.tgid,
    });
    0
}
