//! Which CPU, with which priority, for how long.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The CPU that subjects are measured on: the last. Tracers and their readers run on CPU 0.
pub fn measured() -> usize {
    // SAFETY: takes no pointer.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    cpus.max(1) as usize - 1
}

/// Binds the calling thread, and those that it starts, to one CPU.
pub fn pin(cpu: usize) {
    // SAFETY: `set` is a plain bit set, of the size that is said.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Lets a program that is to be started run on all CPUs, wherever this one may.
pub fn everywhere(command: &mut Command) -> &mut Command {
    let unbind = || {
        // SAFETY: `set` is a plain bit set, of the size that is said, and all numbers fit it.
        let done = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            (0..libc::CPU_SETSIZE as usize).for_each(|cpu| libc::CPU_SET(cpu, &mut set));
            libc::sched_setaffinity(0, size_of_val(&set), &set)
        };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes one system call.
    unsafe { command.pre_exec(unbind) }
}

/// Memory locked and SCHED_FIFO, priority 80; false when that is refused.
pub fn real_time() -> bool {
    let parameter = libc::sched_param { sched_priority: 80 };
    // SAFETY: `parameter` is valid; the other call takes no pointer.
    unsafe {
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0
            && libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) == 0
    }
}

/// CPU time of this thread so far, seconds.
pub fn of_this_thread() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU time of this process so far, seconds.
pub fn of_this_process() -> f64 {
    spent(libc::RUSAGE_SELF)
}

/// CPU time of the children that were waited for, and of theirs, seconds.
pub fn of_children() -> f64 {
    spent(libc::RUSAGE_CHILDREN)
}

fn spent(who: libc::c_int) -> f64 {
    // SAFETY: all of `rusage` may be zero, and the call writes to it alone.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
