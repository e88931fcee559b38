//! The mutex, and waits for conditions with it.

use core::panic::Location;

use ::lock_api_0_4 as api;

use super::Acquired;
use crate::__event;
use crate::sync::place::{self, Place, tell};

/// A raw mutex, traced. See the [module](super) for its use.
pub struct RawMutex<R> {
    name: Option<&'static str>,
    at: Acquired,
    /// A whole mutex and not `R` alone, so that [`wait`] has a guard of it to pass on.
    inner: api::Mutex<R, Inner>,
}

/// What the guard that [`wait`] passes on protects: nothing. None can be made elsewhere, so that no other guard can be put
/// in the place of that one.
#[derive(Debug)]
pub struct Inner(());

impl<R: api::RawMutex> RawMutex<R> {
    const fn with(name: Option<&'static str>) -> Self {
        let inner = api::Mutex::from_raw(R::INIT, Inner(()));
        RawMutex { name, at: Acquired::nowhere(), inner }
    }

    /// An unlocked mutex with a name for reports, for `lock_api::Mutex::from_raw`. Several may share
    /// one name.
    pub const fn named(name: &'static str) -> Self {
        Self::with(Some(name))
    }

    /// What the events call this mutex.
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    #[inline(always)]
    fn raw(&self) -> &R {
        // SAFETY: nobody has a guard of the inner mutex but in `wait`, and unlocks it only as the caller of this one's
        // trait says.
        unsafe { self.inner.raw() }
    }

    /// The mutex is taken: waits for it as `attempt` does, which may give up.
    #[cold]
    #[inline(never)]
    fn wait(&self, at: Place, attempt: impl FnOnce(&R) -> bool) -> bool {
        tell!(LockWait, "lock.mutex_wait", self, at);
        let acquired = attempt(self.raw());
        if acquired {
            self.acquired(at);
        } else {
            tell!(LockAbandon, "lock.mutex_abandon", self, at);
        }
        acquired
    }

    #[inline(always)]
    fn acquired(&self, at: Place) {
        self.at.set(at);
        tell!(LockAcquire, "lock.mutex_acquire", self, at);
    }

    #[inline(always)]
    fn released(&self) {
        tell!(LockRelease, "lock.mutex_release", self, self.at.get());
    }
}

// SAFETY: locking and unlocking are those of the raw mutex.
unsafe impl<R: api::RawMutex> api::RawMutex for RawMutex<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for a constant")]
    const INIT: Self = Self::with(None);

    type GuardMarker = R::GuardMarker;

    #[track_caller]
    #[inline]
    fn lock(&self) {
        let at = Location::caller();
        if self.raw().try_lock() {
            self.acquired(at);
        } else {
            self.wait(at, |raw| {
                raw.lock();
                true
            });
        }
    }

    #[track_caller]
    #[inline]
    fn try_lock(&self) -> bool {
        let acquired = self.raw().try_lock();
        if acquired {
            self.acquired(Location::caller());
        }
        acquired
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.released();
        // SAFETY: the caller holds the mutex.
        unsafe { self.raw().unlock() };
    }

    fn is_locked(&self) -> bool {
        self.raw().is_locked()
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawMutexFair> api::RawMutexFair for RawMutex<R> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        self.released();
        // SAFETY: the caller holds the mutex.
        unsafe { self.raw().unlock_fair() };
    }

    #[track_caller]
    unsafe fn bump(&self) {
        self.released();
        // SAFETY: the caller holds the mutex.
        unsafe { self.raw().bump() };
        self.acquired(Location::caller());
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawMutexTimed> api::RawMutexTimed for RawMutex<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: R::Duration) -> bool {
        api::RawMutex::try_lock(self)
            || self.wait(Location::caller(), |raw| raw.try_lock_for(timeout))
    }

    #[track_caller]
    fn try_lock_until(&self, timeout: R::Instant) -> bool {
        api::RawMutex::try_lock(self)
            || self.wait(Location::caller(), |raw| raw.try_lock_until(timeout))
    }
}

/// Waits for a condition with a traced mutex, as `wait` does with the guard of the mutex that is wrapped; traces the wait
/// as the one of [`crate::sync::Condvar`].
///
#[cfg_attr(feature = "lock_api_0_4", doc = "```")]
#[cfg_attr(not(feature = "lock_api_0_4"), doc = "```ignore")]
/// # use {lock_api_0_4 as lock_api, parking_lot_0_12 as parking_lot};
/// use ft_user::lock_api_0_4::{RawMutex, wait};
/// use parking_lot::Condvar;
///
/// static DONE: lock_api::Mutex<RawMutex<parking_lot::RawMutex>, bool> =
///     lock_api::Mutex::from_raw(RawMutex::named("done"), false);
/// static CHANGED: Condvar = Condvar::new();
///
/// std::thread::spawn(|| {
///     *DONE.lock() = true;
///     CHANGED.notify_one();
/// });
/// let mut done = DONE.lock();
/// while !*done {
///     wait(&CHANGED, &mut done, Condvar::wait);
/// }
/// ```
#[track_caller]
pub fn wait<C, R: api::RawMutex, T: ?Sized, O>(
    condition: &C,
    guard: &mut api::MutexGuard<'_, RawMutex<R>, T>,
    wait: impl FnOnce(&C, &mut api::MutexGuard<'_, R, Inner>) -> O,
) -> O {
    let at = Location::caller();
    let address: *const () = core::ptr::from_ref(condition).cast();
    // SAFETY: the mutex is locked, and this function leaves it so.
    let mutex = unsafe { api::MutexGuard::mutex(guard).raw() };
    // SAFETY: locked, and no other guard of the inner mutex is in use: those of other calls have waited to their end.
    // `wait` cannot drop this one, since no other can take its place ([`Inner`]).
    let mut inner = core::mem::ManuallyDrop::new(unsafe { mutex.inner.make_guard_unchecked() });
    __event!(
        kind = CondWait, "lock.cond_wait",
        lock: *const () = mutex.address(), place: u64 = place::word(at, mutex.name), condition: *const () = address
    );
    let result = wait(condition, &mut inner);
    mutex.at.set(at);
    __event!(
        kind = CondWake, "lock.cond_wake",
        lock: *const () = mutex.address(), place: u64 = place::word(at, mutex.name), condition: *const () = address
    );
    result
}
