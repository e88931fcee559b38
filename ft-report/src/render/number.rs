//! Numbers as people read them.

use crate::units;
use ft_trace::number::three_digits;
pub(crate) use ft_trace::number::{count, dur, ns, quantity};

/// A count for a column: [`count`], above a million with three digits (`1.23 M`), so that columns stay narrow.
pub(crate) fn short_count(n: u64) -> String {
    if n < 1_000_000 { count(n) } else { units::short(n as f64) }
}

/// `2 more gaps`, `1 more gap`, of the plural.
pub(crate) fn more(n: u64, plural: &str) -> String {
    let ending = if plural.ends_with("sses") || plural.ends_with("xes") { "es" } else { "s" };
    let noun = if n == 1 { plural.strip_suffix(ending).unwrap_or(plural) } else { plural };
    format!("{} more {noun}", count(n))
}

/// `part` of `whole`: `12.3 %`; 100 % and 0 % only when it is all or nothing. Of nothing there are no shares.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "-".into();
    }
    if part == 0 {
        return "0 %".into();
    }
    let p = 100.0 * part as f64 / whole as f64;
    match p {
        p if p < 0.05 => "<0.1 %".into(),
        p if p > 99.95 && part != whole => ">99.9 %".into(),
        p if part == whole || p >= 99.95 => "100 %".into(),
        p => format!("{p:.1} %"),
    }
}

/// [`percent`] of counts.
pub(crate) fn share(part: u64, whole: u64) -> String {
    percent(part.try_into().unwrap_or(i64::MAX), whole.try_into().unwrap_or(i64::MAX))
}

/// A change with its sign: `+12.3 %`, `-0.5 %`; what has grown elevenfold and more is easier read as `×12.3`.
pub(crate) fn change(by: f64) -> String {
    let percent = 100.0 * by;
    match percent.abs() {
        p if p < 0.05 => "0 %".into(),
        _ if by == f64::INFINITY => "from nothing".into(),
        p if p < 99.95 => format!("{percent:+.1} %"),
        p if p < 999.5 => format!("{percent:+.0} %"),
        _ => format!("×{}", units::short(1.0 + by)),
    }
}

/// How many in a second: `1.23 k/s`, `0.25/s`.
pub(crate) fn per_second(n: f64) -> String {
    match n {
        0.0 => "0/s".into(),
        n if n < 99.95 => format!("{}/s", three_digits(n)),
        n => format!("{}/s", units::short(n)),
    }
}

/// A p value with four digits behind the point: `0.0312`, `<0.0001`.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format!("{p:.4}") }
}

/// A whole number, rounded: what is exact enough for a file of data.
pub(crate) fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// A part of a whole from 0 to 1 for a file of data: `0.123457`.
pub(crate) fn fraction(part: f64) -> String {
    format!("{part:.6}")
}

/// A part of a whole from 0 to 1 on an axis: `50 %`.
pub(crate) fn axis_share(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// A part of a whole from 0 to 1 as a style sheet reads it: `12.3%` with one of `digits`.
pub(crate) fn style_share(part: f64, digits: usize) -> String {
    format!("{:.digits$}%", 100.0 * part)
}

/// A bar of `width` characters for the largest count, shorter by the logarithm for smaller ones; every
/// count above 0 is seen.
pub(crate) fn log_bar(n: u64, largest: u64, width: usize) -> String {
    if n == 0 {
        return String::new();
    }
    let scale = ((largest + 1) as f64).ln();
    let eighths = (((n + 1) as f64).ln() / scale * (width * 8) as f64).round().max(1.0) as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_columns_stay_narrow() {
        assert_eq!(short_count(999_999), "999,999");
        assert_eq!(short_count(1_234_567), "1.23 M");
    }

    #[test]
    fn one_more_is_not_several() {
        for (n, plural, expected) in [
            (1, "names", "1 more name"),
            (1, "call chains", "1 more call chain"),
            (1, "processes", "1 more process"),
            (1, "futexes", "1 more futex"),
            (1, "causes", "1 more cause"),
            (1_002, "places", "1,002 more places"),
        ] {
            assert_eq!(more(n, plural), expected);
        }
    }

    #[test]
    fn all_and_nothing_are_said_only_of_all_and_nothing() {
        for (part, whole, expected) in [
            (0, 5, "0 %"),
            (0, 0, "-"),
            (1, 3, "33.3 %"),
            (5, 5, "100 %"),
            (99_999, 100_000, ">99.9 %"),
            (1, 100_000, "<0.1 %"),
        ] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn changes_have_a_sign_and_rates_three_digits() {
        for (by, expected) in [
            (0.0, "0 %"),
            (-0.0004, "0 %"),
            (0.1234, "+12.3 %"),
            (-0.0051, "-0.5 %"),
            (-1.0, "-100 %"),
            (0.9996, "+100 %"),
            (2.5, "+250 %"),
            (9.994, "+999 %"),
            (11.3, "×12"),
            (5_000.0, "×5.00 k"),
            (f64::INFINITY, "from nothing"),
        ] {
            assert_eq!(change(by), expected, "{by}");
        }
        for (n, expected) in [
            (0.0, "0/s"),
            (0.25, "0.25/s"),
            (99.9, "99.9/s"),
            (100.2, "100/s"),
            (1234.0, "1.23 k/s"),
        ] {
            assert_eq!(per_second(n), expected, "{n}");
        }
    }

    #[test]
    fn a_probability_is_never_shown_as_zero() {
        for (p, expected) in
            [(1.0, "1.0000"), (0.0312, "0.0312"), (0.00009, "<0.0001"), (0.0, "<0.0001")]
        {
            assert_eq!(probability(p), expected, "{p}");
        }
    }

    #[test]
    fn parts_of_a_whole_are_written_as_their_readers_want_them() {
        assert_eq!(fraction(0.5), "0.500000");
        assert_eq!(axis_share(0.5), "50 %");
        assert_eq!([style_share(0.1234, 1), style_share(1.0, 0)], ["12.3%", "100%"]);
        assert_eq!(whole(2.5001), "3");
    }

    #[test]
    fn bars_show_everything_that_is_there() {
        assert_eq!(log_bar(0, 100, 10), "");
        assert!(!log_bar(1, u64::MAX - 1, 10).is_empty());
        assert_eq!(log_bar(100, 100, 10), "█".repeat(10));
    }
}
