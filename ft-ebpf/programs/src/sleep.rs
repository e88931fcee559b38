//! What a thread sleeps in: the system call and its arguments, by the registers with which it entered the kernel.
//!
//! They lie at the top of the kernel's stack of the thread. So a thread pays for this when it sleeps, and what does not sleep pays
//! nothing, as it would for the tracepoints of all system calls.

use aya_ebpf::helpers::generated::bpf_task_pt_regs;
use ft_ebpf::{COMPAT, Futex, Sleep, file, kind, program};

use crate::{
    config, descriptor,
    futex::user,
    kernel::{DEAD, Registers, TaskStruct, is_in_compat_call},
    record::{header, write},
    syscall::recorded,
};

/// Where glibc keeps the thread that holds a mutex, behind the futex (`struct __pthread_mutex_s`,
/// sysdeps/x86/nptl/bits/struct_mutex.h). Other locks have something else there: whoever reads it looks whether it can be a thread.
const OWNER: u64 = 8;

/// The current thread, which is observed, leaves its CPU in this state, and was not preempted.
#[inline(always)]
pub(crate) fn leaves(ts: u64, thread: TaskStruct, state: u32) {
    if config::regs_ip() == 0 || state & DEAD != 0 || thread.is_of_kernel() {
        return;
    }
    // One of `SCHED_DEADLINE` (include/linux/sched/prio.h) may yield until its next period, and can run meanwhile for all that its
    // state says.
    let may_yield = thread.prio() < 0;
    if state == 0 && !may_yield {
        return;
    }
    // SAFETY: the task is the tracepoint's.
    let registers = unsafe { bpf_task_pt_regs(thread.as_ptr().cast_mut().cast()) };
    let registers = Registers::new(registers as *const u8);
    if state == 0 && registers.call() != SCHED_YIELD {
        return;
    }
    write(const { program::index("sleep") }, ts, || {
        let mut sleep = Sleep { header: header(ts, kind::SLEEP, thread.tid()), ..Sleep::default() };
        sleep.tgid = thread.tgid();
        let call = registers.call();
        if (call as i64) < 0 {
            sleep.flags = Sleep::NO_CALL;
            return sleep;
        }
        sleep.number = recorded(call);
        let [first, second, third, fourth, ..] = registers.arguments();
        sleep.arguments = [first, second, third, fourth];
        if is_in_compat_call() {
            sleep.file = COMPAT;
        } else if descriptor::is_taken_by(sleep.number) {
            sleep.file = descriptor::kind_of(first);
        } else if call == u64::from(Futex::FUTEX) || call == u64::from(Futex::WAIT) {
            take_futex(&mut sleep, first);
        } else {
            sleep.file = file::NONE;
            sleep.until = until(ts, thread, call, sleep.arguments);
        }
        sleep
    });
}

/// Until when a thread sleeps at the latest, if it is in a call that does nothing else; 0: not known.
#[inline(always)]
fn until(ts: u64, thread: TaskStruct, call: u64, arguments: [u64; 4]) -> u64 {
    // include/uapi/linux/time.h
    const CLOCK_MONOTONIC: u64 = 1;
    const TIMER_ABSTIME: u64 = 1;
    let [clock, flags, time, _] = arguments;
    let (address, absolute) = match call {
        NANOSLEEP => (arguments[0], false),
        CLOCK_NANOSLEEP => (time, flags & TIMER_ABSTIME != 0),
        _ => return 0,
    };
    if absolute && clock != CLOCK_MONOTONIC {
        return 0;
    }
    let Some([seconds, ns]) = user::<[i64; 2]>(address) else { return 0 };
    let since = match absolute {
        false => ts as i64,
        true => match thread.clock_offset() {
            Some([seconds, ns]) => -in_ns(seconds, ns),
            None => 0,
        },
    };
    let until = since.wrapping_add(in_ns(seconds, ns)).wrapping_add(thread.timer_slack() as i64);
    if until > 0 { until as u64 } else { 0 }
}

#[inline(always)]
fn in_ns(seconds: i64, ns: i64) -> i64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add(ns)
}

/// Numbers of calls (arch/x86/entry/syscalls/syscall_64.tbl).
const SCHED_YIELD: u64 = 24;
const NANOSLEEP: u64 = 35;
const CLOCK_NANOSLEEP: u64 = 230;

/// Takes what stands at a futex, and who holds it if it is a mutex of glibc.
#[inline(always)]
fn take_futex(sleep: &mut Sleep, address: u64) {
    if let Some(word) = user::<u32>(address) {
        sleep.word = word;
        sleep.flags |= Sleep::WORD;
    }
    if let Some(owner) = user::<u32>(address.wrapping_add(OWNER)) {
        sleep.owner = owner;
        sleep.flags |= Sleep::OWNER;
    }
}
