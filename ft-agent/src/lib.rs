//! Feather-Trace's agent.

pub mod analysis;
pub mod analyze;
pub mod clock;
pub mod collect;
pub mod convert;
pub mod doctor;
pub mod event;
pub mod live;
pub mod merge;
pub mod model;
pub mod record;
pub mod report;
pub mod spool;
pub mod store;
pub mod units;
pub mod warning;
