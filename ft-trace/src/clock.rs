//! One clock for two worlds: the TSC of user events on the CLOCK_MONOTONIC of kernel records.
//!
//! [`ClockModel`] turns samples of both clocks, read together, into a map from TSC to nanoseconds with a stated
//! bound of its error, and refuses a TSC that is no clock. How far the time of day of the host can be off, which is
//! what traces of several hosts are compared by, the kernel says itself ([`host_row`]).

pub mod check;
mod host;
mod model;
mod source;

pub use crate::spool::frame::{ClockSample, HostClock};
pub use check::{ClockError, Finding};
pub use host::host_row;
pub use model::{ClockModel, Cursor, Node};
pub use source::is_doubtful;
