//! Student's distribution.

/// How likely a value is further from 0 than `t`, to either side, with so many degrees of freedom.
///
/// By the regularised incomplete beta function, as a continued fraction (Abramowitz and Stegun, 26.5.8 and 26.7.1).
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Beyond which a value lies with this probability, to either side.
pub fn critical(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    // Each step halves the interval.
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > probability { low = middle } else { high = middle }
    }
    high
}

/// The regularised incomplete beta function.
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side alone.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// Its continued fraction, evaluated from the front (Lentz).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            value *= c * d;
        }
        if (value - before).abs() < value.abs() * 1e-15 {
            break;
        }
    }
    value
}

/// Logarithm of the gamma function of a positive number: by its recurrence up to where Stirling's series is good.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + (2.0 * std::f64::consts::PI).ln() / 2.0 + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        // One degree is Cauchy's distribution, two have a closed form.
        for t in [0.0_f64, 0.1, 1.0, 3.0, 12.7, 1000.0] {
            let one = 1.0 - 2.0 / std::f64::consts::PI * t.atan();
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 1.0) - one).abs() < 1e-10, "{t}: {}", two_sided(t, 1.0));
            assert!((two_sided(-t, 2.0) - two).abs() < 1e-10, "{t}");
        }
    }

    #[test]
    fn tables() {
        // Two-sided 5 % and 1 %, as every textbook has them.
        for (freedom, five, one) in
            [(1.0, 12.706, 63.657), (4.0, 2.776, 4.604), (9.0, 2.262, 3.250), (120.0, 1.980, 2.617)]
        {
            assert!((critical(0.05, freedom) - five).abs() < 5e-4, "{freedom}");
            assert!((critical(0.01, freedom) - one).abs() < 5e-4, "{freedom}");
        }
        assert_eq!(two_sided(f64::INFINITY, 3.0), 0.0);
        assert_eq!(two_sided(f64::NAN, 3.0), 1.0);
    }
}
