//! The barrier.

use std::fmt;
use std::panic::Location;
use std::sync::BarrierWaitResult;

use super::place::tell;

/// [`std::sync::Barrier`], traced. See the [module](crate::sync) for its events.
pub struct Barrier {
    name: Option<&'static str>,
    inner: std::sync::Barrier,
}

impl Barrier {
    /// A barrier for `n` threads, without a name; reports show its address.
    pub const fn new(n: usize) -> Self {
        Barrier { name: None, inner: std::sync::Barrier::new(n) }
    }

    /// A barrier for `n` threads with a name for reports. Several may share one name.
    pub const fn named(name: &'static str, n: usize) -> Self {
        Barrier { name: Some(name), inner: std::sync::Barrier::new(n) }
    }

    /// Blocks until all `n` threads are here. Whoever comes last records a wait as well, which is short.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let at = Location::caller();
        tell!(WaitBegin, "lock.barrier_wait", self, at);
        let result = self.inner.wait();
        tell!(WaitEnd, "lock.barrier_wake", self, at);
        result
    }

    /// What the events call this barrier.
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
