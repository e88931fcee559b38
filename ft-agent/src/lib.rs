//! Feather-Trace's agent.

pub mod clock;
pub mod event;
pub mod model;
pub mod spool;
pub mod store;
