//! The intervals of one subject in one unit, in memory that does not grow with their number.

use hdrhistogram::Histogram;

use super::subject::Quantity;
use crate::stats::own::Own;
use ft_analysis::Mark;

/// Intervals from which on a 99th percentile is stated.
const P99_WANTS: u64 = 100;

/// Lengths of intervals. Percentiles are at most 0.1 % too high (a histogram with three significant digits); count and sum
/// are exact.
#[derive(Debug)]
pub(super) struct Lengths {
    count: u64,
    sum: f64,
    left_out: u64,
    mark: Mark,
    recording: Recording,
    histogram: Option<Histogram<u32>>,
}

/// How long threads of the agent that recorded had the CPU in some time, and how long that is, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recording {
    pub(super) own: Own,
    pub(super) of_ns: i64,
}

impl Recording {
    /// Adds an interval; the agent's part of it is none where it is not known.
    pub(super) fn add(&mut self, own: Option<i64>, of_ns: i64) {
        self.own.add(own);
        self.of_ns = self.of_ns.saturating_add(of_ns);
    }
}

impl Default for Lengths {
    fn default() -> Self {
        // An error only for a wrong precision; without a histogram there would be no percentiles, never wrong ones.
        let histogram = Histogram::new(3).ok();
        Lengths {
            count: 0,
            sum: 0.0,
            left_out: 0,
            mark: Mark::Exact,
            recording: Recording::default(),
            histogram,
        }
    }
}

/// What is known of a subject in a unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// By [`Quantity`]; none where there are too few intervals.
    pub(super) values: [Option<f64>; Quantity::COUNT],
    /// Intervals that were recorded, those that are left out among them.
    pub(super) count: u64,
    /// Intervals whose length is not that of the program: disturbed, or censored.
    pub(super) left_out: u64,
    /// The worst mark of the others.
    pub(super) mark: Mark,
    /// What of the others is the recording's own.
    pub(super) recording: Recording,
}

impl Cell {
    /// The value of a quantity.
    pub(super) fn get(&self, quantity: Quantity) -> Option<f64> {
        self.values[quantity as usize]
    }

    /// Says the value of a quantity.
    pub(super) fn set(&mut self, quantity: Quantity, value: Option<f64>) {
        self.values[quantity as usize] = value;
    }
}

impl Lengths {
    /// Counts an interval. The length of a disturbed one is not the program's own, and that of a censored one (a
    /// wake-up across a loss) may be two: neither is in a statistic of lengths. That of a lower bound holds; it is its
    /// parts that are not known.
    pub(super) fn add(&mut self, ns: i64, own: Option<i64>, mark: Mark) {
        self.count += 1;
        if matches!(mark, Mark::Disturbed | Mark::Censored) {
            self.left_out += 1;
            return;
        }
        self.mark = self.mark.max(mark);
        self.recording.add(own, ns);
        self.sum += ns.max(0) as f64;
        if let Some(histogram) = &mut self.histogram {
            // It grows; an error only for what 64 bits have no room for.
            let _ = histogram.record(ns.max(0).unsigned_abs());
        }
    }

    /// Of a unit of this length, of which a whole recording has so many.
    pub(super) fn cell(&self, unit_ns: f64, units: usize) -> Cell {
        let n = self.count - self.left_out;
        let percentile = |q: f64| {
            let histogram = self.histogram.as_ref().filter(|h| !h.is_empty())?;
            Some(histogram.value_at_quantile(q) as f64)
        };
        let Lengths { count, left_out, mark, recording, .. } = *self;
        let mut cell = Cell { count, left_out, mark, recording, ..Cell::default() };
        cell.set(Quantity::Rate, Some(self.count as f64 / unit_ns.max(1.0) * 1e9));
        cell.set(Quantity::Sum, Some(self.sum * units as f64));
        cell.set(Quantity::Mean, (n > 0).then(|| self.sum / n as f64));
        cell.set(Quantity::Median, percentile(0.5));
        cell.set(Quantity::P99, percentile(0.99).filter(|_| n >= P99_WANTS));
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Distribution;

    #[test]
    fn the_quantities_are_those_of_the_reports() {
        let (mut lengths, mut exact) = (Lengths::default(), Distribution::default());
        for i in 0..10_000i64 {
            let ns = 30 + i * i % 7_919 * 11;
            lengths.add(ns, None, Mark::Exact);
            exact.add(ns);
        }
        let cell = lengths.cell(2e9, 4);
        let close = |quantity, expected: f64| {
            let found = cell.get(quantity).expect("enough intervals");
            assert!(
                (found / expected - 1.0).abs() <= 1e-3,
                "{quantity:?}: {found}, not {expected}"
            );
        };
        close(Quantity::Median, exact.percentile(50.0) as f64);
        close(Quantity::P99, exact.percentile(99.0) as f64);
        close(Quantity::Mean, exact.mean());
        // A quarter of a recording: its sum is as four of them.
        close(Quantity::Sum, 4.0 * exact.sum() as f64);
        close(Quantity::Rate, 5_000.0);
    }

    #[test]
    fn what_is_not_the_programs_own_length_is_left_out_and_counted() {
        let mut lengths = Lengths::default();
        for (ns, mark) in [(10, Mark::Exact), (1_000, Mark::Disturbed), (9_000, Mark::Censored)] {
            lengths.add(ns, None, mark);
        }
        let cell = lengths.cell(1e9, 1);
        assert_eq!((cell.count, cell.left_out, cell.mark), (3, 2, Mark::Exact));
        assert_eq!(cell.get(Quantity::Median), Some(10.0));
        assert_eq!(cell.get(Quantity::Sum), Some(10.0));
        assert_eq!(cell.get(Quantity::Rate), Some(3.0), "that they were is known");
        assert_eq!(cell.get(Quantity::P99), None, "too few");
        lengths.add(20, None, Mark::LowerBound);
        let cell = lengths.cell(1e9, 1);
        assert_eq!((cell.get(Quantity::Mean), cell.mark), (Some(15.0), Mark::LowerBound));
    }

    #[test]
    fn of_nothing_there_is_a_rate_and_a_sum() {
        let cell = Lengths::default().cell(1e9, 1);
        let known =
            [Quantity::Rate, Quantity::Sum, Quantity::Mean, Quantity::Median, Quantity::P99];
        assert_eq!(known.map(|q| cell.get(q)), [Some(0.0), Some(0.0), None, None, None]);
    }
}
