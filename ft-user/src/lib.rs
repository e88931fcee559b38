//! Feather-Trace's embeddable tracer.

pub mod directory;
pub mod glob;
pub mod layout;
pub mod shared_ring;
