//! One clock for two worlds: the TSC of user events on the CLOCK_MONOTONIC of kernel records.
//!
//! [`sample()`] reads both clocks together; [`ClockModel`] turns many samples into a map from TSC to
//! nanoseconds with a stated bound of its error, and refuses a TSC that is no clock.

mod check;
mod model;
mod probe;
mod sample;
mod source;

pub use crate::spool::frame::ClockSample;
pub use check::{ClockError, Finding};
pub use model::{ClockModel, Cursor, Node};
pub use probe::{Agreement, probe};
pub use sample::{read_tsc, sample};
pub use source::{is_doubtful, source};
