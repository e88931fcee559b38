//! Scheduling of the calling thread, and its clock.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// CPU on which the scenarios play: the last one, so that the agent has the first.
pub(crate) fn stage() -> usize {
    std::thread::available_parallelism().map_or(0, |n| n.get() - 1)
}

/// Where the threads of a scenario wait until all are there: on a busy machine a new thread may be late.
pub(crate) struct Start {
    all: Barrier,
    at: AtomicI64,
}

impl Start {
    pub(crate) fn of(threads: usize) -> Start {
        Start { all: Barrier::new(threads), at: AtomicI64::new(0) }
    }

    /// Waits for the others; returns the time when the scenario begins, the same for all.
    pub(crate) fn wait(&self) -> i64 {
        if self.all.wait().is_leader() {
            self.at.store(now_ns() + 10_000_000, Relaxed);
        }
        self.all.wait();
        self.at.load(Relaxed)
    }
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

/// Runs `work` on a real-time thread of its own that is bound to the stage and has its ring.
pub(crate) fn on_stage<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    priority: i32,
    work: impl FnOnce() -> T + Send + 'scope,
) -> std::thread::ScopedJoinHandle<'scope, T> {
    let run = move || {
        pin(stage());
        fifo(priority);
        ft_user::thread_init();
        work()
    };
    std::thread::Builder::new().name(name.into()).spawn_scoped(scope, run).expect("spawn")
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
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// For how long the calling thread has run since it began, ns.
pub(crate) fn cpu_ns() -> i64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for writing.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Two readings of the clock in a loop that are further apart than this have something between them: no
/// switch to another thread and back takes less.
const GAP_NS: i64 = 1_000;

/// Keeps the CPU until `CLOCK_MONOTONIC` reaches `ns`. Returns for how long it did not have it, at most: the
/// sum of the gaps that it saw in its own readings.
pub(crate) fn spin_until(ns: i64) -> i64 {
    spin_with(ns, std::hint::spin_loop)
}

/// [`spin_until`], and calls `each` between any two readings.
pub(crate) fn spin_with(ns: i64, mut each: impl FnMut()) -> i64 {
    let (mut lost, mut last) = (0, now_ns());
    while last < ns {
        each();
        let now = now_ns();
        if now - last > GAP_NS {
            lost += now - last;
        }
        last = now;
    }
    lost
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
    let usage = usage();
    (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64)
}

/// What the kernel counts of the calling thread.
pub(crate) fn usage() -> libc::rusage {
    // SAFETY: `usage` is plain data, valid when zeroed and valid for writing.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    }
}
