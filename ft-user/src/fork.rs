//! Fork: the child starts a memfd and a registration of its own.
//!
//! Memory that parent and child share must have one writer per ring, so the child lets go of the parent's
//! rings before it writes anything ([`process::begin_child`]). Handlers of other libraries run between the fork and ours, in an order that
//! nobody chooses ([pthread_atfork(3)]), and signals come in: what they write in the parent goes to the shared ring, for their thread has
//! set its own one aside; in the child their first event is what begins the child.
//!
//! The parent can have been anywhere, and its other threads, too: one may have a lock of the loader or of an allocator that nobody
//! gives back in the child. So the child makes system calls, and copies what the parent has written; it walks no list, allocates nothing,
//! and takes no lock but the one that it has itself lent before the fork. A child whose parent was switching sites in another thread all
//! the same, because a fork handler waited for that thread or it for a fork handler, is not traced, nor are its own children; it is
//! counted.
//!
//! [pthread_atfork(3)]: https://man7.org/linux/man-pages/man3/pthread_atfork.3.html
//!
//! A child of `vfork` borrows the parent's memory and thread ([`own_memory`]): what it writes is the parent's, and it claims no ring, which
//! would be that of another thread for the parent ([`crate::claim`]). A child made by `_Fork` or by a bare `clone` runs no fork handlers: it
//! must not write events.

use core::sync::atomic::{AtomicBool, Ordering::*};

use crate::critical::SignalsBlocked;
use crate::process::{self, LOCK};
use crate::thread::Claim;
use crate::{InitError, arch, at_fork, own_memory, register};

static PREPARED: AtomicBool = AtomicBool::new(false);

/// Sets up the handlers. Called with the process lock held.
pub(crate) fn prepare() -> Result<(), InitError> {
    own_memory::prepare();
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
    let blocked = SignalsBlocked::new();
    let is_outermost = at_fork::set_aside();
    // Handlers of others may wait for what a signal's handler does in this thread, as a collector of garbage that stops all threads.
    drop(blocked);
    if is_outermost {
        LOCK.lend();
    }
}

unsafe extern "C" fn in_parent() {
    let _blocked = SignalsBlocked::new();
    if at_fork::take_up() {
        LOCK.take_back();
    }
}

unsafe extern "C" fn in_child() {
    // A handler that was before this one may have begun it.
    if is_child() {
        let _blocked = SignalsBlocked::new();
        // A handler that came between `before` and the fork has forked in turn: nothing is set aside in its child, where this fork was.
        if at_fork::is_none() {
            at_fork::set_aside();
        }
        begin_child();
    }
}

/// Where this thread has set its ring aside: begins the child, if this is one.
pub(crate) fn look() {
    if arch::tls_claim() == Claim::Forks as usize && is_child() {
        let _blocked = SignalsBlocked::new();
        begin_child();
    }
}

/// Whether this is a forked child that has no memfd of its own yet. Its number does not tell where it is the same in another PID
/// namespace.
#[cold]
pub(crate) fn is_child() -> bool {
    own_memory::is_copy().unwrap_or_else(|| !process::is_this())
}

/// In a child, once. The caller's signals are blocked.
fn begin_child() {
    let held = LOCK.after_fork();
    let Some(at_fork) = at_fork::give_up() else { return };
    own_memory::keep();
    at_fork::begin_child();
    #[cfg(feature = "slice")]
    crate::sync::slice::after_fork();
    // What the parent has enabled is enabled here too, so there is no need for an answer.
    let tell = |file| register::kept().is_some_and(|socket| register::announce(file, socket));
    // SAFETY: a forked child has one thread, and it is here, with its signals blocked.
    unsafe { process::begin_child(&at_fork, held.as_ref(), tell) };
}
