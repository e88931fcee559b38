//! Group `syscall`: one record per system call, written at its exit; of one that never comes there, when its thread
//! ends, or by the agent when the recording does. What nobody saw entered has a record of its exit: a call that was under
//! way when the recording began, and the one that a new thread begins in.
//!
//! Both ends can be seen in two ways, of which the agent chooses one: by the tracepoints, and by the events that perf makes
//! of them. The programs of the former can be preempted on newer kernels, and are not run for whoever has the CPU then;
//! those of the latter cannot.

use aya_ebpf::{
    macros::{btf_tracepoint, map, tracepoint},
    maps::HashMap,
    programs::{BtfTracePointContext, TracePointContext},
};
use ft_ebpf::{Syscall, file, kind, program};

use crate::{
    descriptor,
    filter::current,
    kernel::{Registers, is_in_compat_call},
    record::{header, lost, now, write},
};

/// Calls, by thread, as they would be recorded if they never returned; `entry_ts` is 0 between two of them. A thread
/// leaves with its end.
#[map]
static CALLS: HashMap<u32, Syscall> = HashMap::with_max_entries(1 << 16, 0);

/// Number of a call as it is recorded.
#[inline(always)]
fn recorded(number: u64) -> u16 {
    if number < 0xffff { number as u16 } else { 0xffff }
}

/// The current thread enters a call; `first` is its first argument.
#[inline(always)]
fn entered(number: u64, first: impl FnOnce() -> u64) {
    let caller = current();
    if !caller.is_observed() {
        return;
    }
    let ts = now();
    let number = recorded(number);
    let file = if descriptor::is_taken_by(number) && !is_in_compat_call() {
        descriptor::kind_of(first())
    } else {
        file::NONE
    };
    let call = Syscall {
        header: header(ts, kind::SYSCALL_BEGUN, caller.tid),
        entry_ts: ts,
        ret: 0,
        number,
        file,
        tgid: caller.tgid,
    };
    match CALLS.get_ptr_mut(caller.tid) {
        // SAFETY: only this thread looks at its entry while it runs.
        Some(place) => unsafe { *place = call },
        None if CALLS.insert(caller.tid, call, 0).is_err() => {
            lost(const { program::index("sys_enter") }, ts);
        }
        None => {}
    }
}

/// It returns from a call; `number` is that of the call, unless that has changed it.
#[inline(always)]
fn returned(number: impl FnOnce() -> u64, ret: i64) {
    let caller = current();
    if !caller.is_observed() {
        return;
    }
    let ts = now();
    if let Some(call) = CALLS.get_ptr_mut(caller.tid) {
        // SAFETY: as in `entered`.
        let call = unsafe { &mut *call };
        if call.entry_ts != 0 {
            let header = header(ts, kind::SYSCALL, caller.tid);
            write(const { program::index("sys_exit") }, ts, || Syscall { header, ret, ..*call });
            call.entry_ts = 0;
            return;
        }
    }
    let number = recorded(number());
    write(const { program::index("sys_exit") }, ts, || Syscall {
        header: header(ts, kind::SYSCALL_ENDED, caller.tid),
        entry_ts: ts,
        ret,
        number,
        file: file::NONE,
        tgid: caller.tgid,
    });
}

/// The current thread ends.
#[inline(always)]
fn ended() {
    let tid = current().tid;
    let Some(call) = CALLS.get_ptr_mut(tid) else { return };
    // SAFETY: as in `entered`.
    let call = unsafe { *call };
    if call.entry_ts != 0 {
        let ts = now();
        let header = header(ts, kind::SYSCALL_BEGUN, tid);
        write(const { program::index("call_end") }, ts, || Syscall { header, ..call });
    }
    let _ = CALLS.remove(tid);
}

/// `(pt_regs *regs, long id)`.
#[btf_tracepoint(function = "sys_enter")]
fn sys_enter(ctx: BtfTracePointContext) -> i32 {
    entered(ctx.arg(1), || Registers::new(ctx.arg(0)).first());
    0
}

/// `(pt_regs *regs, long ret)`.
#[btf_tracepoint(function = "sys_exit")]
fn sys_exit(ctx: BtfTracePointContext) -> i32 {
    returned(|| Registers::new(ctx.arg(0)).call(), ctx.arg(1));
    0
}

/// `sched_process_exit`: `(task_struct *p)`.
#[btf_tracepoint(function = "sched_process_exit")]
fn call_end(_: BtfTracePointContext) -> i32 {
    ended();
    0
}

/// `raw_syscalls:sys_enter`.
#[tracepoint]
fn sys_enter_event(ctx: TracePointContext) -> i32 {
    entered(event::number(&ctx), || event::first(&ctx));
    0
}

/// `raw_syscalls:sys_exit`.
#[tracepoint]
fn sys_exit_event(ctx: TracePointContext) -> i32 {
    returned(|| event::number(&ctx), event::ret(&ctx));
    0
}

/// `sched:sched_process_exit`.
#[tracepoint]
fn call_end_event(_: TracePointContext) -> i32 {
    ended();
    0
}

/// The fields of both events (include/trace/events/syscalls.h), behind the 8 bytes that all events have in common.
pub(crate) mod event {
    use aya_ebpf::{EbpfContext, programs::TracePointContext};

    #[inline(always)]
    fn word(ctx: &TracePointContext, index: usize) -> u64 {
        // SAFETY: the verifier lets a program read the fields of its event, and nothing else.
        unsafe { ctx.as_ptr().cast::<u64>().add(index).read_volatile() }
    }

    /// Number of the system call, of both.
    #[inline(always)]
    pub(crate) fn number(ctx: &TracePointContext) -> u64 {
        word(ctx, 1)
    }

    /// The first argument, of `sys_enter`.
    #[inline(always)]
    pub(crate) fn first(ctx: &TracePointContext) -> u64 {
        word(ctx, 2)
    }

    /// Arguments, of `sys_enter`.
    #[inline(always)]
    pub(crate) fn arguments(ctx: &TracePointContext) -> [u64; 6] {
        [word(ctx, 2), word(ctx, 3), word(ctx, 4), word(ctx, 5), word(ctx, 6), word(ctx, 7)]
    }

    /// Return value, of `sys_exit`.
    #[inline(always)]
    pub(crate) fn ret(ctx: &TracePointContext) -> i64 {
        word(ctx, 2) as i64
    }
}
