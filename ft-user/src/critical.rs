//! Sections of the set-up code that a signal handler or a fork must not cut in two.
//!
//! None of this is on the event path: the lock serves `init`, `enable` and fork.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::kernel;

/// All signals.
static EVERY: [u64; size_of::<libc::sigset_t>() / 8] = [u64::MAX; size_of::<libc::sigset_t>() / 8];

/// All signals of this thread are blocked while this lives.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut before = MaybeUninit::uninit();
        // Of those that the C library keeps for itself it blocks none.
        // SAFETY: both sets are initialised before they are read; the call cannot fail with valid
        // arguments.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, EVERY.as_ptr().cast(), before.as_mut_ptr());
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

/// Nobody has the lock.
const FREE: u32 = 0;
/// Somebody has it, and nobody waits.
const HELD: u32 = 1;
/// Somebody has it, and others may wait.
const WAITED_FOR: u32 = 2;

/// A lock that can be held across a fork and given back on both sides, which a `std` mutex cannot. Its
/// holder's signals are blocked, so that no handler that forks can wait for its own thread.
///
/// Not a pthread mutex either: a library that interposes those, as Feather-Trace's own does, would be
/// called from within its set-up. The states are those of "Futexes Are Tricky" (Drepper, 2011).
pub(crate) struct Lock {
    state: AtomicU32,
    /// The signal mask of the thread that holds the lock across a fork.
    at_fork: UnsafeCell<Option<SignalsBlocked>>,
}

// SAFETY: `at_fork` is touched by the holder of the lock only.
unsafe impl Sync for Lock {}

/// The lock is held while this lives.
pub(crate) struct Held<'a> {
    lock: &'a Lock,
    signals: Option<SignalsBlocked>,
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Lock { state: AtomicU32::new(FREE), at_fork: UnsafeCell::new(None) }
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        let signals = SignalsBlocked::new();
        // SYNC: process-lock
        if self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            // SYNC: process-lock
            while self.state.swap(WAITED_FOR, Acquire) != FREE {
                self.futex(libc::FUTEX_WAIT, WAITED_FOR);
            }
        }
        Held { lock: self, signals: Some(signals) }
    }

    /// The same, if nobody holds it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let signals = SignalsBlocked::new();
        // SYNC: process-lock
        self.state.compare_exchange(FREE, HELD, Acquire, Relaxed).ok()?;
        Some(Held { lock: self, signals: Some(signals) })
    }

    /// Waits while the state is `argument`, or wakes as many threads.
    fn futex(&self, operation: libc::c_int, argument: u32) {
        let word = self.state.as_ptr().expose_provenance();
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        let arguments = [word, operation as usize, argument as usize, 0];
        // SAFETY: the word lives as long as the lock; there is no time-out.
        let _ = unsafe { kernel::call(libc::SYS_futex, arguments) };
    }

    /// Holds the lock until [`Lock::after_fork`], and does this at first.
    pub(crate) fn before_fork(&self, first: impl FnOnce(&Held<'_>)) {
        let mut held = self.hold();
        first(&held);
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
        // SYNC: process-lock
        if self.lock.state.swap(FREE, Release) == WAITED_FOR {
            self.lock.futex(libc::FUTEX_WAKE, 1);
        }
        self.signals.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        struct Counter(UnsafeCell<u32>);
        // SAFETY: touched under the lock only, which is what the test shows.
        unsafe impl Sync for Counter {}
        static LOCK: Lock = Lock::new();
        static COUNTER: Counter = Counter(UnsafeCell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _held = LOCK.hold();
                        // SAFETY: the lock is held.
                        unsafe { *COUNTER.0.get() += 1 };
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { *COUNTER.0.get() }, 4000);
        assert_eq!(LOCK.state.load(Relaxed), FREE);
    }
}
