//! Times as a listing shows them.

use std::fmt::Write;

use ft_trace::calendar::write_utc;
use ft_trace::store::Meta;

/// From which zero times are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeStyle {
    /// Seconds since the start of the recording.
    #[default]
    Relative,
    /// CLOCK_MONOTONIC in seconds.
    Absolute,
    /// Date and time in UTC, by the offset that CLOCK_REALTIME had at the start.
    Utc,
}

/// Writes times in one style.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    style: TimeStyle,
    /// Added to CLOCK_MONOTONIC.
    offset_ns: i64,
}

impl Times {
    /// Times of this trace.
    pub(crate) fn new(style: TimeStyle, meta: &Meta) -> Times {
        let offset_ns = match style {
            TimeStyle::Relative => meta.start.start_ns.saturating_neg(),
            TimeStyle::Absolute => 0,
            TimeStyle::Utc => meta.clock.realtime_offset_ns,
        };
        Times { style, offset_ns }
    }

    /// Title of a column of times.
    pub(crate) fn title(self) -> &'static str {
        match self.style {
            TimeStyle::Relative => "time s",
            TimeStyle::Absolute => "monotonic s",
            TimeStyle::Utc => "time UTC",
        }
    }

    /// Appends a time (CLOCK_MONOTONIC, ns).
    pub(crate) fn write(self, ts: i64, out: &mut String) {
        // A trace can hold any number here.
        let ns = ts.saturating_add(self.offset_ns);
        // Writing into a `String` does not fail.
        let _ = match self.style {
            TimeStyle::Utc => write_utc(ns, out),
            _ => {
                let sign = if ns < 0 { "-" } else { "" };
                let ns = ns.unsigned_abs();
                write!(out, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(style: TimeStyle, ts: i64) -> String {
        let mut meta = Meta::default();
        meta.start.start_ns = 2_000_000_000;
        meta.clock.realtime_offset_ns = 1_700_000_000_000_000_000;
        let mut text = String::new();
        Times::new(style, &meta).write(ts, &mut text);
        text
    }

    #[test]
    fn every_style_has_its_zero() {
        use TimeStyle::*;
        for (style, ts, expected) in [
            (Relative, 3_000_000_042, "1.000000042"),
            (Relative, 1_999_999_999, "-0.000000001"),
            (Absolute, 3_000_000_042, "3.000000042"),
            (Utc, 3_000_000_042, "2023-11-14 22:13:23.000000042"),
            (Absolute, i64::MAX, "9223372036.854775807"),
            (Relative, i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(show(style, ts), expected);
        }
    }
}
