//! Where the true share lies when so many of so many samples were met.

/// The quantile of the normal distribution that belongs to an interval of 99 %.
const Z: f64 = 2.575_829_303_548_900_4;

/// The interval in which a share lies with a probability of 99 %, of which `n` of `of` samples were met: Wilson's, which
/// holds for small shares, too (Brown, Cai and DasGupta, Interval Estimation for a Binomial Proportion, 2001). Samples must be
/// independent of each other and of what they count.
pub(crate) fn share(n: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (p, of) = (n as f64 / of as f64, of as f64);
    let denominator = 1.0 + Z * Z / of;
    let centre = p + Z * Z / (2.0 * of);
    let half = Z * (p * (1.0 - p) / of + Z * Z / (4.0 * of * of)).sqrt();
    (((centre - half) / denominator).max(0.0), ((centre + half) / denominator).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the figures of Brown, Cai and DasGupta's formula, computed with another program.
    #[test]
    fn an_interval_holds_the_share_and_narrows_with_samples() {
        let check = |n, of, least: f64, most: f64| {
            let (a, b) = share(n, of);
            assert!((a - least).abs() < 5e-5 && (b - most).abs() < 5e-5, "{n} of {of}: {a} {b}");
        };
        check(0, 100, 0.0, 0.06222);
        check(25, 100, 0.15643, 0.37468);
        check(250, 1000, 0.21645, 0.28684);
        check(100, 100, 0.93778, 1.0);
        assert_eq!(share(0, 0), (0.0, 1.0));
    }

    /// With the truth known, 99 of 100 intervals must have it; the seed is fixed.
    #[test]
    fn intervals_are_as_right_as_they_say() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut right = 0;
        const ROUNDS: u32 = 2000;
        for _ in 0..ROUNDS {
            let n = (0..500).filter(|_| random.f64() < 0.3).count() as u64;
            let (least, most) = share(n, 500);
            right += u32::from(least <= 0.3 && 0.3 <= most);
        }
        let share = f64::from(right) / f64::from(ROUNDS);
        assert!((0.98..=0.998).contains(&share), "{share}");
    }
}
