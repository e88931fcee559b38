//! Figures of many times: order statistics, outliers, and histograms whose bins grow.

use std::fmt::Write;

use serde::Serialize;

/// What a set of times is like, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many there are.
    pub count: usize,
    /// The shortest.
    pub min_ns: u64,
    /// Half of them are at most this.
    pub median_ns: u64,
    /// Sum by count.
    pub mean_ns: f64,
    /// Of a sample: with `count − 1`; 0 of a single one.
    pub standard_deviation_ns: f64,
    /// 99 % of them are at most this.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Summary {
    /// Of `times`, which it sorts; `None` where there are none.
    pub fn of(times: &mut [u64]) -> Option<Self> {
        times.sort_unstable();
        let (min, max) = (*times.first()?, *times.last()?);
        let count = times.len();
        let mean = times.iter().map(|t| *t as f64).sum::<f64>() / count as f64;
        let squares: f64 = times.iter().map(|t| (*t as f64 - mean).powi(2)).sum();
        Some(Summary {
            count,
            min_ns: min,
            median_ns: percentile(times, 50.0)?,
            mean_ns: mean,
            standard_deviation_ns: (squares / (count.max(2) - 1) as f64).sqrt(),
            p99_ns: percentile(times, 99.0)?,
            max_ns: max,
        })
    }
}

/// Times that are what they seem, apart from those in which something else happened, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Typical {
    /// Half of those that are at most ten times as long as the shortest are at most this.
    pub typical_ns: u64,
    /// How many are longer than that.
    pub outliers: usize,
}

impl Typical {
    /// Of sorted times; `None` where there are none.
    ///
    /// That the shortest is the fastest path, that those of about its length are of its kind and their median is what to
    /// expect, and that longer ones have something else in them, is how Hourglass reads switches (section 4). A fence
    /// that is drawn by quartiles would let a machine that is shared move it.
    pub fn of(times: &[u64]) -> Option<Self> {
        let fence = times.first()?.saturating_mul(10);
        let typical = &times[..times.partition_point(|t| *t <= fence)];
        let outliers = times.len() - typical.len();
        Some(Typical { typical_ns: percentile(typical, 50.0)?, outliers })
    }
}

/// The smallest of the sorted `values` that `percent` of them do not exceed; `None` where there are none.
pub fn percentile(values: &[u64], percent: f64) -> Option<u64> {
    let n = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(n.clamp(1, values.len().max(1)) - 1).copied()
}

/// Three bins a decade.
pub(crate) const COARSE: &[u64] = &[100, 200, 500];

/// Ten bins a decade (the preferred numbers R10 of ISO 3).
pub(crate) const FINE: &[u64] = &[100, 125, 160, 200, 250, 315, 400, 500, 630, 800];

/// The lower edges of the bins from 1 ns on: `steps` hundredths, times powers of ten. Below 10 ns they coincide or are
/// left out.
pub(crate) fn edges(steps: &[u64]) -> Vec<u64> {
    let mut edges = vec![0];
    for decade in 0..16u32 {
        let edge = |step: &u64| step * 10u64.pow(decade) / 100;
        edges.extend(steps.iter().map(edge));
    }
    edges.dedup();
    edges
}

/// A histogram of values and how often each is there, as lines of text, from the first bin that has something to the
/// last, and where that ends; three empty ones or more are one line. Bars are as long as the share of the fullest bin.
pub(crate) fn histogram(steps: &[u64], values: impl Iterator<Item = (u64, u64)>) -> String {
    const BAR: u64 = 40;
    let edges = edges(steps);
    let mut bins = vec![0u64; edges.len()];
    for (value, count) in values {
        bins[edges.partition_point(|edge| *edge <= value) - 1] += count;
    }
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    let first = bins.iter().position(|n| *n > 0).unwrap_or(0);
    let last = bins.iter().rposition(|n| *n > 0).map_or(0, |n| n + 1);
    let mut text = String::new();
    let mut rest = &bins[first..last];
    while let Some((count, behind)) = rest.split_first() {
        let empty = rest.iter().take_while(|count| **count == 0).count();
        if empty >= 3 {
            text += "  …\n";
            rest = &rest[empty..];
            continue;
        }
        let from = crate::time::Time(edges[last - rest.len()]).to_string();
        // What is there shows, if only as one character.
        let bar = (count * BAR / most).max(u64::from(*count > 0)) as usize;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  from {from:>8} {count:>12} {}", "#".repeat(bar));
        rest = behind;
    }
    if let (Some(end), true) = (edges.get(last), first < last) {
        let to = crate::time::Time(*end).to_string();
        let _ = writeln!(text, "    to {to:>8}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_definition() {
        let mut times: Vec<u64> = (1..=100).rev().collect();
        let summary = Summary::of(&mut times).unwrap();
        assert_eq!((summary.count, summary.min_ns, summary.max_ns), (100, 1, 100));
        assert_eq!((summary.median_ns, summary.p99_ns, summary.mean_ns), (50, 99, 50.5));
        assert_eq!(Summary::of(&mut []), None);
        assert_eq!(Summary::of(&mut [7]).unwrap().standard_deviation_ns, 0.0);
        let two = Summary::of(&mut [3, 5]).unwrap();
        assert!((two.standard_deviation_ns - 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn outliers_do_not_move_what_is_typical() {
        let mut times: Vec<u64> = (100..200).chain([1_001; 90]).collect();
        times.sort_unstable();
        assert_eq!(Typical::of(&times), Some(Typical { typical_ns: 149, outliers: 90 }));
        assert_eq!(Typical::of(&[0, 5]), Some(Typical { typical_ns: 0, outliers: 1 }));
        assert_eq!(Typical::of(&[]), None);
    }

    #[test]
    fn every_value_has_its_bin() {
        let edges = edges(COARSE);
        assert_eq!(edges[..8], [0, 1, 2, 5, 10, 20, 50, 100]);
        assert!(super::edges(FINE).is_sorted_by(|a, b| a < b));
        let text = histogram(COARSE, [(19, 1), (20, 80), (49, 1), (50, 0), (100, 2)].into_iter());
        let bars = "#".repeat(40);
        assert_eq!(
            text,
            format!(
                "  from    10 ns            1 #\n  from    20 ns           81 {bars}\n  \
                 from    50 ns            0 \n  from   100 ns            2 #\n    to   200 ns\n"
            )
        );
        assert_eq!(histogram(FINE, std::iter::empty()), "");
        assert_eq!(histogram(COARSE, [(10, 1), (100, 1)].into_iter()).matches('\n').count(), 5);
        assert!(
            histogram(COARSE, [(10, 1), (200, 1)].into_iter()).contains("#\n  …\n  from   200 ns")
        );
        assert!(histogram(FINE, [(u64::MAX, 1), (0, 1)].into_iter()).contains("from        0"));
    }
}
