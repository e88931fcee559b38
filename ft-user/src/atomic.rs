//! The atomics of the ring algorithms. The models in `tests/loom` compile the same algorithms with
//! others in this place, which try every interleaving.

pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
