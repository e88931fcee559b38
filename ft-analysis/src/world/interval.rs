//! Intervals that an application reported.

/// An interval of the past, in CLOCK_MONOTONIC ns: `0 <= before <= after <= now` when it was reported.
///
/// An application writes both ends, and may write anything. Whoever has an `Interval` may subtract any two times of
/// it and of the trace: times that are not negative differ by what an `i64` can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    before: i64,
    after: i64,
}

impl Interval {
    /// `None` when there can be no such interval.
    pub(crate) fn told(before: i64, after: i64, now: i64) -> Option<Interval> {
        (0 <= before && before <= after && after <= now).then_some(Interval { before, after })
    }

    /// Its begin.
    pub(crate) fn before(self) -> i64 {
        self.before
    }

    /// Its end.
    pub(crate) fn after(self) -> i64 {
        self.after
    }

    /// Its length, ns; not negative.
    pub(crate) fn len_ns(self) -> i64 {
        self.after - self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_have_been_is_believed() {
        let all = [i64::MIN, -1, 0, 1, 99, 100, 101, i64::MAX];
        for (before, after) in all.iter().flat_map(|b| all.map(|a| (*b, a))) {
            let possible = 0 <= before && before <= after && after <= 100;
            let interval = Interval::told(before, after, 100);
            assert_eq!(interval.is_some(), possible, "{before}..{after}");
            assert!(interval.is_none_or(|i| (0..=100).contains(&i.len_ns())));
        }
    }
}
