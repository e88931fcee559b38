//! Which CPU, with which priority.

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

/// Memory locked and SCHED_FIFO, priority 80; false when that is refused.
pub fn real_time() -> bool {
    let parameter = libc::sched_param { sched_priority: 80 };
    // SAFETY: `parameter` is valid; the other call takes no pointer.
    unsafe {
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0
            && libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) == 0
    }
}
