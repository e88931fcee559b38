//! Distributions of durations.
//!
//! [`Distribution`] gives count, sum, maximum and how many exceed fixed thresholds, all exact, and
//! percentiles that are exact up to [`EXACT`] values. Beyond, they come from an HDR histogram with three
//! significant digits: a percentile is then at most 0.1 % too high, and [`Distribution::exact`] says so.
//! [`Bins`] is the histogram of the Feather-Trace paper: 0.1 µs wide bins.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Values of one distribution that are kept as they are (512 KiB).
///
/// Limit: percentiles are at most 0.1 % too high, and JSON says `percentiles_exact: false`; count, sum and maximum stay
/// exact.
/// Shown by: `many_values_keep_their_percentiles_within_the_stated_error`.
pub const EXACT: usize = 1 << 16;

/// Durations of any number, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    count: u64,
    sum: i128,
    max: i64,
    values: Vec<i64>,
    sorted: bool,
    histogram: Option<Box<Histogram<u64>>>,
}

impl Distribution {
    /// Adds a duration; a negative one counts as 0.
    pub fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.count += 1;
        self.sum += i128::from(ns);
        self.max = self.max.max(ns);
        match &mut self.histogram {
            Some(h) => h.saturating_record(ns.unsigned_abs()),
            None if self.values.len() < EXACT => {
                self.values.push(ns);
                self.sorted = false;
            }
            None => self.start_histogram(ns),
        }
    }

    fn start_histogram(&mut self, ns: i64) {
        // Bounds 1 and u64::MAX / 2 are always valid, so there is an error only for a wrong precision.
        let Ok(mut h) = Histogram::new_with_bounds(1, u64::MAX / 2, 3) else { return };
        for v in std::mem::take(&mut self.values).into_iter().chain([ns]) {
            h.saturating_record(v.unsigned_abs());
        }
        self.histogram = Some(Box::new(h));
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    pub fn sum(&self) -> i64 {
        self.sum.try_into().unwrap_or(i64::MAX)
    }

    /// The largest, ns; 0 when there is none.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// The average, ns; 0 when there is none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Percentiles are exact, not rounded up by at most 0.1 %.
    pub fn exact(&self) -> bool {
        self.histogram.is_none()
    }

    /// The smallest value that at least `percent` of all do not exceed (nearest rank, `percent` in steps of
    /// 0.01); 0 when there is none.
    pub fn percentile(&mut self, percent: f64) -> i64 {
        if let Some(h) = &self.histogram {
            // The middle of the rank, so that rounding cannot reach a neighbour.
            let quantile = (self.rank(percent) as f64 - 0.5) / self.count as f64;
            let value = i64::try_from(h.value_at_quantile(quantile)).unwrap_or(i64::MAX);
            return value.min(self.max);
        }
        if !self.sorted {
            self.values.sort_unstable();
            self.sorted = true;
        }
        self.values.get(self.rank(percent) as usize - 1).copied().unwrap_or(0)
    }

    /// [`Distribution::percentile`], where as many values lie above it as its distance from 100 % promises:
    /// 10,000 values support 99.99 %. With fewer it is the maximum by another name: `None`.
    pub fn supported_percentile(&mut self, percent: f64) -> Option<i64> {
        (self.rank(percent) < self.count).then(|| self.percentile(percent))
    }

    /// Nearest rank, from 1, of a percentile in steps of 0.01 %.
    fn rank(&self, percent: f64) -> u64 {
        // As integers: 99.99 / 100.0 * 10_000.0 is more than 9,999.
        let steps = (percent * 100.0).round() as u128;
        let rank = (u128::from(self.count) * steps).div_ceil(10_000) as u64;
        rank.clamp(1, self.count.max(1))
    }
}

/// Width of a bin of [`Bins`], ns.
pub const BIN_NS: i64 = 100;

/// Bins of their own: up to 10 ms. One more takes everything from there on.
///
/// Limit: the last bin is *10 ms and more*.
/// Shown by: `bins_are_a_tenth_of_a_microsecond_wide`.
pub const MAX_BINS: i64 = 100_000;

/// Histogram in bins of 0.1 µs; empty bins are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bins(BTreeMap<i64, u64>);

impl Bins {
    /// Counts a duration.
    pub fn add(&mut self, ns: i64) {
        *self.0.entry((ns.max(0) / BIN_NS).min(MAX_BINS)).or_default() += 1;
    }

