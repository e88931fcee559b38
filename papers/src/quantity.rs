//! Quantities as a reader of a table wants them: three digits, and a unit that fits.

/// A time given in nanoseconds: `2.31 µs`.
pub(crate) fn ns(value: f64) -> String {
    let (divisor, unit) = match value.abs() {
        v if v < 1e3 => (1.0, "ns"),
        v if v < 1e6 => (1e3, "µs"),
        v if v < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", digits(value / divisor))
}

/// A share of 1 in percent.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p != 0.0 && p.abs() < 0.05 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// Three digits.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(ns(225.0), "225 ns");
        assert_eq!(ns(2_184.0), "2.18 µs");
        assert_eq!(ns(60e6), "60.0 ms");
        assert_eq!(ns(1.5e9), "1.50 s");
        assert_eq!(percent(0.33), "33.0 %");
        assert_eq!(percent(0.0004), "0.04 %");
        assert_eq!(digits(9.999), "10.0");
    }
}
