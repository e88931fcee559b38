//! Sections of the set-up code that a signal handler or a fork must not cut in two.
//!
//! None of this is on the event path: the lock serves `init`, `enable` and fork.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// All signals of this thread are blocked while this lives.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are initialised before they are read; the call cannot fail with valid
        // arguments.
        unsafe {
            let mut all = MaybeUninit::uninit();
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            SignalsBlocked(before.assume_init())
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is that of before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, core::ptr::null_mut()) };
    }
}

/// A lock that can be held across a fork and given back on both sides, which a `std` mutex cannot. Its
/// holder's signals are blocked, so that no handler that forks can wait for its own thread.
pub(crate) struct Lock {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    /// The signal mask of the thread that holds the lock across a fork.
    at_fork: UnsafeCell<Option<SignalsBlocked>>,
}

// SAFETY: the mutex is made for use by several threads, and `at_fork` is touched by its holder only.
unsafe impl Sync for Lock {}

/// The lock is held while this lives.
pub(crate) struct Held<'a> {
    lock: &'a Lock,
    signals: Option<SignalsBlocked>,
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Lock {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            at_fork: UnsafeCell::new(None),
        }
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        let signals = SignalsBlocked::new();
        // SAFETY: a static mutex; its holder never locks it again.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        Held { lock: self, signals: Some(signals) }
    }

    /// Holds the lock until [`Lock::after_fork`].
    pub(crate) fn before_fork(&self) {
        let mut held = self.hold();
        // SAFETY: this thread holds the lock.
        unsafe { *self.at_fork.get() = held.signals.take() };
        core::mem::forget(held);
    }

    /// The lock as [`Lock::before_fork`] has left it, in the parent and in the child.
    ///
    /// # Safety
    ///
    /// Called once, on the thread that has called `before_fork`.
    pub(crate) unsafe fn after_fork(&self) -> Held<'_> {
        // SAFETY: this thread holds the lock, says the caller.
        let signals = unsafe { (*self.at_fork.get()).take() };
        Held { lock: self, signals }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.lock.mutex.get()) };
        self.signals.take();
    }
}
