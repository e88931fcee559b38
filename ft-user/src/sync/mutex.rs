//! The mutex.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, TryLockError, TryLockResult};

use super::place::{LastWord, Place, tell};
use super::slice::{Asks, Extension};
use super::{map_try_lock, parts, result};

/// [`std::sync::Mutex`], traced. See the [module](crate::sync) for its events.
pub struct Mutex<T: ?Sized> {
    name: Option<&'static str>,
    last_word: LastWord,
    asks: Asks,
    inner: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex without a name; reports show its address and the places that lock it.
    pub const fn new(value: T) -> Self {
        Self::with_name(None, value)
    }

    /// A mutex with a name for reports. Several may share one name.
    pub const fn named(name: &'static str, value: T) -> Self {
        Self::with_name(Some(name), value)
    }

    const fn with_name(name: Option<&'static str>, value: T) -> Self {
        let inner = std::sync::Mutex::new(value);
        Mutex { name, last_word: LastWord::new(), asks: Asks::NO, inner }
    }

    /// Has each holder of this mutex ask the kernel for a time-slice extension, see the [module](crate::sync). That of other
    /// mutexes asks for none. For sections of some microseconds: an extension lasts 5 to 50 µs.
    ///
    /// ```
    /// use ft_user::sync::Mutex;
    /// static QUEUE: Mutex<Vec<u64>> = Mutex::named("queue", Vec::new()).with_slice_extension();
    /// ```
    #[cfg(feature = "slice")]
    #[must_use]
    pub const fn with_slice_extension(mut self) -> Self {
        self.asks = Asks::YES;
        self
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// As [`std::sync::Mutex::into_inner`]: when it is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Acquires the mutex, waits for it when it is taken.
    ///
    /// # Errors
    ///
    /// As [`std::sync::Mutex::lock`]: acquired, but poisoned.
    #[track_caller]
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let at = Location::caller();
        // The common case alone is inlined at the caller.
        let (inner, poisoned) = match self.inner.try_lock() {
            Ok(inner) => (inner, false),
            Err(error) => self.lock_slow(error, at),
        };
        result(self.acquired(inner, at), poisoned)
    }

    /// Acquires the mutex if it is free. A failed attempt leaves no event.
    ///
    /// # Errors
    ///
    /// As [`std::sync::Mutex::try_lock`]: it is taken, or acquired but poisoned.
    #[track_caller]
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(self.acquired(inner, Location::caller())),
            Err(error) => {
                let at = Location::caller();
                Err(map_try_lock(error, |inner| self.acquired(inner, at)))
            }
        }
    }

    /// Whether a thread has panicked while it held the mutex.
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
    /// As [`std::sync::Mutex::get_mut`]: when it is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// What the events call this mutex.
    pub(super) fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// The second argument of the events of who holds it.
    pub(super) fn word(&self, at: Place) -> u64 {
        self.last_word.get(at, self.name)
    }

    /// The mutex is taken, or poisoned: acquires it, and returns whether it is poisoned.
    #[cold]
    #[inline(never)]
    fn lock_slow<'a>(
        &'a self,
        error: TryLockError<std::sync::MutexGuard<'a, T>>,
        at: Place,
    ) -> (std::sync::MutexGuard<'a, T>, bool) {
        parts(match error {
            TryLockError::Poisoned(poisoned) => Err(poisoned),
            TryLockError::WouldBlock => {
                tell!(LockWait, "lock.mutex_wait", self, at);
                self.inner.lock()
            }
        })
    }

    #[inline(always)]
    fn acquired<'a>(&'a self, inner: std::sync::MutexGuard<'a, T>, at: Place) -> MutexGuard<'a, T> {
        tell!(LockAcquire, "lock.mutex_acquire", self, word = self.word(at));
        self.guard(inner, at)
    }

    /// The guard of a mutex that is acquired and whose event is written.
    #[inline(always)]
    pub(super) fn guard<'a>(
        &'a self,
        inner: std::sync::MutexGuard<'a, T>,
        at: Place,
    ) -> MutexGuard<'a, T> {
        MutexGuard { hold: Hold { lock: self, at }, inner, extension: Extension::ask(self.asks) }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Holds a [`Mutex`] until it is dropped.
#[must_use = "the mutex is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    // Fields are dropped in their order: first the event, then the release, then the CPU is given back.
    hold: Hold<'a, T>,
    inner: std::sync::MutexGuard<'a, T>,
    extension: Extension,
}

/// Tells the release when it is dropped.
struct Hold<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
    at: Place,
}

impl<T: ?Sized> Drop for Hold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(all(feature = "slice", target_arch = "x86_64", target_os = "linux"))]
        if self.lock.asks == Asks::YES {
            tell!(LockRelease, "lock.mutex_release", self.lock, word = self.lock.word(self.at), slice: u64 = super::slice::outcome() as u64);
            return;
        }
        tell!(LockRelease, "lock.mutex_release", self.lock, word = self.lock.word(self.at));
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The lock and the guard of `std`, for a wait that releases without our event.
    pub(super) fn into_parts(self) -> (&'a Mutex<T>, std::sync::MutexGuard<'a, T>) {
        let lock = self.hold.lock;
        std::mem::forget(self.hold);
        self.extension.end_in_call();
        (lock, self.inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
