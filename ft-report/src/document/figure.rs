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
        /// How many there are between edges, in their order; the last may be open.
        steps: Vec<Step>,
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

/// How many durations lie between two lengths: a row of a distribution's table, and a bar of its drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// None is shorter, ns.
    pub from_ns: i64,
    /// The edge, ns: none is longer, or none is as long (the axis says which). `None`: all that are longer.
    pub to_ns: Option<i64>,
    /// How many.
    pub count: u64,
}

impl Step {
    /// Between edges in ns, ascending, by how many of `total` do not exceed each.
    pub fn between(edges: &[(i64, u64)], total: u64) -> Vec<Step> {
        let ends = edges.iter().map(|&(edge, below)| (Some(edge), below)).chain([(None, total)]);
        let mut before = (0, 0);
        let step = |(to_ns, below): (Option<i64>, u64)| {
            let (from_ns, so_far) = before;
            before = (to_ns.unwrap_or(i64::MAX), below);
            Step { from_ns, to_ns, count: below.saturating_sub(so_far) }
        };
        ends.map(step).collect()
    }

    /// From the first to the last that has any: what a table has rows of, a file lines, and a drawing bars, so that all three
    /// say the same.
    pub fn rows(steps: &[Step]) -> &[Step] {
        let has_any = |step: &Step| step.count > 0;
        match (steps.iter().position(has_any), steps.iter().rposition(has_any)) {
            (Some(first), Some(last)) => &steps[first..=last],
            _ => &[],
        }
    }

    /// Each with how many there are up to its end.
    pub fn cumulative(steps: &[Step]) -> impl Iterator<Item = (Step, u64)> {
        steps.iter().scan(0u64, |below, step| {
            *below = below.saturating_add(step.count);
            Some((*step, *below))
        })
    }
}

/// How many durations there are of each length.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Whose.
    pub of: Value,
    /// Lower edge in ns and count of each bin of 0.1 µs that is not empty.
    pub bins: Vec<(i64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lie_between_their_edges_and_what_is_longer_is_one_too() {
        let steps = Step::between(&[(100, 0), (200, 3), (500, 3), (1000, 10), (2000, 10)], 12);
        let found: Vec<_> = steps.iter().map(|s| (s.from_ns, s.to_ns, s.count)).collect();
        let expected = [
            (0, Some(100), 0),
            (100, Some(200), 3),
            (200, Some(500), 0),
            (500, Some(1000), 7),
            (1000, Some(2000), 0),
            (2000, None, 2),
        ];
        assert_eq!(found, expected);
        assert_eq!(Step::rows(&steps), &steps[1..]);
        assert_eq!(Step::rows(&steps[..3]), &steps[1..2]);
        assert_eq!(Step::rows(&steps[..1]), []);
        let below: Vec<_> = Step::cumulative(&steps).map(|(_, below)| below).collect();
        assert_eq!(below, [0, 3, 3, 10, 10, 12]);
    }
}
