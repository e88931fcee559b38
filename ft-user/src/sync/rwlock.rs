//! The reader-writer lock.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, TryLockError, TryLockResult};

use super::place::{Place, tell};
use super::{map_try_lock, parts, result};

/// [`std::sync::RwLock`], traced. See the [module](crate::sync) for its events.
pub struct RwLock<T: ?Sized> {
    name: Option<&'static str>,
    inner: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A lock without a name; reports show its address and the places that lock it.
    pub const fn new(value: T) -> Self {
        RwLock { name: None, inner: std::sync::RwLock::new(value) }
    }

    /// A lock with a name for reports. Several may share one name.
    pub const fn named(name: &'static str, value: T) -> Self {
        RwLock { name: Some(name), inner: std::sync::RwLock::new(value) }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// As [`std::sync::RwLock::into_inner`]: when it is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Acquires the lock for reading, waits while a writer has it.
    ///
    /// # Errors
    ///
    /// As [`std::sync::RwLock::read`]: acquired, but poisoned.
    #[track_caller]
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        let (inner, poisoned) = match self.inner.try_read() {
            Ok(inner) => (inner, false),
            Err(error) => self.read_slow(error, at),
        };
        result(self.reading(inner, at), poisoned)
    }

    /// Acquires the lock for reading if no writer has it. A failed attempt leaves no event.
    ///
    /// # Errors
    ///
    /// As [`std::sync::RwLock::try_read`]: it is taken, or acquired but poisoned.
    #[track_caller]
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        match self.inner.try_read() {
            Ok(inner) => Ok(self.reading(inner, Location::caller())),
            Err(error) => {
                let at = Location::caller();
                Err(map_try_lock(error, |inner| self.reading(inner, at)))
            }
        }
    }

    /// Acquires the lock for writing, waits while anybody has it.
    ///
    /// # Errors
    ///
    /// As [`std::sync::RwLock::write`]: acquired, but poisoned.
    #[track_caller]
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        let (inner, poisoned) = match self.inner.try_write() {
            Ok(inner) => (inner, false),
            Err(error) => self.write_slow(error, at),
        };
        result(self.writing(inner, at), poisoned)
    }

    /// Acquires the lock for writing if it is free. A failed attempt leaves no event.
    ///
    /// # Errors
    ///
    /// As [`std::sync::RwLock::try_write`]: it is taken, or acquired but poisoned.
    #[track_caller]
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        match self.inner.try_write() {
            Ok(inner) => Ok(self.writing(inner, Location::caller())),
            Err(error) => {
                let at = Location::caller();
                Err(map_try_lock(error, |inner| self.writing(inner, at)))
            }
        }
    }

    /// Whether a writer has panicked while it held the lock.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Takes the poison away.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// The value, without locking: the borrow shows that nobody else has it.
    ///
    /// # Errors
    ///
    /// As [`std::sync::RwLock::get_mut`]: when it is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// What the events call this lock.
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// The lock is taken, or poisoned: acquires it, and returns whether it is poisoned.
    #[cold]
    #[inline(never)]
    fn read_slow<'a>(
        &'a self,
        error: TryLockError<std::sync::RwLockReadGuard<'a, T>>,
        at: Place,
    ) -> (std::sync::RwLockReadGuard<'a, T>, bool) {
        parts(match error {
            TryLockError::Poisoned(poisoned) => Err(poisoned),
            TryLockError::WouldBlock => {
                tell!(LockWait, "lock.rwlock_read_wait", self, at);
                self.inner.read()
            }
        })
    }

    /// The lock is taken, or poisoned: acquires it, and returns whether it is poisoned.
    #[cold]
    #[inline(never)]
    fn write_slow<'a>(
        &'a self,
        error: TryLockError<std::sync::RwLockWriteGuard<'a, T>>,
        at: Place,
    ) -> (std::sync::RwLockWriteGuard<'a, T>, bool) {
        parts(match error {
            TryLockError::Poisoned(poisoned) => Err(poisoned),
            TryLockError::WouldBlock => {
                tell!(LockWait, "lock.rwlock_write_wait", self, at);
                self.inner.write()
            }
        })
    }

    #[inline(always)]
    fn reading<'a>(
        &'a self,
        inner: std::sync::RwLockReadGuard<'a, T>,
        at: Place,
    ) -> RwLockReadGuard<'a, T> {
        tell!(LockAcquire, "lock.rwlock_read_acquire", self, at);
        RwLockReadGuard { _hold: ReadHold { lock: self, at }, inner }
    }

    #[inline(always)]
    fn writing<'a>(
        &'a self,
        inner: std::sync::RwLockWriteGuard<'a, T>,
        at: Place,
    ) -> RwLockWriteGuard<'a, T> {
        tell!(LockAcquire, "lock.rwlock_write_acquire", self, at);
        RwLockWriteGuard { hold: WriteHold { lock: self, at }, inner }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Holds a [`RwLock`] for reading until it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    // Fields are dropped in their order: first the event, then the release.
    _hold: ReadHold<'a, T>,
    inner: std::sync::RwLockReadGuard<'a, T>,
}

/// Holds a [`RwLock`] for writing until it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    // As above.
    #[cfg_attr(not(feature = "downgrade"), expect(dead_code, reason = "its drop tells the end"))]
    hold: WriteHold<'a, T>,
    inner: std::sync::RwLockWriteGuard<'a, T>,
}

/// Tells the end of reading when it is dropped.
struct ReadHold<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    at: Place,
}

/// Tells the end of writing when it is dropped.
struct WriteHold<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    at: Place,
}

impl<T: ?Sized> Drop for ReadHold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        tell!(LockRelease, "lock.rwlock_read_release", self.lock, self.at);
    }
}

impl<T: ?Sized> Drop for WriteHold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        tell!(LockRelease, "lock.rwlock_write_release", self.lock, self.at);
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on reading; no writer comes in between. Told as the end of writing and the begin of reading.
    ///
    /// With the feature `downgrade` only, since `std` has it from Rust 1.92 on.
    #[cfg(feature = "downgrade")]
    #[expect(clippy::incompatible_msrv, reason = "the feature is for those who have it")]
    #[track_caller]
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let lock = guard.hold.lock;
        drop(guard.hold);
        let inner = std::sync::RwLockWriteGuard::downgrade(guard.inner);
        lock.reading(inner, Location::caller())
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
