//! Fork: the child starts a memfd and a registration of its own.
//!
//! Memory that parent and child share must have one writer per ring, so the child lets go of the parent's
//! rings before it writes anything ([`process::begin_child`]). From before the fork until then its signals are blocked, but for those of
//! faults: handlers of other libraries run meanwhile, in an order that nobody chooses ([pthread_atfork(3)]). What they write in the parent
//! goes to the shared ring, for their thread has set its own one aside; in the child their first event is what begins the child.
//!
//! The parent can have been anywhere, and its other threads, too: one may have a lock of the loader or of an allocator that nobody
//! gives back in the child. So the child makes system calls, and copies what the parent has written; it walks no list, allocates nothing,
//! and takes no lock but the one that it has itself lent before the fork. A child whose parent was switching sites in another thread all
//! the same, because a fork handler waited for that thread, is not traced, and counted.
//!
//! [pthread_atfork(3)]: https://man7.org/linux/man-pages/man3/pthread_atfork.3.html
//!
//! A child of `vfork` borrows the parent's memory and thread: what it writes is the parent's, and it claims no ring, which would be that
//! of another thread for the parent ([`crate::claim`]). A child made by `_Fork` or by a bare `clone` runs no fork handlers: it must not
//! write events.

use core::sync::atomic::{AtomicBool, Ordering::*};

use crate::memfd::Memfd;
use crate::process::{self, LOCK};
use crate::{InitError, at_fork, critical, kernel, register};

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
    let mask = critical::block_all_but_faults();
    if at_fork::set_aside(mask) {
        LOCK.lend();
    } else {
        critical::unblock(mask);
    }
}

unsafe extern "C" fn in_parent() {
    if let Some(mask) = at_fork::take_up() {
        LOCK.take_back();
        critical::unblock(mask);
    }
}

unsafe extern "C" fn in_child() {
    begin_child();
}

/// Where this thread has set its ring aside: begins the child, if this is one.
#[cold]
pub(crate) fn look() {
    let is_child = |memfd: Memfd| ![0, memfd.header().pid].contains(&kernel::getpid());
    if process::memfd().is_some_and(is_child) {
        begin_child();
    }
}

/// In a child, once.
fn begin_child() {
    let held = LOCK.after_fork();
    // A handler that was before this one has begun it.
    let Some(at_fork) = at_fork::give_up() else { return };
    at_fork::begin_child();
    #[cfg(feature = "slice")]
    crate::sync::slice::after_fork();
    // What the parent has enabled is enabled here too, so there is no need for an answer.
    let tell = |file| register::address().is_ok_and(|socket| register::announce(file, &socket));
    // SAFETY: a forked child has one thread, and it is here, with its signals blocked.
    unsafe { process::begin_child(&at_fork, held.as_ref(), tell) };
    drop(held);
    critical::unblock(at_fork.mask);
}
