//! How far reported figures are from the truth.
//!
//! A subject tells each truth as an interval: what it read from its clock just inside of what happened, and
//! just outside. A figure out of that interval, by more than the clock can be wrong, fails the test, however
//! busy the machine is. How far figures are from one end of the interval is printed as a distribution, and its
//! minimum must be small, so that intervals which say nothing fail too: an error of the analyses is in every round, and
//! what a busy machine adds is not in all of them.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::harness::gate;

/// Rows of integers that a subject has printed as `rounds`.
pub(crate) fn rounds<const N: usize>(truth: &Value) -> Vec<[i64; N]> {
    let number = |n: &Value| n.as_i64().expect("an integer");
    let row = |row: &Value| -> [i64; N] {
        let numbers: Vec<i64> = row.as_array().expect("a row").iter().map(number).collect();
        numbers.try_into().expect("the numbers of a round")
    };
    truth["rounds"].as_array().expect("rounds").iter().map(row).collect()
}

/// A thread id that a subject has printed.
pub(crate) fn tid(truth: &Value, name: &str) -> i32 {
    truth[name].as_i64().and_then(|tid| tid.try_into().ok()).expect("a thread id")
}

/// The distribution of (reported - true) of one situation.
pub(crate) struct Errors {
    what: String,
    ns: Vec<i64>,
}

impl Errors {
    pub(crate) fn of(what: impl Into<String>) -> Errors {
        Errors { what: what.into(), ns: Vec::new() }
    }

    /// Checks that `reported` lies within `truth`, give or take `bound`.
    #[track_caller]
    pub(crate) fn within(&self, reported: i64, truth: &RangeInclusive<i64>, bound: i64) {
        let (low, high) = (*truth.start(), *truth.end());
        assert!(
            (low - bound..=high + bound).contains(&reported),
            "{}: reported {reported} ns, truth {low} to {high} ns, clock bound {bound} ns",
            self.what
        );
    }

    /// The same, and its distance from the lower end goes into the distribution: once a round.
    #[track_caller]
    pub(crate) fn check(&mut self, reported: i64, truth: RangeInclusive<i64>, bound: i64) {
        self.within(reported, &truth, bound);
        self.ns.push(reported - truth.start());
    }

    /// How many rounds went into the distribution.
    pub(crate) fn count(&self) -> usize {
        self.ns.len()
    }

    /// Tells the distribution. Its minimum must be at most `quiet`, and it must have `least` values.
    #[track_caller]
    pub(crate) fn tell(mut self, quiet: i64, least: usize) {
        self.ns.sort_unstable();
        let n = self.ns.len();
        assert!(n >= least, "{}: only {n} rounds went as planned", self.what);
        let rank = |percent: usize| self.ns[(n * percent).div_ceil(100).max(1) - 1];
        let [min, p10, median, p99, max] = [0, 10, 50, 99, 100].map(rank);
        gate::measured(&format!(
            "{}: reported - true: min {min}, p10 {p10}, median {median}, p99 {p99}, max {max} ns (n {n})",
            self.what
        ));
        assert!(min <= quiet, "{}: at least {min} ns, not {quiet}", self.what);
    }
}
