//! Scheduling of the calling thread, and its clock.

use std::io;

/// CPU on which the scenarios play: the last one, so that the agent has the first.
pub(crate) fn stage() -> usize {
    std::thread::available_parallelism().map_or(0, |n| n.get() - 1)
}

/// Binds the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) {
    // SAFETY: `set` is a plain bit set, valid when zeroed, and outlives the call.
    let status = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    assert_eq!(status, 0, "sched_setaffinity: {}", io::Error::last_os_error());
}

/// Makes the calling thread `SCHED_FIFO`; needs CAP_SYS_NICE.
pub(crate) fn fifo(priority: i32) {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: `param` outlives the call.
    let status = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) };
    assert_eq!(status, 0, "sched_setscheduler: {}", io::Error::last_os_error());
}

/// CLOCK_MONOTONIC, ns.
pub(crate) fn now_ns() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Keeps the CPU until `CLOCK_MONOTONIC` reaches `ns`.
pub(crate) fn spin_until(ns: i64) {
    while now_ns() < ns {
        std::hint::spin_loop();
    }
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `ns`.
pub(crate) fn sleep_until(ns: i64) {
    let t = libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
    // SAFETY: `t` outlives the call; no remainder is asked for with TIMER_ABSTIME.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

/// Thread id of the calling thread.
pub(crate) fn gettid() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() }
}

/// Voluntary and involuntary context switches of the calling thread so far.
pub(crate) fn switches() -> (u64, u64) {
    // SAFETY: `usage` is plain data, valid when zeroed and valid for writing.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64)
}
