//! Group `futex`: system calls about futexes and System-V semaphores, one record each, written at the exit.
//!
//! The tracepoints are those of all system calls; what is none of [`Futex::CALLS`] costs two loads and some comparisons.
//! What a program passes is taken as it is: an address is not believed, a timeout that cannot be read is marked.

use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    helpers::bpf_probe_read_user,
    macros::{btf_tracepoint, map, tracepoint},
    maps::HashMap,
    programs::{BtfTracePointContext, TracePointContext},
};
use ft_ebpf::{Futex, kind, program};

use crate::{
    filter::{current, ended},
    kernel::{Registers, TaskStruct, is_in_compat_call},
    lock::own,
    record::{header, lost, now, write},
    syscall::event,
};

/// Calls that go on, by thread, as they would be recorded if they never returned; the agent reads them in the end. A
/// thread leaves with its end.
#[map]
static FUTEX_CALLS: HashMap<u32, Futex> = HashMap::with_max_entries(1 << 16, BPF_F_NO_PREALLOC);

/// `restart_syscall`, by which a thread goes on with a call that a signal without a handler interrupted.
const RESTART: u64 = 219;

/// `-ERESTART_RESTARTBLOCK` (include/linux/errno.h): the next call of the thread may be [`RESTART`].
const RESTARTS: i64 = -516;

/// Whether it is a call that may be recorded.
#[inline(always)]
fn is_of_interest(number: u64) -> bool {
    const { assert!(Futex::CALLS.len() == 7) };
    number == RESTART || Futex::CALLS.iter().any(|call| number == u64::from(*call))
}

/// Reads memory of the current thread; `None` where there is none, or it would have to be fetched first.
#[inline(always)]
pub(crate) fn user<T: Copy>(address: u64) -> Option<T> {
    // SAFETY: the helper checks the address, whatever it is.
    unsafe { bpf_probe_read_user(address as *const T) }.ok()
}

/// Takes the timeout at `address`, 0 where there is none: a `struct timespec` in the ABI of 64 bits.
#[inline(always)]
fn take_timeout(call: &mut Futex, address: u64) {
    if address == 0 {
        return;
    }
    match user::<[i64; 2]>(address) {
        Some([s, ns]) => {
            (call.timeout_s, call.timeout_ns) = (s, ns);
            call.flags |= Futex::TIMEOUT;
        }
        None => call.flags |= Futex::UNREADABLE,
    }
}

/// Takes a time by the clock of the thread's time namespace as what it is by that of the machine.
#[inline(always)]
fn to_host(call: &mut Futex) {
    if call.flags & Futex::TIMEOUT == 0 {
        return;
    }
    let Some([s, ns]) = TaskStruct::current().clock_offset() else { return };
    call.timeout_s = call.timeout_s.wrapping_sub(s);
    call.timeout_ns = call.timeout_ns.wrapping_sub(ns);
}

/// Takes what stands at the address.
#[inline(always)]
fn take_word(call: &mut Futex) {
    if let Some(word) = user::<u32>(call.address) {
        call.word = word;
        call.flags |= Futex::WORD;
    }
}

/// `struct futex_waitv` (include/uapi/linux/futex.h): value, address, flags.
type Waitv = [u64; 3];

/// `futex(uaddr, op, val, timeout or val2, uaddr2)`.
#[inline(always)]
fn futex(call: &mut Futex, arguments: [u64; 6]) {
    let [address, op, value, timeout, second, _] = arguments;
    (call.address, call.op, call.value) = (address, op as u32, value as u32);
    let op = op as u32 & !Futex::OP_FLAGS;
    let waits = matches!(op, Futex::OP_WAIT | Futex::OP_WAIT_BITSET | Futex::OP_WAIT_REQUEUE_PI);
    let locks = matches!(op, Futex::OP_LOCK_PI | Futex::OP_LOCK_PI2);
    let moves = matches!(op, Futex::OP_REQUEUE | Futex::OP_CMP_REQUEUE | Futex::OP_CMP_REQUEUE_PI);
    if waits || locks {
        take_timeout(call, timeout);
        // `futex`, kernel/futex/syscalls.c.
        if op != Futex::OP_WAIT
            && op != Futex::OP_LOCK_PI
            && call.op & Futex::OP_CLOCK_REALTIME == 0
        {
            to_host(call);
        }
    }
    if waits || locks || op == Futex::OP_TRYLOCK_PI {
        take_word(call);
    }
    if moves || matches!(op, Futex::OP_WAKE_OP | Futex::OP_WAIT_REQUEUE_PI) {
        call.second = second;
    }
}

/// Takes the first of an array of `struct futex_waitv`.
#[inline(always)]
fn take_first(call: &mut Futex, array: u64) {
    if let Some([value, address, flags]) = user::<Waitv>(array) {
        (call.address, call.value, call.op) = (address, value as u32, flags as u32);
    }
}

/// The timeout is a time of this clock.
#[inline(always)]
fn by_clock(call: &mut Futex, clock: u64) {
    /// `CLOCK_REALTIME` (include/uapi/linux/time.h).
    const CLOCK_REALTIME: u64 = 0;
    match clock {
        CLOCK_REALTIME => call.flags |= Futex::REALTIME,
        _ => to_host(call),
    }
}

