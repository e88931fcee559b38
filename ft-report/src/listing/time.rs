//! Times as a listing shows them.

use std::fmt::Write;

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

/// `2026-11-21 10:45:00.123456789`, from nanoseconds since the epoch.
fn write_utc(ns: i64, out: &mut String) -> std::fmt::Result {
    let (seconds, fraction) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:09}")
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year, and the months from then
/// on have 31, 30, 31, 30, 31 days, which is 153 for five.
fn date(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 400 * 365 + 97;
    // Days since 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    (era * 400 + year, month, day)
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

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_778, (2026, 11, 21)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }
}
