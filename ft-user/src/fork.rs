//! Fork: the child starts a memfd and a registration of its own.
//!
//! Memory that parent and child share must have one writer per ring, so the child lets go of the parent's
//! rings before it writes anything ([`process::begin_child`]). From before the fork until then its signals are blocked.
//!
//! The parent can have been anywhere, and its other threads, too: one may have a lock of the loader or of an allocator that nobody
//! gives back in the child. So the child makes system calls, and copies what the parent has written; it walks no list, allocates nothing,
//! and takes no lock but the one that it has itself taken before the fork.
//!
//! A child of `vfork` borrows the parent's memory and thread: what it writes is the parent's, and it claims no ring, which would be that
//! of another thread for the parent ([`crate::claim`]). A child made by `_Fork` or by a bare `clone` runs no fork handlers: it must not
//! write events.

use core::sync::atomic::{AtomicBool, Ordering::*};

use crate::InitError;
use crate::process::{self, LOCK};
use crate::register;

static PREPARED: AtomicBool = AtomicBool::new(false);

/// Sets up the handlers. Called with the process lock held.
pub(crate) fn prepare() -> Result<(), InitError> {
    if !PREPARED.load(Relaxed) {
        // SAFETY: the handlers fit each other, see `Lock`.
        let errno = unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        if errno != 0 {
            return Err(InitError::System("pthread_atfork", errno));
        }
        PREPARED.store(true, Relaxed);
    }
    Ok(())
}

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    // The libc crate does not declare it for Linux.
    fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> libc::c_int;
}

unsafe extern "C" fn before() {
    LOCK.before_fork(process::note_own_ring);
}

unsafe extern "C" fn in_parent() {
    // SAFETY: the C library calls this once after `before`, on the same thread.
    drop(unsafe { LOCK.after_fork() });
}

unsafe extern "C" fn in_child() {
    // SAFETY: as in the parent.
    let held = unsafe { LOCK.after_fork() };
    #[cfg(feature = "slice")]
    crate::sync::slice::after_fork();
    // What the parent has enabled is enabled here too, so there is no need for an answer.
    let tell = |file| register::address().is_ok_and(|socket| register::announce(file, &socket));
    // SAFETY: a forked child has one thread, and it is here; whoever holds the lock has its signals blocked.
    unsafe { process::begin_child(&held, tell) };
}
