//! Figures: data that is drawn. Text draws bars; what has more room draws curves of the same data, and figures that only
//! it has room for. Their data is among the machine values of their section, so JSON repeats nothing.

use super::text::Text;
use super::value::{Kind, Value};
use crate::stats::{OverTime, Tail, Window};
use ft_trace::ids::Name;

/// Something to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: Text,
    /// Its data.
    pub data: Data,
}

impl Figure {
    /// Only a page has room for it.
    pub fn for_a_page(&self) -> bool {
        matches!(
            self.data,
            Data::Histograms { .. }
                | Data::Stacks { .. }
                | Data::Matrix { .. }
                | Data::OverTime { .. }
                | Data::Flames { .. }
        )
    }
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
        /// The same of single locks or threads, where there is room.
        each: Vec<(Value, Vec<(u64, u64)>)>,
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
        /// The same of single locks or threads, where there is room.
        each: Vec<Histogram>,
    },
    /// Percentiles of several distributions.
    Tails {
        /// What each is of: title and kind.
        of: (&'static str, Kind),
        /// Name, count and percentiles of each.
        tails: Vec<(Value, u64, Tail)>,
    },
    /// Distributions of durations, for a page: of all together, and of each.
    Histograms {
        /// What is counted.
        counted: &'static str,
        /// All together first.
        each: Vec<Histogram>,
    },
    /// Where the time of several went, for a page.
    Stacks {
        /// What the parts are called, in their order.
        parts: Vec<&'static str>,
        /// Of whom, its number where it has one, and ns of each part.
        stacks: Vec<(Value, Option<i32>, Vec<i64>)>,
        /// How many more there are.
        more: u64,
    },
    /// How much of something there is between each two of two kinds, for a page.
    Matrix {
        /// What the rows are, and each.
        rows: (&'static str, Vec<Value>),
        /// What the columns are, and each.
        columns: (&'static str, Vec<Value>),
        /// Row, column, how many, and ns in all.
        cells: Vec<(usize, usize, u64, i64)>,
        /// What is counted.
        counted: &'static str,
    },
    /// Durations over the time at which they began, for a page: of all together, and of each.
    OverTime {
        /// What is counted.
        counted: &'static str,
        /// Which time is shown.
        window: Window,
        /// All together first.
        each: Vec<(Value, OverTime)>,
    },
    /// Time by call chain, for a page.
    Flames {
        /// Functions, the outermost first, and ns in all.
        chains: Vec<(Vec<Name>, i64)>,
    },
}

/// How many durations there are of each length.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Whose.
    pub of: Value,
    /// Lower edge in ns and count of each bin of 0.1 µs that is not empty.
    pub bins: Vec<(i64, u64)>,
}
