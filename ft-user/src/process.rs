//! The process's memory for rings.

use crate::layout::RingControl;

/// A ring for the calling thread; `None` before tracing starts.
pub(crate) fn claim_ring() -> Option<&'static RingControl> {
    None
}

/// Writes an event of a thread that has no ring.
pub(crate) fn shared_write(_key: u32, _words: &[u64]) {}
