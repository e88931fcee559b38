//! The reader-writer lock.

use core::panic::Location;

use ::lock_api_0_4 as api;

use super::Acquired;
use crate::sync::place::{Place, tell};

/// A raw reader-writer lock, traced. See the [module](super) for its use.
#[derive(Debug)]
pub struct RawRwLock<R> {
    name: Option<&'static str>,
    at: Acquired,
    raw: R,
}

impl<R: api::RawRwLock> RawRwLock<R> {
    const fn with(name: Option<&'static str>) -> Self {
        RawRwLock { name, at: Acquired::nowhere(), raw: R::INIT }
    }

    /// An unlocked lock with a name for reports, for `lock_api::RwLock::from_raw`. Several may share one
    /// name.
    pub const fn named(name: &'static str) -> Self {
        Self::with(Some(name))
    }

    /// What the events call this lock.
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// The lock is taken: waits for it as `attempt` does, which may give up.
    #[cold]
    #[inline(never)]
    fn wait_shared(&self, at: Place, attempt: impl FnOnce(&R) -> bool) -> bool {
        tell!(LockWait, "lock.rwlock_read_wait", self, at);
        let acquired = attempt(&self.raw);
        if acquired {
            self.acquired_shared(at);
        } else {
            tell!(LockAbandon, "lock.rwlock_read_abandon", self, at);
        }
        acquired
    }

    #[inline(always)]
    fn acquired_shared(&self, at: Place) {
        tell!(LockAcquire, "lock.rwlock_read_acquire", self, at);
    }

    #[inline(always)]
    fn released_shared(&self) {
        tell!(LockRelease, "lock.rwlock_read_release", self, None);
    }

    /// The lock is taken: waits for it as `attempt` does, which may give up.
    #[cold]
    #[inline(never)]
    fn wait_exclusive(&self, at: Place, attempt: impl FnOnce(&R) -> bool) -> bool {
        tell!(LockWait, "lock.rwlock_write_wait", self, at);
        let acquired = attempt(&self.raw);
        if acquired {
            self.acquired_exclusive(at);
        } else {
            tell!(LockAbandon, "lock.rwlock_write_abandon", self, at);
        }
        acquired
    }

    #[inline(always)]
    fn acquired_exclusive(&self, at: Place) {
        self.at.set(at);
        tell!(LockAcquire, "lock.rwlock_write_acquire", self, at);
    }

    #[inline(always)]
    fn released_exclusive(&self) {
        tell!(LockRelease, "lock.rwlock_write_release", self, self.at.get());
    }
}

// SAFETY: locking and unlocking are those of the raw lock.
unsafe impl<R: api::RawRwLock> api::RawRwLock for RawRwLock<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for a constant")]
    const INIT: Self = Self::with(None);

    type GuardMarker = R::GuardMarker;

    #[track_caller]
    #[inline]
    fn lock_shared(&self) {
        let at = Location::caller();
        if self.raw.try_lock_shared() {
            self.acquired_shared(at);
        } else {
            self.wait_shared(at, |raw| {
                raw.lock_shared();
                true
            });
        }
    }

    #[track_caller]
    #[inline]
    fn try_lock_shared(&self) -> bool {
        let acquired = self.raw.try_lock_shared();
        if acquired {
            self.acquired_shared(Location::caller());
        }
        acquired
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.released_shared();
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.unlock_shared() };
    }

    #[track_caller]
    #[inline]
    fn lock_exclusive(&self) {
        let at = Location::caller();
        if self.raw.try_lock_exclusive() {
            self.acquired_exclusive(at);
        } else {
            self.wait_exclusive(at, |raw| {
                raw.lock_exclusive();
                true
            });
        }
    }

    #[track_caller]
    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        let acquired = self.raw.try_lock_exclusive();
        if acquired {
            self.acquired_exclusive(Location::caller());
        }
        acquired
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.released_exclusive();
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.raw.unlock_exclusive() };
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
    unsafe fn unlock_shared_fair(&self) {
        self.released_shared();
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.unlock_shared_fair() };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        self.released_exclusive();
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.raw.unlock_exclusive_fair() };
    }

    #[track_caller]
    unsafe fn bump_shared(&self) {
        self.released_shared();
        // SAFETY: the caller holds the lock.
        unsafe { self.raw.bump_shared() };
        self.acquired_shared(Location::caller());
    }

    #[track_caller]
    unsafe fn bump_exclusive(&self) {
        self.released_exclusive();
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.raw.bump_exclusive() };
        self.acquired_exclusive(Location::caller());
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawRwLockDowngrade> api::RawRwLockDowngrade for RawRwLock<R> {
    /// Told as the end of writing and the begin of reading; no writer comes in between.
    #[track_caller]
    unsafe fn downgrade(&self) {
        self.released_exclusive();
        // SAFETY: the caller holds the lock for writing.
        unsafe { self.raw.downgrade() };
        self.acquired_shared(Location::caller());
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawRwLockTimed> api::RawRwLockTimed for RawRwLock<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: R::Duration) -> bool {
        let at = Location::caller();
        api::RawRwLock::try_lock_shared(self)
            || self.wait_shared(at, |raw| raw.try_lock_shared_for(timeout))
    }

    #[track_caller]
    fn try_lock_shared_until(&self, timeout: R::Instant) -> bool {
        let at = Location::caller();
        api::RawRwLock::try_lock_shared(self)
            || self.wait_shared(at, |raw| raw.try_lock_shared_until(timeout))
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: R::Duration) -> bool {
        let at = Location::caller();
        api::RawRwLock::try_lock_exclusive(self)
            || self.wait_exclusive(at, |raw| raw.try_lock_exclusive_for(timeout))
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: R::Instant) -> bool {
        let at = Location::caller();
        api::RawRwLock::try_lock_exclusive(self)
            || self.wait_exclusive(at, |raw| raw.try_lock_exclusive_until(timeout))
    }
}
