//! Locks built on version 0.4 of the `lock_api` crate, traced: those of `parking_lot` 0.12 (feature `lock_api_0_4`).
//!
//! What [`crate::lock_api`] does for version 0.5, whose page says what is seen and what is not:
//!
#![cfg_attr(feature = "lock_api_0_4", doc = "```")]
#![cfg_attr(not(feature = "lock_api_0_4"), doc = "```ignore")]
//! # use {lock_api_0_4 as lock_api, parking_lot_0_12 as parking_lot};
//! use ft_user::lock_api_0_4::{RawMutex, RawRwLock};
//!
//! type Mutex<T> = lock_api::Mutex<RawMutex<parking_lot::RawMutex>, T>;
//! type RwLock<T> = lock_api::RwLock<RawRwLock<parking_lot::RawRwLock>, T>;
//!
//! static ACCOUNTS: Mutex<Vec<u64>> = Mutex::from_raw(RawMutex::named("accounts"), Vec::new());
//! static LIMITS: RwLock<u64> = RwLock::new(7);
//!
//! ACCOUNTS.lock().push(*LIMITS.read());
//! ```
//!
//! # What differs
//!
//! - A raw lock of 0.4 has no guard, so a lock itself remembers where who holds it alone acquired it: three words more for
//!   each lock, and a store for each acquisition. The release of a reader has no place.
//! - There is no condition variable in 0.4. [`wait`] traces a wait for any that takes guards of the lock that is wrapped,
//!   as `parking_lot::Condvar` does.

mod mutex;
mod rwlock;

use core::panic::Location;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

pub use mutex::{Inner, RawMutex, wait};
pub use rwlock::RawRwLock;

use crate::sync::place::Place;

/// Where a lock was acquired by who holds it alone: written behind the acquisition, read in front of the release.
#[derive(Debug)]
struct Acquired(AtomicPtr<Location<'static>>);

impl Acquired {
    const fn nowhere() -> Self {
        Acquired(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    fn set(&self, at: Place) {
        self.0.store(ptr::from_ref(at).cast_mut(), Relaxed);
    }

    #[inline(always)]
    fn get(&self) -> Option<Place> {
        // SAFETY: null, or made from a `&'static`.
        unsafe { self.0.load(Relaxed).as_ref() }
    }
}
