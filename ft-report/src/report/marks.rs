//! How many of something are exact, lower bounds, censored: what stands beside every figure.

use std::fmt;

use serde::Serialize;

use super::format::{count, things};
use ft_analysis::Mark;

/// How many of something have each mark ([`Mark`] tells what the words mean).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// The worst of them: what a statistic over all of them is.
    pub mark: Mark,
    /// Right within the clock bound.
    pub exact: u64,
    /// Records were lost meanwhile.
    pub lower_bounds: u64,
    /// Begin or end is not known; in no statistic of lengths.
    pub censored: u64,
}

impl Marks {
    /// Counts one.
    pub fn add(&mut self, mark: Mark) {
        self.add_many(mark, 1);
    }

    /// Counts some.
    pub fn add_many(&mut self, mark: Mark, n: u64) {
        if n > 0 {
            self.mark = self.mark.max(mark);
        }
        *match mark {
            Mark::Exact => &mut self.exact,
            Mark::LowerBound => &mut self.lower_bounds,
            Mark::Censored => &mut self.censored,
        } += n;
    }

    /// `n=4 holds, 1 lower bound, 2 censored and not counted`.
    pub(super) fn line(&self, thing: &str) -> String {
        let n = things(self.exact + self.lower_bounds, thing);
        let lower_bounds = things(self.lower_bounds, "lower bound");
        format!("n={n}, {lower_bounds}, {} censored and not counted", count(self.censored))
    }

    /// What a lower bound is, where there is one.
    pub(super) fn legend(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lower_bounds {
            0 => Ok(()),
            _ => writeln!(
                f,
                "  lower bound (*): records are missing in it; the length is right, the parts are at least that"
            ),
        }
    }
}

/// The star of a row that is not exact.
pub(super) fn star(mark: Mark) -> &'static str {
    if mark == Mark::Exact { "" } else { "*" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statistic_is_as_good_as_the_worst_that_it_is_made_of() {
        let mut marks = Marks::default();
        let mut check = |mark, n, expected, line: &str| {
            marks.add_many(mark, n);
            assert_eq!((marks.mark, &*marks.line("hold")), (expected, line));
        };
        check(
            Mark::Censored,
            0,
            Mark::Exact,
            "n=0 holds, 0 lower bounds, 0 censored and not counted",
        );
        check(Mark::Exact, 3, Mark::Exact, "n=3 holds, 0 lower bounds, 0 censored and not counted");
        check(
            Mark::LowerBound,
            1,
            Mark::LowerBound,
            "n=4 holds, 1 lower bound, 0 censored and not counted",
        );
        check(
            Mark::Censored,
            2,
            Mark::Censored,
            "n=4 holds, 1 lower bound, 2 censored and not counted",
        );
    }
}
