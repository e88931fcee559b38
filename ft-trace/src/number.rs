//! Durations and counts as people read them, in reports as in warnings.

/// A duration with three significant digits: `812 ns`, `1.23 µs`, `45.6 ms`, `1.00 s`.
pub fn ns(ns: impl Into<f64>) -> String {
    let ns: f64 = ns.into();
    // The upper limits are those that would be printed with four digits.
    let (value, unit) = match ns.abs() {
        n if n < 999.5 => return format!("{ns:.0} ns"),
        n if n < 999.5e3 => (ns / 1e3, "µs"),
        n if n < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// [`ns`] of a table's column.
pub fn dur(ns_: i64) -> String {
    ns(ns_ as f64)
}

/// A number with three significant digits, or more where its whole part has more.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A count with separators: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 gap`, `2 gaps`, `2 processes`.
pub fn quantity(n: u64, noun: &str) -> String {
    let ending = match n {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        let both = |noun| [1, 2_000].map(|n| quantity(n, noun));
        assert_eq!(both("gap"), ["1 gap", "2,000 gaps"]);
        assert_eq!(both("process"), ["1 process", "2,000 processes"]);
    }

    #[test]
    fn durations_have_three_digits_and_the_unit_that_fits() {
        for (value, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (-123_400, "-123 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (45_600_000, "45.6 ms"),
            (999_500_000, "1.00 s"),
            (3_723_000_000_000, "3723 s"),
        ] {
            assert_eq!(dur(value), expected, "{value}");
        }
    }

    #[test]
    fn counts_have_separators() {
        for (n, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), expected);
        }
    }
}
