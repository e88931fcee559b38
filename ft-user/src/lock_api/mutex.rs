//! The mutex.

use core::panic::Location;

use ::lock_api as api;

use super::Held;
use crate::sync::place::{Place, tell};

/// A raw mutex, traced. See the [module](super) for its use.
#[derive(Debug)]
pub struct RawMutex<R> {
    pub(super) name: Option<&'static str>,
    pub(super) raw: R,
}

impl<R: api::RawMutex> RawMutex<R> {
    /// An unlocked mutex with a name for reports, for `lock_api::Mutex::from_raw`. Several may share
    /// one name.
    pub const fn named(name: &'static str) -> Self {
        RawMutex { name: Some(name), raw: R::INIT }
    }

    /// What the events call this mutex.
    pub(super) fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// The mutex is taken.
    #[cold]
    #[inline(never)]
    fn lock_slow(&self, at: Place) -> Held<R::Guard> {
        tell!(LockWait, "lock.mutex_wait", self, at);
        self.acquired(self.raw.lock(), at)
    }

    /// The mutex is taken: waits for it as `attempt` does, which may give up.
    #[cold]
    #[inline(never)]
    fn wait(
        &self,
        at: Place,
        attempt: impl FnOnce(&R) -> Option<R::Guard>,
    ) -> Option<Held<R::Guard>> {
        tell!(LockWait, "lock.mutex_wait", self, at);
        match attempt(&self.raw) {
            Some(inner) => Some(self.acquired(inner, at)),
            None => {
                tell!(LockAbandon, "lock.mutex_abandon", self, at);
                None
            }
        }
    }

    #[inline(always)]
    fn acquired(&self, inner: R::Guard, at: Place) -> Held<R::Guard> {
        tell!(LockAcquire, "lock.mutex_acquire", self, at);
        Held { inner, at }
    }

    #[inline(always)]
    fn released(&self, guard: Held<R::Guard>) -> R::Guard {
        tell!(LockRelease, "lock.mutex_release", self, guard.at);
        guard.inner
    }
}

// SAFETY: locking and unlocking are those of the raw mutex, whose guard each unlock gets back.
unsafe impl<R: api::RawMutex> api::RawMutex for RawMutex<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for a constant")]
    const INIT: Self = RawMutex { name: None, raw: R::INIT };

    type Guard = Held<R::Guard>;

    #[track_caller]
    #[inline]
    fn lock(&self) -> Self::Guard {
        let at = Location::caller();
        match self.raw.try_lock() {
            Some(inner) => self.acquired(inner, at),
            None => self.lock_slow(at),
        }
    }

    #[track_caller]
    #[inline]
    fn try_lock(&self) -> Option<Self::Guard> {
        let at = Location::caller();
        self.raw.try_lock().map(|inner| self.acquired(inner, at))
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        let inner = self.released(guard);
        // SAFETY: the caller holds the mutex with this guard.
        unsafe { self.raw.unlock(inner) };
    }

    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawMutexFair> api::RawMutexFair for RawMutex<R> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: Self::Guard) {
        let inner = self.released(guard);
        // SAFETY: the caller holds the mutex with this guard.
        unsafe { self.raw.unlock_fair(inner) };
    }
}

// SAFETY: as above.
unsafe impl<R: api::RawMutexTimed> api::RawMutexTimed for RawMutex<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: R::Duration) -> Option<Self::Guard> {
        let at = Location::caller();
        match self.raw.try_lock() {
            Some(inner) => Some(self.acquired(inner, at)),
            None => self.wait(at, |raw| raw.try_lock_for(timeout)),
        }
    }

    #[track_caller]
    fn try_lock_until(&self, timeout: R::Instant) -> Option<Self::Guard> {
        let at = Location::caller();
        match self.raw.try_lock() {
            Some(inner) => Some(self.acquired(inner, at)),
            None => self.wait(at, |raw| raw.try_lock_until(timeout)),
        }
    }
}