/// What a call is about, and what it was given.
#[inline(always)]
fn describe(call: &mut Futex, arguments: [u64; 6]) {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    match call.call {
        Futex::FUTEX => futex(call, arguments),
        Futex::WAKE => {
            (call.address, call.value, call.op) = (first, third as u32, fourth as u32);
        }
        Futex::WAIT => {
            (call.address, call.value, call.op) = (first, second as u32, fourth as u32);
            take_timeout(call, fifth);
            by_clock(call, sixth);
            take_word(call);
        }
        Futex::REQUEUE => {
            take_first(call, first);
            let other = user::<Waitv>(first.wrapping_add(size_of::<Waitv>() as u64));
            call.second = other.map_or(0, |[_, address, _]| address);
            call.value = third as u32;
        }
        Futex::WAITV => {
            take_first(call, first);
            call.value = second as u32;
            take_timeout(call, fourth);
            by_clock(call, fifth);
        }
        _ => {
            // `(semid, struct sembuf *, nsops, timeout)`: number, operation, flags.
            if let Some([number, operation, flags]) = user::<[u16; 3]>(second) {
                call.address = u64::from(number) << 32;
                call.value = i32::from(operation as i16) as u32;
                call.op = u32::from(flags);
            }
            call.address |= first & 0xffff_ffff;
            call.second = third;
            if call.call == Futex::SEMTIMEDOP {
                take_timeout(call, fourth);
            }
        }
    }
}

/// A thread goes on with a call after an interruption, for the rest of its time. Its registers are those of that call
/// (`arch_do_signal_or_restart`, arch/x86/kernel/signal.c): where they are others, it goes on with a sleep or a poll, and the
/// call about the futex has ended in a signal's handler.
#[inline(always)]
fn restart(tid: u32, [address, op, ..]: [u64; 6]) {
    let Some(call) = FUTEX_CALLS.get_ptr_mut(tid) else { return };
    // SAFETY: only this thread looks at its entry while it runs.
    let call = unsafe { &mut *call };
    if call.flags & Futex::RESTARTS == 0 || call.address != address || call.op != op as u32 {
        return;
    }
    let ts = now();
    if call.op & !Futex::OP_FLAGS == Futex::OP_WAIT {
        // The only one whose timeout is a duration.
        call.timeout_ns = call.timeout_ns.wrapping_sub(ts.wrapping_sub(call.entry_ts) as i64);
    }
    (call.header.ts, call.entry_ts) = (ts, ts);
    call.flags = call.flags & !Futex::RESTARTS | Futex::UNFINISHED;
}

/// The current thread enters a call.
#[inline(always)]
fn entered(number: u64, arguments: impl FnOnce() -> [u64; 6]) {
    if !is_of_interest(number) {
        return;
    }
    let caller = current();
    if !caller.is_observed() || is_in_compat_call() {
        return;
    }
    if number == RESTART {
        restart(caller.tid, arguments());
        return;
    }
    let ts = now();
    let mut call = Futex {
        header: header(ts, kind::FUTEX, caller.tid),
        entry_ts: ts,
        address: 0,
        second: 0,
        timeout_s: 0,
        timeout_ns: 0,
        ret: 0,
        call: number as u32,
        op: 0,
        value: 0,
        word: 0,
        flags: Futex::UNFINISHED,
        tgid: caller.tgid,
    };
    describe(&mut call, arguments());
    if own(|| FUTEX_CALLS.insert(caller.tid, call, 0)).is_err() {
        lost(const { program::index("futex_enter") }, ts);
    }
}

/// It returns from it.
#[inline(always)]
fn returned(number: u64, ret: i64) {
    if !is_of_interest(number) {
        return;
    }
    if ended() {
        return;
    }
    let caller = current();
    // A call without an entry began before the recording did, or is of a thread that is not observed.
    let Some(call) = FUTEX_CALLS.get_ptr_mut(caller.tid) else { return };
    // SAFETY: as in `restart`.
    let call = unsafe { &mut *call };
    if call.flags & Futex::UNFINISHED == 0 || call.tgid != caller.tgid {
        return;
    }
    let ts = now();
    let flags = call.flags & !Futex::UNFINISHED;
    write(const { program::index("futex_exit") }, ts, || Futex {
        header: header(ts, kind::FUTEX, caller.tid),
        ret,
        flags,
        ..*call
    });
    if ret == RESTARTS {
        call.flags = flags | Futex::RESTARTS;
    } else {
        forget(caller.tid);
    }
}

/// `sys_enter`: `(pt_regs *regs, long id)`.
#[btf_tracepoint(function = "sys_enter")]
fn futex_enter(ctx: BtfTracePointContext) -> i32 {
    entered(ctx.arg(1), || Registers::new(ctx.arg(0)).arguments());
    0
}

/// `sys_exit`: `(pt_regs *regs, long ret)`.
#[btf_tracepoint(function = "sys_exit")]
fn futex_exit(ctx: BtfTracePointContext) -> i32 {
    returned(Registers::new(ctx.arg(0)).call(), ctx.arg(1));
    0
}

/// `raw_syscalls:sys_enter`, as in [`crate::syscall`].
#[tracepoint]
fn futex_enter_event(ctx: TracePointContext) -> i32 {
    entered(event::number(&ctx), || event::arguments(&ctx));
    0
}

/// `raw_syscalls:sys_exit`.
#[tracepoint]
fn futex_exit_event(ctx: TracePointContext) -> i32 {
    returned(event::number(&ctx), event::ret(&ctx));
    0
}

/// Nothing is under way in the thread of this number. A call that a signal ends together with its thread has returned by the
/// end, but not for the last time, as it seems.
#[inline(always)]
pub(crate) fn forget(tid: u32) {
    let _ = own(|| FUTEX_CALLS.remove(tid));
}
