//! Times that describe themselves (`3m`, `1.5s`, `1020ms`, `87.0us`), read exactly and printed exactly.
//!
//! Inside the crate a time is a whole number of nanoseconds in a `u64`.

use std::fmt;

use crate::Error;

/// Units, by their length in nanoseconds. `m` is the minute of Hourglass (appendix A).
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Longest time that is understood: 30 years, which leaves room to add any two.
///
/// Limit: as `LONGEST_NS` of `events.rs`.
const LONGEST_NS: u64 = 30 * 365 * 24 * 3_600_000_000_000;

/// Reads a time such as `1.5s`, in nanoseconds.
///
/// # Errors
///
/// A sentence for what has no unit or an unknown one, is no number, is finer than a nanosecond or longer than 30 years.
pub fn parse(text: &str) -> Result<u64, Error> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.ends_with('.')) {
        return Err(Error::usage(format!(
            "`{}` is not a time; write a number and a unit, such as 87.0us, 5ms, 1.5s or 3m",
            text.escape_debug()
        )));
    }
    if unit.is_empty() {
        return Err(Error::usage(format!(
            "`{text}` has no unit; write {text}us, {text}ms, {text}s or {text}m"
        )));
    }
    let Some(&(_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(Error::usage(format!(
            "`{}` has an unknown unit; use ns, us, ms, s, m (minutes) or h",
            text.escape_debug()
        )));
    };
    let too_long = || Error::usage(format!("`{text}` is too long; use a time below 30 years"));
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let fraction = fraction.trim_end_matches('0');
    let too_fine =
        || Error::usage(format!("`{text}` is finer than a nanosecond; write fewer digits"));
    let fraction_ns = if fraction.is_empty() {
        0
    } else {
        let scale = u32::try_from(fraction.len()).ok().and_then(|n| 10u64.checked_pow(n));
        let (Some(scale), Ok(digits)) = (scale, fraction.parse::<u64>()) else {
            return Err(too_fine());
        };
        let product = u128::from(digits) * u128::from(unit_ns);
        if !product.is_multiple_of(u128::from(scale)) {
            return Err(too_fine());
        }
        // Less than one unit, so it fits.
        (product / u128::from(scale)) as u64
    };
    let ns = whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(fraction_ns));
    ns.filter(|ns| *ns <= LONGEST_NS).ok_or_else(too_long)
}

/// Prints nanoseconds in the largest unit up to seconds that makes it at least one, with all digits: `29 ms`, `3.1 ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(
    /// Nanoseconds.
    pub u64,
);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, digits) = match self.0 {
            0 => return f.pad("0"),
            1..1_000 => ("ns", 0),
            1_000..1_000_000 => ("µs", 3),
            1_000_000..1_000_000_000 => ("ms", 6),
            _ => ("s", 9),
        };
        let scale = 10u64.pow(digits);
        let mut number = (self.0 / scale).to_string();
        let rest = self.0 % scale;
        if rest != 0 {
            let rest = format!("{rest:0width$}", width = digits as usize);
            number = format!("{number}.{}", rest.trim_end_matches('0'));
        }
        f.pad(&format!("{number} {unit}"))
    }
}

/// Prints nanoseconds as milliseconds with six digits, as the execution traces of Hourglass have them: exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ms(pub(crate) i64);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        f.pad(&format!("{sign}{}.{:06}", ns / 1_000_000, ns % 1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_paper_are_read() {
        assert_eq!(parse("3m"), Ok(180_000_000_000));
        assert_eq!(parse("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse("1020ms"), Ok(1_020_000_000));
        assert_eq!(parse("87.0us"), Ok(87_000));
        assert_eq!(parse("0.9ms"), Ok(900_000));
        assert_eq!(parse("2h"), Ok(7_200_000_000_000));
        assert_eq!(parse("0s"), Ok(0));
        assert_eq!(parse("007.50µs"), Ok(7_500));
    }

    #[test]
    fn what_is_no_time_is_refused_with_a_remedy() {
        for (text, remedy) in [
            ("30", "write 30us, 30ms, 30s or 30m"),
            ("", "write a number and a unit"),
            ("ms", "write a number and a unit"),
            (".5ms", "write a number and a unit"),
            ("5.ms", "write a number and a unit"),
            ("1.2.3s", "write a number and a unit"),
            ("-3ms", "write a number and a unit"),
            ("3 ms", "use ns, us, ms, s"),
            ("3msec", "use ns, us, ms, s"),
            ("3\nms", "use ns, us, ms, s"),
            ("0.5ns", "write fewer digits"),
            ("0.0000000000000000000000001s", "write fewer digits"),
            ("99999999999999999999s", "below 30 years"),
            ("31000000m", "below 30 years"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn times_are_printed_with_all_digits() {
        let shown = |ns| Time(ns).to_string();
        assert_eq!(shown(0), "0");
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(1_500), "1.5 µs");
        assert_eq!(shown(29_000_000), "29 ms");
        assert_eq!(shown(3_100_001), "3.100001 ms");
        assert_eq!(shown(60_000_000_000), "60 s");
        assert_eq!(Ms(442_323_192).to_string(), "442.323192");
        assert_eq!(Ms(-2_184).to_string(), "-0.002184");
    }
}
