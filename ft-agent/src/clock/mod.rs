//! One clock for two worlds: the TSC of user events on the CLOCK_MONOTONIC of kernel records.
//!
//! [`sample()`] reads both clocks together; a model turns many samples into a map from TSC to
//! nanoseconds with a stated bound of its error.

mod sample;

pub use crate::spool::frame::ClockSample;
pub use sample::{read_tsc, sample};
