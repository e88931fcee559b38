//! Feather-Trace's agent.

mod background;
pub mod clock;
pub mod collect;
pub mod doctor;
pub mod flight;
pub mod inherited;
pub mod live;
pub mod logger;
pub mod record;
pub mod status_line;
