//! The condition variable.

use ::lock_api as api;

use super::{Held, RawMutex};
use crate::__event;
use crate::sync::place::{self, Place};

/// A raw condition variable, traced; its mutex is a traced one. See the [module](super) for its use.
///
/// `lock_api` does not pass on where a wait was called, so both events have the place where the mutex was locked.
#[derive(Debug)]
pub struct RawCondvar<C> {
    raw: C,
}

impl<C: api::RawCondvar> RawCondvar<C> {
    /// One wait between its two events.
    fn around<T>(&self, mutex: &RawMutex<C::RawMutex>, at: Place, wait: impl FnOnce() -> T) -> T {
        let condition: *const () = core::ptr::from_ref(self).cast();
        __event!(
            kind = CondWait, "lock.cond_wait",
            lock: *const () = mutex.address(), place: u64 = place::word(at, mutex.name), condition: *const ()
        );
        let result = wait();
        __event!(
            kind = CondWake, "lock.cond_wake",
            lock: *const () = mutex.address(), place: u64 = place::word(at, mutex.name), condition: *const ()
        );
        result
    }
}

type Guard<C> = Held<<<C as api::RawCondvar>::RawMutex as api::RawMutex>::Guard>;

// SAFETY: waiting and waking are those of the raw condition variable, with the raw mutex and its guard.
unsafe impl<C: api::RawCondvar> api::RawCondvar for RawCondvar<C> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for a constant")]
    const INIT: Self = RawCondvar { raw: C::INIT };

    type RawMutex = RawMutex<C::RawMutex>;

    unsafe fn wait(&self, mutex: &Self::RawMutex, guard: &mut Guard<C>) {
        let at = guard.at;
        // SAFETY: the caller holds the mutex with this guard.
        self.around(mutex, at, || unsafe { self.raw.wait(&mutex.raw, &mut guard.inner) });
    }

    fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }
}

// SAFETY: as above.
unsafe impl<C: api::RawCondvarTimed> api::RawCondvarTimed for RawCondvar<C>
where
    C::RawMutex: api::RawMutexTimed,
{
    fn checked_duration_to_instant(
        timeout: &<C::RawMutex as api::RawMutexTimed>::Duration,
    ) -> Option<<C::RawMutex as api::RawMutexTimed>::Instant> {
        C::checked_duration_to_instant(timeout)
    }

    unsafe fn wait_until(
        &self,
        mutex: &Self::RawMutex,
        guard: &mut Guard<C>,
        timeout: &<C::RawMutex as api::RawMutexTimed>::Instant,
    ) -> bool {
        let at = guard.at;
        // SAFETY: the caller holds the mutex with this guard.
        self.around(mutex, at, || unsafe {
            self.raw.wait_until(&mutex.raw, &mut guard.inner, timeout)
        })
    }
}
