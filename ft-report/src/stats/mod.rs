//! Statistics, in memory that does not grow with what they are of.

pub(crate) mod counted;
mod depths;
mod distribution;
mod groups;
pub(crate) mod happened;
pub(crate) mod likely;
mod marks;
mod names;
mod over_time;
pub(crate) mod own;
pub(crate) mod parts;
mod tail;
mod top;

pub use counted::Counted;
pub use depths::Depths;
pub use distribution::{BIN_NS, Bins, Distribution, EXACT, MAX_BINS, Thresholds};
pub use groups::{Groups, IDLE, Key, OTHERS, ranked};
pub use happened::Happened;
pub use marks::Marks;
pub use names::Names;
pub use over_time::{Moment, OverTime, Window};
pub use own::{Own, OwnRows};
pub use tail::Tail;
pub use top::Top;
