//! The condition variable.

use std::fmt;
use std::panic::Location;
use std::sync::{LockResult, PoisonError};
use std::time::{Duration, Instant};

use super::place::Place;
use super::{MutexGuard, parts, result};
use crate::__event;

/// [`std::sync::Condvar`], traced: a wait releases its mutex and acquires it again.
///
/// See the [module](crate::sync) for its events. Spurious wake-ups are recorded as such: the thread did
/// hold the mutex.
#[derive(Default)]
pub struct Condvar {
    inner: std::sync::Condvar,
}

/// Whether a wait with a limit ended because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was up.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

type TimedResult<'a, T> = LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>;

impl Condvar {
    /// A condition variable for which nobody waits.
    pub const fn new() -> Self {
        Condvar { inner: std::sync::Condvar::new() }
    }

    /// Releases the mutex, waits for a notification, and acquires the mutex.
    ///
    /// # Errors
    ///
    /// As [`std::sync::Condvar::wait`]: the mutex is poisoned.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.around(guard, Location::caller(), |inner| match self.inner.wait(inner) {
            Ok(inner) => (Ok(inner), ()),
            Err(poisoned) => (Err(poisoned), ()),
        })
        .0
    }

    /// Waits as long as `condition` returns `true`.
    ///
    /// # Errors
    ///
    /// As [`Condvar::wait`].
    #[track_caller]
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// [`Condvar::wait`], for `limit` at most.
    ///
    /// # Errors
    ///
    /// As [`Condvar::wait`].
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> TimedResult<'a, T> {
        let (guard, result) = self.around(guard, Location::caller(), |inner| {
            match self.inner.wait_timeout(inner, limit) {
                Ok((inner, result)) => (Ok(inner), WaitTimeoutResult(result.timed_out())),
                Err(poisoned) => {
                    let (inner, result) = poisoned.into_inner();
                    (Err(PoisonError::new(inner)), WaitTimeoutResult(result.timed_out()))
                }
            }
        });
        match guard {
            Ok(guard) => Ok((guard, result)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), result))),
        }
    }

    /// [`Condvar::wait_while`], for `limit` at most. The result says whether the condition still held
    /// when the time was up.
    ///
    /// # Errors
    ///
    /// As [`Condvar::wait`].
    #[track_caller]
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        limit: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> TimedResult<'a, T> {
        let start = Instant::now();
        while condition(&mut guard) {
            let Some(left) = limit.checked_sub(start.elapsed()) else {
                return Ok((guard, WaitTimeoutResult(true)));
            };
            guard = self.wait_timeout(guard, left)?.0;
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }

    /// One wait between its two events.
    fn around<'a, T, R>(
        &self,
        guard: MutexGuard<'a, T>,
        at: Place,
        wait: impl FnOnce(std::sync::MutexGuard<'a, T>) -> (LockResult<std::sync::MutexGuard<'a, T>>, R),
    ) -> (LockResult<MutexGuard<'a, T>>, R) {
        let (mutex, inner) = guard.into_parts();
        let condition: *const Condvar = self;
        __event!(
            kind = CondWait, "lock.cond_wait",
            lock: *const () = mutex.address(), place: u64 = mutex.word(at), condition: *const Condvar
        );
        let (waited, told) = wait(inner);
        __event!(
            kind = CondWake, "lock.cond_wake",
            lock: *const () = mutex.address(), place: u64 = mutex.word(at), condition: *const Condvar
        );
        let (inner, poisoned) = parts(waited);
        (result(mutex.guard(inner, at), poisoned), told)
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
