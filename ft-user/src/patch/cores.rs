//! Cores that run this process serialise: from then on none executes what stood in the text before.

use crate::kernel;

// linux/membarrier.h
const QUERY: usize = 0;
const SYNC_CORE: usize = 1 << 5;
const REGISTER_SYNC_CORE: usize = 1 << 6;

/// Prepares the process for [`serialise`]. Fails on kernels older than 4.16.
pub(super) fn register() {
    let _ = membarrier(REGISTER_SYNC_CORE);
}

/// Has each core serialise; whether the kernel says so.
pub(super) fn ask_to_serialise() -> bool {
    membarrier(SYNC_CORE) == Ok(0)
}

/// Has each core serialise; false where that is not certain.
///
/// A filter of system calls can refuse `membarrier`, or say that all is well and do nothing: then it does not list the command
/// either. A process with one thread needs no other core.
pub(super) fn serialise() -> bool {
    let is_known = membarrier(QUERY).is_ok_and(|known| known & SYNC_CORE != 0);
    if is_known && ask_to_serialise() {
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
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    let threads = kernel::File::open_terminated(c"/proc/self/task", flags);
    // With the directory itself, and its parent.
    threads.is_ok_and(|threads| threads.entries() == Ok(3))
}

fn membarrier(command: usize) -> kernel::Result<usize> {
    // SAFETY: takes no pointer.
    unsafe { kernel::call(libc::SYS_membarrier, [command, 0, 0]) }
}
