//! How often each length of a pass came: exact sums, and a histogram whose bins are a cycle wide up to 2048 cycles and a
//! thousandth of the length beyond.

/// Lengths below this have a bin of their own.
///
/// Limit: percentiles beyond are at most 0.1 % too high.
/// Shown by: `figures_are_those_of_the_lengths`.
const EXACT: u64 = 2048;

/// Bins for each doubling beyond.
const HALF: u64 = EXACT / 2;

/// Lengths of passes in cycles. Adding one allocates nothing.
#[derive(Clone, Debug)]
pub(super) struct PassLengths {
    bins: Vec<u64>,
    passes: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl PassLengths {
    /// Without any, and with all of its memory touched.
    pub(super) fn new() -> Self {
        // Filled and not zeroed: zeroes would be the kernel's until the first is written.
        let mut bins = vec![1; bin(u64::MAX) + 1];
        bins.fill(0);
        PassLengths { bins, passes: 0, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }

    /// A pass of that many cycles.
    #[inline]
    pub(super) fn add(&mut self, cycles: u64) {
        self.bins[bin(cycles)] += 1;
        self.passes += 1;
        self.sum += u128::from(cycles);
        self.squares += u128::from(cycles) * u128::from(cycles);
        self.min = self.min.min(cycles);
        self.max = self.max.max(cycles);
    }

    pub(super) fn passes(&self) -> u64 {
        self.passes
    }

    pub(super) fn min(&self) -> u64 {
        self.min.min(self.max)
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum as f64 / self.passes.max(1) as f64
    }

    /// Variance of a sample (with `passes − 1`), in cycles squared; 0 of fewer than two.
    pub(super) fn variance(&self) -> f64 {
        let n = u128::from(self.passes);
        // The difference of two large numbers is taken in whole ones: nothing cancels.
        let difference =
            n.saturating_mul(self.squares).saturating_sub(self.sum.saturating_mul(self.sum));
        difference as f64 / n.max(1) as f64 / n.saturating_sub(1).max(1) as f64
    }

    /// The shortest length that `percent` of the passes do not exceed; beyond 2048 cycles up to 0.1 % too high.
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        let rank = ((percent / 100.0 * self.passes as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (n, count) in self.bins.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return (lowest(n + 1) - 1).min(self.max.into()) as u64;
            }
        }
        self.max
    }

    /// The shortest length of each bin that is not empty, that of the bin behind it, and how many it has.
    pub(super) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        let end = |n| lowest(n + 1).min(u64::MAX.into()) as u64;
        filled.map(move |(n, count)| (lowest(n) as u64, end(n), *count))
    }
}

/// The bin of a length.
#[inline]
fn bin(cycles: u64) -> usize {
    if cycles < EXACT {
        return cycles as usize;
    }
    let doublings = u64::from(cycles.ilog2() - EXACT.ilog2());
    (EXACT + doublings * HALF + ((cycles >> (doublings + 1)) - HALF)) as usize
}

/// The shortest length of a bin; that of the bin behind the last fits no `u64`.
fn lowest(bin: usize) -> u128 {
    let bin = bin as u64;
    if bin < EXACT {
        return bin.into();
    }
    let (doublings, step) = ((bin - EXACT) / HALF, (bin - EXACT) % HALF);
    u128::from(HALF + step) << (doublings + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the definitions, of the lengths themselves.
        #[test]
        fn figures_are_those_of_the_lengths(
            mut lengths in prop::collection::vec(prop_oneof![0u64..3000, 0u64..1 << 40], 1..200),
        ) {
            let mut found = PassLengths::new();
            lengths.iter().for_each(|length| found.add(*length));
            lengths.sort_unstable();
            let n = lengths.len() as f64;
            let mean = lengths.iter().map(|l| *l as f64).sum::<f64>() / n;
            prop_assert_eq!((found.min(), found.max()), (lengths[0], *lengths.last().unwrap()));
            prop_assert!((found.mean() - mean).abs() <= mean * 1e-9);
            let squares: f64 = lengths.iter().map(|l| (*l as f64 - mean).powi(2)).sum();
            let variance = if lengths.len() > 1 { squares / (n - 1.0) } else { 0.0 };
            prop_assert!((found.variance() - variance).abs() <= variance * 1e-6);
            for percent in [1.0, 50.0, 99.0, 99.99] {
                let exact = lengths[((percent / 100.0 * n).ceil() as usize).max(1) - 1];
                let told = found.percentile(percent);
                prop_assert!(told >= exact && told as f64 <= exact as f64 * 1.001, "{} {}", told, exact);
                prop_assert!(exact >= EXACT || told == exact);
            }
            prop_assert_eq!(found.bins().map(|(_, _, count)| count).sum::<u64>(), lengths.len() as u64);
        }

        #[test]
        fn every_length_lies_in_its_bin(cycles: u64) {
            for cycles in [cycles, cycles >> 20, cycles >> 50] {
                let n = bin(cycles);
                prop_assert!((lowest(n)..lowest(n + 1)).contains(&cycles.into()));
            }
        }
    }

    #[test]
    fn the_first_and_the_last_length_have_a_bin() {
        let mut found = PassLengths::new();
        found.add(u64::MAX);
        found.add(0);
        assert_eq!((found.min(), found.max(), found.passes()), (0, u64::MAX, 2));
        assert_eq!(found.percentile(100.0), u64::MAX);
        assert_eq!(PassLengths::new().variance(), 0.0);
        assert_eq!(PassLengths::new().min(), 0);
    }
}