    /// Lower edge in ns and count of each bin that is not empty, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.0.iter().map(|(bin, n)| (bin * BIN_NS, *n))
    }
}

/// Counts values at or below each of some thresholds; exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds<const N: usize> {
    at: [i64; N],
    below: [u64; N],
}

impl<const N: usize> Thresholds<N> {
    /// Thresholds in ns.
    pub const fn new(at: [i64; N]) -> Self {
        Thresholds { at, below: [0; N] }
    }

    /// Counts a duration.
    pub fn add(&mut self, ns: i64) {
        for (at, below) in self.at.iter().zip(&mut self.below) {
            *below += u64::from(ns <= *at);
        }
    }

    /// Each threshold and how many did not exceed it.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.at.into_iter().zip(self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let check = |values: &[i64], expected: [i64; 4]| {
            let mut d = Distribution::default();
            values.iter().for_each(|v| d.add(*v));
            let found = [50.0, 90.0, 99.0, 100.0].map(|p| d.percentile(p));
            assert_eq!(found, expected, "{values:?}");
        };
        check(&[], [0; 4]);
        check(&[7], [7; 4]);
        check(&[3, 1, 2, 4], [2, 4, 4, 4]);
        check(&(1..=100).rev().collect::<Vec<_>>(), [50, 90, 99, 100]);
    }

    #[test]
    fn many_values_keep_their_percentiles_within_the_stated_error() {
        let mut d = Distribution::default();
        let n = 2 * EXACT as i64;
        (1..=n).for_each(|i| d.add(i * 1000));
        assert!(!d.exact());
        for percent in [1.0, 50.0, 99.0] {
            let exact = (percent / 100.0 * n as f64).ceil() * 1000.0;
            let found = d.percentile(percent) as f64;
            assert!(found >= exact && found <= exact * 1.001, "{percent}: {found}, not {exact}");
        }
        assert_eq!((d.count(), d.max()), (n as u64, n * 1000));
        assert_eq!(d.percentile(100.0), n * 1000);
        assert_eq!(d.mean(), 1000.0 * (n + 1) as f64 / 2.0);
    }

    #[test]
    fn tails_are_right_within_the_stated_error_whatever_the_distribution() {
        let mut state = 88172645463325252u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        // From 1 ns to 9 s, each octave alike; nearly constant; two far apart.
        let mut shapes: [Box<dyn FnMut(u64) -> i64>; 3] = [
            Box::new(|r| (r >> 31) as i64 >> (r % 33)),
            Box::new(|r| 1_000_000 + (r % 100) as i64),
            Box::new(|r| if r.is_multiple_of(1500) { 80_000_000 } else { 300 + (r % 7) as i64 }),
        ];
        for shape in &mut shapes {
            for n in [10_000, EXACT, EXACT + 1, 4 * EXACT] {
                let mut values: Vec<i64> = (0..n).map(|_| shape(random())).collect();
                let mut d = Distribution::default();
                values.iter().for_each(|v| d.add(*v));
                values.sort_unstable();
                for (percent, per) in [(50.0, 5_000), (99.0, 9_900), (99.9, 9_990), (99.99, 9_999)]
                {
                    let exact = values[(n * per).div_ceil(10_000) - 1];
                    let found = d.percentile(percent);
                    let most = if d.exact() { exact } else { exact + exact / 1000 + 1 };
                    assert!((exact..=most).contains(&found), "{n} {percent}: {found}, not {exact}");
                }
            }
        }
    }

    #[test]
    fn bins_are_a_tenth_of_a_microsecond_wide() {
        let mut bins = Bins::default();
        for ns in [0, 99, 100, 250, -5, 9_999_999, 10_000_000, i64::MAX] {
            bins.add(ns);
        }
        let found: Vec<_> = bins.iter().collect();
        assert_eq!(found, [(0, 3), (100, 1), (200, 1), (9_999_900, 1), (10_000_000, 2)]);
    }

    #[test]
    fn thresholds_include_their_value() {
        let mut t = Thresholds::new([10, 20]);
        [5, 10, 11, 21].into_iter().for_each(|ns| t.add(ns));
        assert_eq!(t.iter().collect::<Vec<_>>(), [(10, 2), (20, 3)]);
    }
}
