//! Locks that tell who waited, who held and where: [`std::sync`]'s with the same interface.
//!
//! Replace `use std::sync::Mutex` by `use ft_user::sync::Mutex`, and name what should have a name:
//!
//! ```
//! use ft_user::sync::Mutex;
//! static ACCOUNTS: Mutex<Vec<u64>> = Mutex::named("accounts", Vec::new());
//! ACCOUNTS.lock().unwrap().push(1);
//! ```
//!
//! # Events
//!
//! | event | when | arguments |
//! |---|---|---|
//! | `lock.mutex_wait` | it is taken, and the thread is about to block | lock, place |
//! | `lock.mutex_acquire` | the thread has it | lock, place |
//! | `lock.mutex_release` | just before it is given back | lock, place |
//! | `lock.rwlock_read_…`, `lock.rwlock_write_…` | the same for both sides of a [`RwLock`] | lock, place |
//! | `lock.cond_wait` | a wait is about to give the lock back | lock, place, condition |
//! | `lock.cond_wake` | the wait has the lock again | lock, place, condition |
//!
//! `lock` and `condition` are addresses of these wrappers. `place` holds the number of the lock's name
//! and that of the source place of the call ([`crate::layout::place_word`]); a release tells the place
//! of its acquisition. A hold is measured as in the Feather-Trace paper (section 3): from behind the
//! acquisition to just before the release, without the cost of either.
//!
//! # Costs
//!
//! While they are off, an uncontended lock and unlock are those of `std` and two triggers. A guard is two
//! words larger, a lock two words.
//!
//! # Limits
//!
//! Locks of `std` inside of other libraries are not seen. A guard that is leaked
//! ([`std::mem::forget`]) is a hold without an end. A contended acquisition tries once before it
//! tells that it waits, and then competes as any other thread does.

mod condvar;
mod mutex;
mod place;
mod rwlock;

pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Wraps the guard inside of a result, poisoned or not.
fn map_lock<G, W>(result: LockResult<G>, wrap: impl FnOnce(G) -> W) -> LockResult<W> {
    match result {
        Ok(guard) => Ok(wrap(guard)),
        Err(poisoned) => Err(PoisonError::new(wrap(poisoned.into_inner()))),
    }
}

/// The result of a first attempt: taken by somebody else, or acquired, poisoned or not.
fn acquired<G>(attempt: TryLockResult<G>) -> Option<LockResult<G>> {
    match attempt {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// As a `try_lock` returns it.
fn tried<G>(acquired: Option<LockResult<G>>) -> TryLockResult<G> {
    match acquired {
        Some(result) => result.map_err(TryLockError::Poisoned),
        None => Err(TryLockError::WouldBlock),
    }
}
