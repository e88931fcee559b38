//! How long the passes of a loop took, of several runs together.

use std::collections::BTreeMap;

/// Passes by their length. The shorter ones are whole cycles of the counter, so that few lengths have many passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Passes {
    /// By picoseconds: lengths are compared, and floating point is no key.
    by_ps: BTreeMap<u64, u64>,
    /// How long they were recorded, s.
    seconds: f64,
}

impl Passes {
    /// Adds `count` passes of `ns`.
    pub(super) fn add(&mut self, ns: f64, count: u64) {
        *self.by_ps.entry((ns * 1e3).round() as u64).or_default() += count;
        self.seconds += ns * count as f64 / 1e9;
    }

    pub(super) fn merge(&mut self, other: &Passes) {
        other.by_ps.iter().for_each(|(ps, count)| *self.by_ps.entry(*ps).or_default() += count);
        self.seconds += other.seconds;
    }

    /// Lengths in ns, and how often each came.
    pub(super) fn values(&self) -> impl Iterator<Item = (f64, u64)> {
        self.by_ps.iter().map(|(ps, count)| (*ps as f64 / 1e3, *count))
    }

    /// How long all of them took, s.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(super) fn count(&self) -> u64 {
        self.by_ps.values().sum()
    }

    pub(super) fn min_ns(&self) -> f64 {
        self.by_ps.first_key_value().map_or(0.0, |(ps, _)| *ps as f64 / 1e3)
    }

    pub(super) fn max_ns(&self) -> f64 {
        self.by_ps.last_key_value().map_or(0.0, |(ps, _)| *ps as f64 / 1e3)
    }

    pub(super) fn mean_ns(&self) -> f64 {
        let sum: f64 = self.values().map(|(ns, count)| ns * count as f64).sum();
        sum / self.count().max(1) as f64
    }

    /// Of a sample, ns².
    pub(super) fn variance_ns2(&self) -> f64 {
        let mean = self.mean_ns();
        let squares: f64 =
            self.values().map(|(ns, count)| (ns - mean).powi(2) * count as f64).sum();
        squares / self.count().saturating_sub(1).max(1) as f64
    }

    /// The shortest length that `percent` of the passes do not exceed, ns.
    pub(super) fn percentile_ns(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        let at = self.values().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        at.map_or(self.max_ns(), |(ns, _)| ns)
    }

    /// How many were longer, per second.
    pub(super) fn longer_per_second(&self, than_ns: f64) -> f64 {
        let longer: u64 = self.values().filter(|(ns, _)| *ns > than_ns).map(|(_, n)| n).sum();
        longer as f64 / self.seconds.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_definition() {
        let mut passes = Passes::default();
        passes.add(10.0, 98);
        let mut rest = Passes::default();
        rest.add(20.0, 1);
        rest.add(6_000.0, 1);
        passes.merge(&rest);
        assert_eq!((passes.count(), passes.min_ns(), passes.max_ns()), (100, 10.0, 6_000.0));
        assert!((passes.mean_ns() - 70.0).abs() < 1e-9);
        let variance = (98.0 * 3600.0 + 2500.0 + 5930.0 * 5930.0) / 99.0;
        assert!((passes.variance_ns2() - variance).abs() < 1e-6);
        assert_eq!([98.0, 99.0, 100.0].map(|p| passes.percentile_ns(p)), [10.0, 20.0, 6_000.0]);
        assert!((passes.longer_per_second(5e3) - 1.0 / 7e-6).abs() < 1.0);
        assert_eq!((Passes::default().count(), Passes::default().mean_ns()), (0, 0.0));
    }
}
