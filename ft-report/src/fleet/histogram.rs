//! Buckets of the tables `histograms`, added.

use std::collections::BTreeMap;

use ft_analysis::Mark;
use ft_trace::tables::Bucket;

use crate::stats::Marks;

/// How much a percentile can be too high, as a part of it; it is never too low.
pub const ERROR: f64 = 1.0 / 32.0;

/// The lengths of many intervals, by bucket.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// By the greatest length of a bucket, ns: how many.
    buckets: BTreeMap<i64, u64>,
    max_ns: i64,
    /// All of them by mark; censored ones have no length.
    pub marks: Marks,
    /// Sum of all lengths, ns.
    pub sum_ns: i128,
}

impl Histogram {
    /// Adds a bucket of a trace, which [`is_sound`].
    pub fn add(&mut self, row: &Bucket) {
        let count = row.count.unsigned_abs();
        self.marks.add_many(row.mark, count);
        if row.mark == Mark::Censored {
            return;
        }
        self.sum_ns += i128::from(row.sum_ns);
        let n = self.buckets.entry(row.to_ns).or_insert(0);
        *n = n.saturating_add(count);
        self.max_ns = self.max_ns.max(row.max_ns);
    }

    /// How many there are that have a length.
    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The longest, ns; 0 of none.
    pub fn max_ns(&self) -> i64 {
        self.max_ns
    }

    /// Average, ns; `None` of none.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// The length that `per_mille` of them do not exceed (nearest rank), within [`ERROR`]; `None` where there are too few for
    /// it to be another than the longest.
    pub fn percentile(&self, per_mille: u64) -> Option<i64> {
        let count = self.count();
        let beyond = u128::from(count) * u128::from(1000 - per_mille.min(1000));
        if beyond < 1000 {
            return None;
        }
        let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (to_ns, n) in &self.buckets {
            seen += u128::from(*n);
            if seen >= rank {
                return Some(self.max_ns.min(*to_ns));
            }
        }
        None
    }
}

/// Whether a row can have been written by an analysis: in a catalogue of somebody else it may say anything.
pub fn is_sound(row: &Bucket) -> bool {
    let (least, most) = (i128::from(row.from_ns), i128::from(row.to_ns));
    let (count, sum) = (i128::from(row.count), i128::from(row.sum_ns));
    let is_saturated = row.sum_ns == i64::MAX;
    row.count > 0
        && row.from_ns >= 0
        && (row.from_ns, row.to_ns) == bounds(row.from_ns)
        && (row.from_ns..=row.to_ns).contains(&row.max_ns)
        && (is_saturated || (count * least <= sum && sum <= count * most))
}

/// The bucket of a length, ns: 32 of equal width for each power of two, as the table says.
pub(super) fn bounds(ns: i64) -> (i64, i64) {
    if ns < 64 {
        return (ns, ns);
    }
    let width = 1 << (ns.ilog2() - 5);
    let from_ns = ns - ns % width;
    (from_ns, from_ns + (width - 1))
}
