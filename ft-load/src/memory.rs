//! Memory that stays where it is: a page fault would look like a delay of the machine.

use std::io;

use crate::Error;

/// Locks all memory that the process has now; what comes later is not, so that nothing that is refused then breaks it.
///
/// # Errors
///
/// A sentence with the remedy where the user may not have as much.
pub(crate) fn lock() -> Result<(), Error> {
    // SAFETY: takes no pointer.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(Error::refused(match error.raw_os_error() {
        Some(libc::ENOMEM | libc::EPERM) => {
            "memory cannot be locked by this user; run it as root or with CAP_IPC_LOCK, or raise `ulimit -l`".into()
        }
        _ => format!("memory cannot be locked ({error}); close other programs and try again"),
    }))
}

/// Lets go of it again.
pub(crate) fn unlock() {
    // SAFETY: takes no pointer. It cannot fail where nothing else has a hand in it, and nothing depends on it.
    unsafe { libc::munlockall() };
}
