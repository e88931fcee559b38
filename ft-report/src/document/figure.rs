//! Figures: data that is drawn. Text draws bars; what has more room draws curves of the same data.

use super::text::Text;
use super::value::{Kind, Value};
use crate::stats::Tail;

/// Something to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: Text,
    /// Its data.
    pub data: Data,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// How many of each class.
    Bars {
        /// What the classes are: the title of their axis.
        axis: &'static str,
        /// What is counted.
        counted: &'static str,
        /// Classes and counts.
        bars: Vec<(u64, u64)>,
    },
    /// A cumulative distribution of durations.
    Cumulative {
        /// What the durations are: the title of their axis.
        axis: &'static str,
        /// What is counted.
        counted: &'static str,
        /// Edges in ns, ascending, and how many do not exceed each (or are below it: the axis says which).
        steps: Vec<(i64, u64)>,
        /// How many there are.
        total: u64,
        /// Histogram: lower edge in ns and count of each bin of 0.1 µs that is not empty.
        bins: Vec<(i64, u64)>,
    },
    /// Percentiles of several distributions.
    Tails {
        /// What each is of: title and kind.
        of: (&'static str, Kind),
        /// Name, count and percentiles of each.
        tails: Vec<(Value, u64, Tail)>,
    },
}
