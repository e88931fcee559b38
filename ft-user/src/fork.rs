//! Fork: the child starts a memfd and a registration of its own.
//!
//! Memory that parent and child share must have one writer per ring, so the child lets go of the parent's
//! rings before it writes anything. From before the fork until then its signals are blocked.
//!
//! `vfork` and `posix_spawn` need nothing: their child borrows the parent's memory and thread. A child
//! made by `_Fork` or by a bare `clone` runs no fork handlers: it must not write events.

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
    LOCK.before_fork();
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
    // SAFETY: a forked child has one thread, and it is here.
    if let Some((config, counting)) = unsafe { process::forget() } {
        // A child that gets no memfd goes on untraced, as a process without one does.
        if let (Ok((memfd, _)), Ok(socket)) = (process::start(config, &held), register::address()) {
            memfd.header().counting.store(counting.0, Relaxed);
            // What the parent has enabled is enabled here too, so there is no need for an answer.
            register::announce(memfd.fd(), &socket);
        }
    }
}
