//! The reader-writer lock.

use core::panic::Location;

use ::lock_api as api;

use super::Held;
use crate::sync::place::{Place, tell};

/// A raw reader-writer lock, traced. See the [module](super) for its use.
#[derive(Debug)]
pub struct RawRwLock<R> {
    name: Option<&'static str>,
    raw: R,
}

impl<R: api::RawRwLock> RawRwLock<R> {
    /// An unlocked lock with a name for reports, for `lock_api::RwLock::from_raw`. Several may share one
    /// name.
    pub const fn named(name: &'static str) -> Self {
        RawRwLock { name: Some(name), raw: R::INIT }
    }

    /// What the events call this lock.
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// The lock is taken: waits for it as `attempt` does, which may give up.
    #[cold]
    #[inline(never)]
    fn wait_shared(
        &self,
        at: Place,
        attempt: impl FnOnce(&R) -> Option<R::SharedGuard>,
    ) -> Option<Held<R::SharedGuard>> {
        tell!(LockWait, "lock.rwlock_read_wait", self, at);
        match attempt(&self.raw) {
            Some(inner) => Some(self.acquired_shared(inner, at)),
            None => {
                tell!(LockAbandon, "lock.rwlock_read_abandon", self, at);
                None
            }
        }
    }

    /// The lock is taken.
    #[cold]
    #[inline(never)]
    fn shared_slow(&self, at: Place) -> Held<R::SharedGuard> {
        tell!(LockWait, "lock.rwlock_read_wait", self, at);
        self.acquired_shared(self.raw.lock_shared(), at)
    }

    #[inline(always)]
    fn acquired_shared(&self, inner: R::SharedGuard, at: Place) -> Held<R::SharedGuard> {
        tell!(LockAcquire, "lock.rwlock_read_acquire", self, at);
        Held { inner, at }
    }

    #[inline(always)]
    fn released_shared(&self, guard: Held<R::SharedGuard>) -> R::SharedGuard {
        tell!(LockRelease, "lock.rwlock_read_release", self, guard.at);
        guard.inner
    }

    /// The lock is taken: waits for it as `attempt` does, which may give up.
    #[cold]
    #[inline(never)]
    fn wait_exclusive(
        &self,
        at: Place,
        attempt: impl FnOnce(&R) -> Option<R::ExclusiveGuard>,
    ) -> Option<Held<R::ExclusiveGuard>> {
        tell!(LockWait, "lock.rwlock_write_wait", self, at);
        match attempt(&self.raw) {
            Some(inner) => Some(self.acquired_exclusive(inner, at)),
            None => {
                tell!(LockAbandon, "lock.rwlock_write_abandon", self, at);
                None
            }
        }
    }

    /// The lock is taken.
    #[cold]
    #[inline(never)]
    fn exclusive_slow(&self, at: Place) -> Held<R::ExclusiveGuard> {
        tell!(LockWait, "lock.rwlock_write_wait", self, at);
        self.acquired_exclusive(self.raw.lock_exclusive(), at)
    }

    #[inline(always)]
    fn acquired_exclusive(&self, inner: R::ExclusiveGuard, at: Place) -> Held<R::ExclusiveGuard> {
        tell!(LockAcquire, "lock.rwlock_write_acquire", self, at);
        Held { inner, at }
    }

    #[inline(always)]
    fn released_exclusive(&self, guard: Held<R::ExclusiveGuard>) -> R::ExclusiveGuard {
        tell!(LockRelease, "lock.rwlock_write_release", self, guard.at);
        guard.inner
    }
}

// SAFETY: locking and unlocking are those of the raw lock, whose guard each unlock gets back.
unsafe impl<R: api::RawRwLock> api::RawRwLock for RawRwLock<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for a constant")]
    const INIT: Self = RawRwLock { name: None, raw: R::INIT };

    type SharedGuard = Held<R::SharedGuard>;

    #[track_caller]
    #[inline]
    fn lock_shared(&self) -> Self::SharedGuard {
        let at = Location::caller();
        match self.raw.try_lock_shared() {
            Some(inner) => self.acquired_shared(inner, at),
            None => self.shared_slow(at),
        }
    }

    #[track_caller]
    #[inline]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        let at = Location::caller();
        self.raw.try_lock_shared().map(|inner| self.acquired_shared(inner, at))
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        let inner = self.released_shared(guard);
        // SAFETY: the caller holds the lock with this guard.
        unsafe { self.raw.unlock_shared(inner) };
    }

    type ExclusiveGuard = Held<R::ExclusiveGuard>;

    #[track_caller]
    #[inline]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        let at = Location::caller();
        match self.raw.try_lock_exclusive() {
            Some(inner) => self.acquired_exclusive(inner, at),
            None => self.exclusive_slow(at),
        }
    }

    #[track_caller]
    #[inline]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        let at = Location::caller();
        self.raw.try_lock_exclusive().map(|inner| self.acquired_exclusive(inner, at))
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        let inner = self.released_exclusive(guard);
        // SAFETY: the caller holds the lock with this guard.
        unsafe { self.raw.unlock_exclusive(inner) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawRwLockFair> api::RawRwLockFair for RawRwLock<R> {
    #[inline]
    unsafe fn unlock_shared_fair(&self, guard: Self::SharedGuard) {
        let inner = self.released_shared(guard);
        // SAFETY: the caller holds the lock with this guard.
        unsafe { self.raw.unlock_shared_fair(inner) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, guard: Self::ExclusiveGuard) {
        let inner = self.released_exclusive(guard);
        // SAFETY: the caller holds the lock with this guard.
        unsafe { self.raw.unlock_exclusive_fair(inner) };
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawRwLockDowngrade> api::RawRwLockDowngrade for RawRwLock<R> {
    /// Told as the end of writing and the begin of reading; no writer comes in between.
    unsafe fn downgrade(&self, guard: Self::ExclusiveGuard) -> Self::SharedGuard {
        let at = guard.at;
        let inner = self.released_exclusive(guard);
        // SAFETY: the caller holds the lock for writing with this guard.
        let inner = unsafe { self.raw.downgrade(inner) };
        self.acquired_shared(inner, at)
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawRwLockTimed> api::RawRwLockTimed for RawRwLock<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: R::Duration) -> Option<Self::SharedGuard> {
        let at = Location::caller();
        match self.raw.try_lock_shared() {
            Some(inner) => Some(self.acquired_shared(inner, at)),
            None => self.wait_shared(at, |raw| raw.try_lock_shared_for(timeout)),
        }
    }

    #[track_caller]
    fn try_lock_shared_until(&self, timeout: R::Instant) -> Option<Self::SharedGuard> {
        let at = Location::caller();
        match self.raw.try_lock_shared() {
            Some(inner) => Some(self.acquired_shared(inner, at)),
            None => self.wait_shared(at, |raw| raw.try_lock_shared_until(timeout)),
        }
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: R::Duration) -> Option<Self::ExclusiveGuard> {
        let at = Location::caller();
        match self.raw.try_lock_exclusive() {
            Some(inner) => Some(self.acquired_exclusive(inner, at)),
            None => self.wait_exclusive(at, |raw| raw.try_lock_exclusive_for(timeout)),
        }
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: R::Instant) -> Option<Self::ExclusiveGuard> {
        let at = Location::caller();
        match self.raw.try_lock_exclusive() {
            Some(inner) => Some(self.acquired_exclusive(inner, at)),
            None => self.wait_exclusive(at, |raw| raw.try_lock_exclusive_until(timeout)),
        }
    }
}
