//! Statistics, in memory that does not grow with what they are of.

mod distribution;

pub use crate::report::{Marks, Tail};
pub use distribution::{BIN_NS, Bins, Distribution, EXACT, MAX_BINS, Thresholds};
