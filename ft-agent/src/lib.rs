//! Feather-Trace's agent.

pub mod analysis;
pub mod analyze;
pub mod clock;
pub mod collect;
pub mod convert;
mod dir;
pub mod doctor;
pub mod event;
pub mod flight;
pub mod inherited;
pub mod listing;
pub mod live;
pub mod logger;
pub mod merge;
pub mod model;
pub mod reach;
pub mod record;
pub mod report;
pub mod spool;
pub mod status_line;
pub mod store;
pub mod units;
pub mod warning;

pub use dir::Refused;
