//! Durations over the time at which they began.

use std::collections::BTreeMap;

/// Moments into which a window is divided: what a figure has pixels for.
///
/// Limit: part of the definition: the figure says how long one is.
/// Shown by: `every_duration_is_in_the_moment_in_which_it_began`.
const MOMENTS: u32 = 256;

/// The time that is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Begin, CLOCK_MONOTONIC ns.
    pub from_ns: i64,
    /// End, CLOCK_MONOTONIC ns.
    pub to_ns: i64,
}

impl Window {
    /// Its length, ns; at least 1.
    pub fn length_ns(self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns).max(1)
    }

    /// The moment in which a time lies; what lies outside is in the first or the last.
    fn moment(self, ts: i64) -> u32 {
        let since = ts.saturating_sub(self.from_ns).clamp(0, self.length_ns() - 1);
        (i128::from(since) * i128::from(MOMENTS) / i128::from(self.length_ns())) as u32
    }

    /// When a moment begins, ns after the begin of the window.
    pub fn begin_ns(self, moment: u32) -> i64 {
        (i128::from(moment) * i128::from(self.length_ns()) / i128::from(MOMENTS)) as i64
    }
}

/// What began in one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// How many.
    pub count: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// The longest, ns.
    pub max_ns: i64,
}

/// Durations by the moment in which they began; empty moments are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverTime(BTreeMap<u32, Moment>);

impl OverTime {
    /// Counts a duration that began at `ts`.
    pub fn add(&mut self, window: Window, ts: i64, ns: i64) {
        let moment = self.0.entry(window.moment(ts)).or_default();
        moment.count += 1;
        moment.total_ns = moment.total_ns.saturating_add(ns);
        moment.max_ns = moment.max_ns.max(ns);
    }

    /// The moments that are not empty, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Moment)> {
        self.0.iter().map(|(at, moment)| (*at, *moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_the_moment_in_which_it_began() {
        let window = Window { from_ns: 1_000, to_ns: 1_000 + 2_560 };
        let mut found = OverTime::default();
        for (ts, ns) in
            [(1_000, 5), (1_009, 7), (1_010, 1), (3_559, 2), (i64::MIN, 1), (i64::MAX, 3)]
        {
            found.add(window, ts, ns);
        }
        let found: Vec<_> =
            found.iter().map(|(at, m)| (at, m.count, m.total_ns, m.max_ns)).collect();
        assert_eq!(found, [(0, 3, 13, 7), (1, 1, 1, 1), (255, 2, 5, 3)]);
        assert_eq!([0, 1, 255].map(|moment| window.begin_ns(moment)), [0, 10, 2_550]);
        // A window that is none, and one that is all there is.
        let mut none = OverTime::default();
        none.add(Window::default(), 7, 7);
        none.add(Window { from_ns: i64::MIN, to_ns: i64::MAX }, 0, 7);
        assert_eq!(none.iter().count(), 2);
    }
}
