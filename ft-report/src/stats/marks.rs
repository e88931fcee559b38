//! How many of something are exact, disturbed, lower bounds, censored: what stands beside every figure.

use serde::Serialize;

use ft_analysis::Mark;

use crate::document::{N, Of, Section, Text};
use crate::text;

/// How many of something have each mark ([`Mark`] says what the words mean).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// The worst of them: what a statistic over all of them is; null of nothing.
    pub mark: Option<Mark>,
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
            self.mark = self.mark.max(Some(mark));
        }
        let count = match mark {
            Mark::Exact => &mut self.exact,
            Mark::Disturbed => &mut self.disturbed,
            Mark::LowerBound => &mut self.lower_bounds,
            Mark::Censored => &mut self.censored,
        };
        *count = count.saturating_add(n);
    }

    /// `4 holds, 1 lower bound among them; 2 more censored and not counted`.
    pub(crate) fn line(&self, thing: &'static str) -> Text {
        let counted = self.counted();
        let n = Of(counted, thing);
        let disturbed =
            (self.disturbed > 0).then(|| text!("{} disturbed by the tracer", N(self.disturbed)));
        let lower_bounds =
            (self.lower_bounds > 0).then(|| text!("{}", Of(self.lower_bounds, "lower bound")));
        let among = Text::join(disturbed.into_iter().chain(lower_bounds), " and ");
        let counted = match (among, counted, self.censored) {
            (Some(among), ..) => text!("{}, {} among them", n, among),
            (None, 1, 0) => text!("{}, exact", n),
            (None, 2.., 0) => text!("{}, all exact", n),
            (None, ..) => text!("{}", n),
        };
        match self.censored {
            0 => counted,
            some => text!("{}; {} more censored and not counted", counted, N(some)),
        }
    }

    /// How many are in statistics of lengths: all but the censored.
    pub(crate) fn counted(&self) -> u64 {
        self.exact.saturating_add(self.disturbed).saturating_add(self.lower_bounds)
    }

    /// There is anything to count, or something that could not be.
    pub(crate) fn any(&self) -> bool {
        self.counted() > 0 || self.censored > 0
    }

    /// Says what a star means of what is disturbed, where that is one of its meanings.
    pub(crate) fn legend_disturbed(&self, section: &mut Section) {
        if self.disturbed > 0 {
            section.say(
                "A star (*) marks what the tracer disturbed, too: a thread waited in it for room in its ring, and without \
                 --on-full wait it would have been shorter.",
            );
        }
    }

    /// Says what a star means, where there is one.
    pub(crate) fn legend(&self, section: &mut Section) {
        self.legend_disturbed(section);
        if self.lower_bounds > 0 {
            section.say(
                "A star (*) marks a lower bound: records are missing in it. Its length is right, and each part is at \
                 least what is shown.",
            );
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::sentence;

    #[test]
    fn what_the_tracer_disturbed_is_counted_and_said() {
        let mut marks = Marks::default();
        marks.add_many(Mark::Exact, 3);
        marks.add_many(Mark::Disturbed, 2);
        let line = |marks: &Marks| sentence(&marks.line("hold"));
        let disturbed = "5 holds, 2 disturbed by the tracer among them";
        assert_eq!((marks.mark, &*line(&marks)), (Some(Mark::Disturbed), disturbed));
        marks.add(Mark::LowerBound);
        assert_eq!(line(&marks), "6 holds, 2 disturbed by the tracer and 1 lower bound among them");
    }

    #[test]
    fn a_statistic_is_as_good_as_the_worst_that_it_is_made_of() {
        let mut marks = Marks::default();
        let mut check = |mark, n, expected, line: &str| {
            marks.add_many(mark, n);
            assert_eq!((marks.mark, &*sentence(&marks.line("hold"))), (expected, line));
        };
        check(Mark::Censored, 0, None, "0 holds");
        check(Mark::Exact, 3, Some(Mark::Exact), "3 holds, all exact");
        check(Mark::LowerBound, 1, Some(Mark::LowerBound), "4 holds, 1 lower bound among them");
        check(
            Mark::Censored,
            2,
            Some(Mark::Censored),
            "4 holds, 1 lower bound among them; 2 more censored and not counted",
        );
    }
}
