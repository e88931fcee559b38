//! How many of something are exact, disturbed, lower bounds, censored: what stands beside every figure.

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
    /// The tracer itself held the program up meanwhile.
    #[serde(skip_serializing_if = "is_none")]
    pub disturbed: u64,
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
            Mark::Disturbed => &mut self.disturbed,
            Mark::LowerBound => &mut self.lower_bounds,
            Mark::Censored => &mut self.censored,
        } += n;
    }

    /// `n=4 holds, 1 lower bound, 2 censored and not counted`.
    pub(super) fn line(&self, thing: &str) -> String {
        let n = things(self.exact + self.disturbed + self.lower_bounds, thing);
        let disturbed = match self.disturbed {
            0 => String::new(),
            some => format!(", {} disturbed by the tracer", count(some)),
        };
        let lower_bounds = things(self.lower_bounds, "lower bound");
        let censored = count(self.censored);
        format!("n={n}{disturbed}, {lower_bounds}, {censored} censored and not counted")
    }

    /// What a lower bound is, where there is one, and what is disturbed.
    pub(super) fn legend(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.disturbed > 0 {
            writeln!(
                f,
                "  disturbed (*): a thread waited for room in its ring in it; without --on-full wait it would have been shorter"
            )?;
        }
        match self.lower_bounds {
            0 => Ok(()),
            _ => writeln!(
                f,
                "  lower bound (*): records are missing in it; the length is right, the parts are at least that"
            ),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
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
        let mut held_up = marks;
        held_up.add_many(Mark::Disturbed, 2);
        let line =
            "n=5 holds, 2 disturbed by the tracer, 0 lower bounds, 0 censored and not counted";
        assert_eq!((held_up.mark, &*held_up.line("hold")), (Mark::Disturbed, line));
        let mut check = |mark, n, expected, line: &str| {
            marks.add_many(mark, n);
            assert_eq!((marks.mark, &*marks.line("hold")), (expected, line));
        };
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
