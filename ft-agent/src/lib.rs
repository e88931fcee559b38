//! Feather-Trace's agent.

pub mod clock;
pub mod collect;
mod cpus;
pub mod doctor;
pub mod flight;
pub mod inherited;
pub mod live;
pub mod logger;
pub mod record;
pub mod signals;
pub mod status_line;
pub mod threads;
pub mod top;
