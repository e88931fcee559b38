//! One clock for two worlds: the TSC of user events on the CLOCK_MONOTONIC of kernel records.
//!
//! [`ClockModel`] turns samples of both clocks, read together, into a map from TSC to nanoseconds with a stated
//! bound of its error, and refuses a TSC that is no clock.

pub mod check;
mod model;
mod source;

pub use crate::spool::frame::ClockSample;
pub use check::{ClockError, Finding};
pub use model::{ClockModel, Cursor, Node};
pub use source::is_doubtful;
