//! Feather-Trace's agent.

pub mod model;
pub mod spool;
pub mod store;
