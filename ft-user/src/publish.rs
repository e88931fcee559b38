//! A place for the address of what one thread makes and all others then use: whoever sees the address sees all that was made.
//!
//! It is empty, then taken by one thread, then published. Nobody waits: who finds it empty or taken does without.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::AtomicPtr;

/// What stands in the place.
pub(crate) fn see<T>(place: &AtomicPtr<T>) -> *mut T {
    place.load(Acquire) // SYNC: published
}

/// Takes the place if it is empty; `mark` stands there from then on.
pub(crate) fn take<T>(place: &AtomicPtr<T>, mark: *mut T) -> bool {
    place.compare_exchange(ptr::null_mut(), mark, Relaxed, Relaxed).is_ok()
}

/// Has another mark stand in a place that the calling thread has taken.
pub(crate) fn mark<T>(place: &AtomicPtr<T>, mark: *mut T) {
    place.store(mark, Relaxed);
}

/// Publishes what the calling thread has made; null gives the place back.
pub(crate) fn publish<T>(place: &AtomicPtr<T>, made: *mut T) {
    place.store(made, Release); // SYNC: published
}
