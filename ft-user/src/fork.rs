//! Fork: the child starts a memfd and a registration of its own.
//!
//! Memory that parent and child share must have one writer per ring, so the child lets go of the parent's
//! rings before it writes anything ([`process::begin_child`]). Handlers of other libraries run between the fork and ours, in an order that
//! nobody chooses ([pthread_atfork(3)]), and signals come in: what they write in the parent goes to the shared ring, for their thread has
//! set its own one aside; in the child their first event is what begins the child. Until then, what comes from elsewhere in the child (a
//! thread that such a handler has made, a child of `vfork`) is counted as lost: there is no memfd that would be its own.
//!
//! The parent can have been anywhere, and its other threads, too: one may have a lock of the loader or of an allocator that nobody
//! gives back in the child. So the child makes system calls, and copies what the parent has written; it walks no list, allocates nothing,
//! and takes no lock but the one that nobody had before the fork. A child whose parent was switching sites in another thread all
//! the same, because a fork handler waited for that thread or it for a fork handler, or forks took long or followed each other without
//! a pause, is not traced, nor are its own children; it is counted.
//!
//! [pthread_atfork(3)]: https://man7.org/linux/man-pages/man3/pthread_atfork.3.html
//!
//! A child of `vfork` borrows the parent's memory and thread ([`own_memory`]): what it writes is the parent's, and it claims no ring, which
//! would be that of another thread for the parent ([`crate::claim`]). A child made by `_Fork` or by a bare `clone` runs no fork handlers, nor
//! does one whose fork had begun when tracing was started: if its thread had a ring, its events go to its parent's.

use core::sync::atomic::{AtomicBool, Ordering::*};

use crate::at_fork::AtFork;
use crate::critical::SignalsBlocked;
use crate::process::{self, LOCK};
use crate::{InitError, at_fork, claim, kernel, own_memory, register};

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

type Handler = Option<extern "C" fn()>;

unsafe extern "C" {
    // The libc crate does not declare it for Linux.
    fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> libc::c_int;
}

extern "C" fn before() {
    let blocked = SignalsBlocked::new();
    let frame = (&raw const blocked).addr();
    if at_fork::is_left(frame) {
        end();
    }
    let is_outermost = at_fork::set_aside(frame);
    // Handlers of others, and whoever has the lock, may wait for what a signal's handler does in this thread, as a collector of garbage
    // that stops all threads.
    drop(blocked);
    if is_outermost {
        LOCK.begin_fork();
    }
}

extern "C" fn in_parent() {
    let _blocked = SignalsBlocked::new();
    end();
}

/// Signals are blocked.
fn end() {
    if at_fork::take_up() {
        LOCK.end_fork();
    }
}

extern "C" fn in_child() {
    // A handler that was before this one may have begun it, or one of a signal that came in between.
    if is_child() {
        let _blocked = SignalsBlocked::new();
        if is_child() && is_forked_thread() {
            begin_child();
        }
    }
}

/// Begins the child, if this is the thread of one that has not begun.
pub(crate) fn look() {
    // To ask for the number of the process at each such event of a thread would cost too much.
    if own_memory::is_copy().unwrap_or_else(at_fork::is_forking) {
        in_child();
    }
}

/// Whether this is a forked child that has no memfd of its own yet. Its number does not tell where it is the same in another PID
/// namespace.
#[cold]
pub(crate) fn is_child() -> bool {
    own_memory::is_copy().unwrap_or_else(|| !process::is_this())
}

/// In a forked child: whether this thread is the one that has forked. A child of its own that borrows its memory has another number than
/// the C library knows of it (`vfork`); a thread that it has made is not the first of the process.
fn is_forked_thread() -> bool {
    let tid = kernel::gettid();
    let is_known = [0, claim::known_tid()].contains(&tid);
    is_known && (at_fork::is_forking() || tid == kernel::getpid())
}

/// In a child, once. The caller's signals are blocked.
fn begin_child() {
    let held = LOCK.after_fork();
    // A handler that came between `before` and the fork has forked in turn, and there nothing is set aside; or the fork began before there
    // were handlers of ours.
    let at_fork = at_fork::give_up().unwrap_or_else(AtFork::now);
    at_fork::begin_child();
    #[cfg(feature = "slice")]
    crate::sync::slice::after_fork();
    // What the parent has enabled is enabled here too, so there is no need for an answer.
    let tell = |file| register::kept().is_some_and(|socket| register::announce(file, socket));
    // SAFETY: of the threads of a forked child that has not begun none has a ring but this one, whose signals are blocked.
    unsafe { process::begin_child(&at_fork, held.as_ref(), tell) };
}
