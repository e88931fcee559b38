//! Group `syscall`: one record per system call, written at its exit; of one that never comes there, when its thread
//! ends, or by the agent when the recording does. What nobody saw entered has a record of its exit: a call that was under
//! way when the recording began, and the one that a new thread begins in. A call that is denied (`seccomp`, or a tracer) is
//! not entered, and returns (`syscall_trace_enter`, kernel/entry/common.c): of a thread that was seen between two calls it is a
//! call of no length.
//!
//! Both ends can be seen in two ways, of which the agent chooses one: by the tracepoints, and by the events that perf makes
//! of them. The programs of the former can be preempted on newer kernels, and are not run for whoever has the CPU then;
//! those of the latter cannot.

use aya_ebpf::{
    macros::{btf_tracepoint, map, tracepoint},
    maps::HashMap,
    programs::{BtfTracePointContext, TracePointContext},
};
use ft_ebpf::{COMPAT, Syscall, file, kind, program};

use crate::{
    config, descriptor,
    filter::{current, ended},
    kernel::{Registers, TaskStruct, is_in_compat_call},
    lock::own,
    record::{header, lost, now, write},
};

/// Calls, by thread, as they would be recorded if they never returned; `entry_ts` is 0 between two of them. A thread
/// leaves with its end.
#[map]
static CALLS: HashMap<u32, Syscall> = HashMap::with_max_entries(1 << 16, 0);

/// Number of a call as it is recorded.
#[inline(always)]
pub(crate) fn recorded(number: u64) -> u16 {
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
    let file = match (is_in_compat_call(), descriptor::is_taken_by(number)) {
        (true, _) => COMPAT,
        (false, true) => descriptor::kind_of(first()),
        (false, false) => file::NONE,
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
        None if own(|| CALLS.insert(caller.tid, call, 0)).is_err() => {
            lost(const { program::index("sys_enter") }, ts);
        }
        None => {}
    }
}

/// It returns from a call; `number` is that of the call, unless that has changed it.
#[inline(always)]
fn returned(number: impl FnOnce() -> u64, ret: i64) {
    let caller = current();
    let observed = caller.is_observed();
    // Who has left the cgroup may have entered the call in it.
    if !observed && (config::cgroup_id() == 0 || ended()) {
        return;
    }
    let ts = now();
    let mut was_seen = false;
    if let Some(call) = CALLS.get_ptr_mut(caller.tid) {
        // SAFETY: as in `entered`.
        let call = unsafe { &mut *call };
        was_seen = call.tgid == caller.tgid;
        if call.entry_ts != 0 && was_seen {
            // The number that the thread had: `execve` can have changed it.
            let entered_by = call.header.tid;
            let header = header(ts, kind::SYSCALL, entered_by);
            write(const { program::index("sys_exit") }, ts, || Syscall { header, ret, ..*call });
            call.entry_ts = 0;
            if !observed {
                forget(caller.tid);
                return;
            }
            if entered_by == caller.tid {
                return;
            }
            was_seen = false;
        }
    }
    if !observed {
        return;
    }
    let can_be_denied = TaskStruct::current().can_be_denied();
    let kind = if was_seen && can_be_denied { kind::SYSCALL } else { kind::SYSCALL_ENDED };
    let call = Syscall {
        header: header(ts, kind, caller.tid),
        entry_ts: ts,
        ret,
        number: recorded(number()),
        file: if is_in_compat_call() { COMPAT } else { file::NONE },
        tgid: caller.tgid,
    };
    write(const { program::index("sys_exit") }, ts, || call);
    if !was_seen && can_be_denied {
        // Its next return without an entry is that of a call that was denied. Without room, it will be told as this one.
        let _ = own(|| CALLS.insert(caller.tid, Syscall { entry_ts: 0, ..call }, 0));
    }
}

/// The thread of this number ends.
#[inline(always)]
pub(crate) fn ends(tid: u32) {
    let Some(call) = CALLS.get_ptr_mut(tid) else { return };
    // SAFETY: as in `entered`.
    let call = unsafe { *call };
    if call.entry_ts != 0 {
        let ts = now();
        let header = header(ts, kind::SYSCALL_BEGUN, tid);
        write(const { program::index("call_end") }, ts, || Syscall { header, ..call });
    }
    forget(tid);
}

/// The current thread has another number than when it entered its call.
#[inline(always)]
pub(crate) fn renumbered(from: u32, to: u32) {
    let Some(call) = CALLS.get_ptr_mut(from) else { return };
    // SAFETY: as in `entered`.
    let call = unsafe { *call };
    if own(|| CALLS.insert(to, call, 0)).is_err() {
        lost(const { program::index("sys_enter") }, now());
    }
    forget(from);
}

/// Nothing is known of the thread of this number.
#[inline(always)]
pub(crate) fn forget(tid: u32) {
    let _ = own(|| CALLS.remove(tid));
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
