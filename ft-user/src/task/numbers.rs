//! The numbers of tasks, which threads and signal handlers take from one counter.

use core::sync::atomic::Ordering::Relaxed;

use crate::atomic::AtomicU64;

/// The next number. A process takes no 2^64 of them.
pub(crate) struct Numbers(pub(crate) AtomicU64);

impl Numbers {
    /// A number that nobody else gets.
    pub(crate) fn next(&self) -> u64 {
        // Relaxed: nothing else is published by it.
        self.0.fetch_add(1, Relaxed)
    }
}
