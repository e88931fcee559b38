//! Cores that run this process serialise: from then on none executes what stood in the text before.

// linux/membarrier.h
const QUERY: libc::c_long = 0;
const SYNC_CORE: libc::c_long = 1 << 5;
const REGISTER_SYNC_CORE: libc::c_long = 1 << 6;

/// Prepares the process for [`serialise`]. Fails on kernels older than 4.16.
pub(super) fn register() {
    membarrier(REGISTER_SYNC_CORE);
}

/// Has each core serialise; whether the kernel says so.
pub(super) fn ask_to_serialise() -> bool {
    membarrier(SYNC_CORE) == 0
}

/// Has each core serialise; false where that is not certain.
///
/// A filter of system calls can refuse `membarrier`, or say that all is well and do nothing: then it does not list the command
/// either. A process with one thread needs no other core.
pub(super) fn serialise() -> bool {
    let known = membarrier(QUERY);
    if known > 0 && known & SYNC_CORE != 0 && ask_to_serialise() {
        return true;
    }
    // Serialises this core (Intel SDM, volume 3A, 9.3). A core to which the thread goes next serialises when it changes the
    // address space.
    #[cfg(target_arch = "x86_64")]
    core::arch::x86_64::__cpuid(0);
    cfg!(target_arch = "x86_64") && is_alone()
}

/// Whether the calling thread is the only one of its process.
pub(crate) fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

fn membarrier(command: libc::c_long) -> libc::c_long {
    // SAFETY: takes no pointer.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
