//! Whether what happens on one CPU comes with the tick of an operating system.
//!
//! Linux programs its tick on multiples of `NSEC_PER_SEC / CONFIG_HZ` (kernel/time/tick-sched.c), and CONFIG_HZ is 100,
//! 250, 300 or 1000. A moment is on the grid of such a period when at least [`HITS`] of the last [`KEPT`] moments came a
//! multiple of the period earlier, within a tolerance. Moments at random times lie within a tolerance of *t* of one
//! grid with the probability `2 t / period` each.

use std::collections::VecDeque;

/// Moments that are remembered.
///
/// Limit: part of the definition of the inference (`grid.rs`, `infer.rs`), which `agreement` judges.
/// Shown by: part of the definition: the tests of `grid.rs` and `infer.rs`.
const KEPT: usize = 32;

/// How many of them must lie on the grid.
///
/// Limit: as `KEPT`.
pub(crate) const HITS: usize = 6;

/// `NSEC_PER_SEC / CONFIG_HZ` for the values of kernel/Kconfig.hz, longest first.
const PERIODS_NS: [i64; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];

/// The last moments of one CPU, none of them negative.
#[derive(Debug, Default)]
pub(crate) struct Grid(VecDeque<i64>);

impl Grid {
    /// The period on whose grid `t` lies, with what is known so far; remembers `t`, which must not be negative.
    pub(crate) fn period(&mut self, t: i64, tolerance: impl Fn(i64) -> i64) -> Option<i64> {
        let hits = PERIODS_NS.map(|period| {
            let tolerance = tolerance(period);
            let on_grid = |&&earlier: &&i64| {
                let phase = (t - earlier).rem_euclid(period);
                t - earlier > tolerance && (phase <= tolerance || phase >= period - tolerance)
            };
            self.0.iter().filter(on_grid).count()
        });
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(t);
        // A grid of 10 ms is one of 1 ms, too, and some moments of that are on one of 10 ms: the longest period
        // counts that explains almost as much as any.
        let most = hits.into_iter().max().filter(|most| *most >= HITS)?;
        PERIODS_NS.into_iter().zip(hits).find(|(_, n)| 4 * n >= 3 * most).map(|(period, _)| period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Periods found of moments, with a tolerance of 20 µs.
    fn found(moments: impl Iterator<Item = i64>) -> Vec<Option<i64>> {
        let mut grid = Grid::default();
        moments.map(|t| grid.period(t, |_| 20_000)).collect()
    }

    #[test]
    fn the_longest_period_that_fits_is_found() {
        for period in PERIODS_NS {
            // Every moment of the grid, and every one but some: a thread does not see all of them.
            for step in [1, 3] {
                let moments = (0..40).map(|i| 7_015_000 + (i * step + i % 2) * period);
                let found = found(moments);
                assert!(found[..HITS].iter().all(Option::is_none), "{period}: {found:?}");
                let later = &found[KEPT..];
                assert!(later.iter().all(|p| *p == Some(period)), "{period} ×{step}: {found:?}");
            }
        }
    }

    #[test]
    fn jitter_within_the_tolerance_and_drift_are_borne() {
        // 10 µs to both sides, and clocks that differ by 20 parts in a million.
        let moments = (0..100).map(|i| 5_000_000 + i * 10_000_200 + (i * 7919) % 20_000 - 10_000);
        let found = found(moments);
        assert!(found[10..].iter().all(|p| *p == Some(10_000_000)), "{found:?}");
    }

    #[test]
    fn moments_at_random_times_are_on_no_grid() {
        let (mut t, mut state) = (0, 1u64);
        let moments = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            t += 100_000 + (state >> 40) as i64 % 9_000_000;
            t
        });
        let n = found(moments.take(5_000)).into_iter().flatten().count();
        assert!(n < 50, "{n} of 5000 random moments taken for ticks");
    }
}
