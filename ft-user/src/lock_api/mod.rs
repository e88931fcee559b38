//! Locks built on the `lock_api` crate, traced: `parking_lot`'s and those of others (feature `lock_api`).
//!
//! A raw lock is wrapped, and `lock_api`'s own types are used with the wrapper; the program goes on with
//! their whole interface:
//!
//! ```
//! use ft_user::lock_api::{RawCondvar, RawMutex, RawRwLock};
//!
//! type Mutex<T> = lock_api::Mutex<RawMutex<parking_lot::RawMutex>, T>;
//! type RwLock<T> = lock_api::RwLock<RawRwLock<parking_lot::RawRwLock>, T>;
//! type Condvar = lock_api::Condvar<RawCondvar<parking_lot::RawCondvar>>;
//!
//! static ACCOUNTS: Mutex<Vec<u64>> = Mutex::from_raw(RawMutex::named("accounts"), Vec::new());
//! static READY: Condvar = Condvar::new();
//! static LIMITS: RwLock<u64> = RwLock::new(7);
//!
//! ACCOUNTS.lock().push(*LIMITS.read());
//! READY.notify_one();
//! ```
//!
//! # What is seen
//!
//! The events of [`crate::sync`], with the place of the call as `lock_api` passes it on, and
//! `lock.mutex_abandon`, `lock.rwlock_…_abandon` for an attempt that waited and ran out of time. An attempt
//! that does not wait and fails leaves no event.
//!
//! # What is not seen
//!
//! - Locks that are not wrapped: those of `std`, which call the kernel themselves and so pass by every
//!   library that is preloaded, and `parking_lot`'s own types inside of other crates.
//! - `lock_api::ReentrantMutex` can be built on the wrapper; only its outermost lock and unlock are events.
//! - Upgradable reading of `RwLock` is not offered by the wrapper.
//! - A lock made with `new` or `default` has no name: reports show its address and its places.
//!
//! This is for `lock_api` 0.5, the one of `parking_lot` 0.13: its guards carry the place of the acquisition to the
//! release. For 0.4, the one of `parking_lot` 0.12, there is `ft_user::lock_api_0_4`; with the wrong one of the two the
//! compiler says that the trait `RawMutex` is not implemented, and that there are two versions of `lock_api`.

mod condvar;
mod mutex;
mod rwlock;

pub use condvar::RawCondvar;
pub use mutex::RawMutex;
pub use rwlock::RawRwLock;

use crate::sync::place::Place;

/// What a traced lock returns when it is acquired: what the lock itself returns, and the place of the
/// call.
pub struct Held<G> {
    inner: G,
    at: Place,
}
