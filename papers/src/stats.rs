//! Statistics of repeated runs: means with a confidence interval by Student's t, and order statistics.

use std::f64::consts::FRAC_PI_2;

pub(crate) use ft_load::stats::percentile;

/// A mean, and how far the true one can be from it at 95 % confidence (Jain, "The art of computer systems performance
/// analysis", 1991, section 13.2, which is what Hourglass uses).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) mean: f64,
    /// Half the width; infinite of a single value.
    pub(crate) half: f64,
}

impl Interval {
    /// Of independent values.
    pub(crate) fn of(values: &[f64]) -> Interval {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Interval { mean, half: f64::INFINITY };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Interval { mean, half: t95(values.len() - 1) * (variance / n).sqrt() }
    }

    /// Whether all that it contains is above zero: only then is there something to explain.
    pub(crate) fn is_above_zero(self) -> bool {
        self.mean - self.half > 0.0
    }
}

/// The 97.5th percentile of Student's t.
///
/// With `t = √n tan θ` its density becomes that of `cosⁿ⁻¹ θ`, whose integral over a finite range needs no gamma function.
fn t95(degrees: usize) -> f64 {
    let power = degrees as i32 - 1;
    let integral = |to: f64| {
        const STEPS: u32 = 2000;
        let at = |n: u32| (to * f64::from(n) / f64::from(STEPS)).cos().powi(power);
        // Simpson's rule.
        let inner: f64 = (1..STEPS).map(|n| if n % 2 == 1 { 4.0 } else { 2.0 } * at(n)).sum();
        (at(0) + inner + at(STEPS)) * to / f64::from(STEPS) / 3.0
    };
    let whole = integral(FRAC_PI_2);
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match integral(middle) / whole < 0.95 {
            true => low = middle,
            false => high = middle,
        }
    }
    (degrees as f64).sqrt() * low.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, t) in [(1, 12.706), (2, 4.303), (9, 2.262), (14, 2.145), (120, 1.980)] {
            assert!((t95(degrees) - t).abs() < 6e-4, "{degrees}: {}", t95(degrees));
        }
        // Jain's example 13.2 with its own figures: mean 3.90, deviation 0.95, 32 values; here by n and deviation alone.
        let interval = Interval::of(&[1.0, 3.0]);
        assert_eq!(interval.mean, 2.0);
        assert!((interval.half - 12.706).abs() < 1e-2, "{interval:?}");
        assert!(Interval::of(&[5.0]).half.is_infinite());
    }

    #[test]
    fn percentiles_are_values() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&values, 50.0), Some(100));
        assert_eq!(percentile(&values, 99.9), Some(200));
        assert_eq!(percentile(&values, 0.0), Some(1));
        assert_eq!(percentile(&[], 50.0), None);
    }
}
