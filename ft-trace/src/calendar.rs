//! Dates of the Gregorian calendar, in UTC: one that is printed, and one that is read.
//!
//! By hand: these are 120 lines, correct for every time that 64 bits hold. A library for dates is larger than its use, and what it
//! has beyond, named time zones, must not be part of a time that is given to several hosts.

use std::fmt::{self, Write};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Days of four centuries.
const ERA: i64 = 400 * 365 + 97;

/// From 0000-03-01 to 1970-01-01, days.
const EPOCH: i64 = 719_468;

/// Year, month and day of a day since 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last of its year, and the months from then
/// on have 31, 30, 31, 30, 31 days, which is 153 for five.
pub fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
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

/// The day since 1970-01-01 of a date, which [`date`] gives back if there is such a date.
fn day(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA + 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - EPOCH
}

/// Appends `2026-11-21 10:45:00.123456789`, from nanoseconds since 1970.
///
/// # Errors
///
/// None: the text grows.
pub fn write_utc(ns: i64, out: &mut String) -> fmt::Result {
    let (seconds, fraction) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:09}")
}

/// Reads a time of RFC 3339, `2026-11-21T10:45:00Z` or `2026-11-21 11:45:00.5+01:00`: nanoseconds since 1970.
///
/// # Errors
///
/// A sentence that states the accepted form: for times without a zone, dates that there are not, leap seconds, and years
/// before 1970 and after 2261.
pub fn utc_ns(text: &str) -> Result<i64, String> {
    let wrong = || {
        format!("'{text}' is not a time; write for example 2026-11-21T10:45:00Z, or +01:00 for Z")
    };
    let mut rest = text;
    let year = number(&mut rest, 4, "-").ok_or_else(wrong)?;
    let month = number(&mut rest, 2, "-").ok_or_else(wrong)?;
    let of_month = number(&mut rest, 2, "Tt ").ok_or_else(wrong)?;
    let hour = number(&mut rest, 2, ":").ok_or_else(wrong)?;
    let minute = number(&mut rest, 2, ":").ok_or_else(wrong)?;
    let second = number(&mut rest, 2, "").ok_or_else(wrong)?;
    let fraction = fraction_ns(&mut rest).ok_or_else(wrong)?;
    if rest.is_empty() {
        return Err(format!(
            "'{text}' is another time in each zone: end it in Z for UTC, or in an offset such as +01:00"
        ));
    }
    let east = offset_seconds(rest).ok_or_else(wrong)?;
    let days = day(year, month, of_month);
    let is_there = date(days) == (year, month, of_month) && (1970..2262).contains(&year);
    if !is_there || hour > 23 || minute > 59 || second > 59 {
        return Err(format!("'{text}' is no time of the years 1970 to 2261; check its figures"));
    }
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - east;
    Ok(seconds * 1_000_000_000 + fraction)
}

/// Takes a number of so many digits, and one of these characters behind it if there are any.
fn number(rest: &mut &str, digits: usize, then: &str) -> Option<i64> {
    let (number, behind) = rest.split_at_checked(digits)?;
    if !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    *rest = if then.is_empty() { behind } else { behind.strip_prefix(|c| then.contains(c))? };
    number.parse().ok()
}

/// Takes `.5`, if it is there; digits beyond the ninth are cut off.
fn fraction_ns(rest: &mut &str) -> Option<i64> {
    let Some(digits) = rest.strip_prefix('.') else { return Some(0) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (fraction, behind) = digits.split_at(end);
    *rest = behind;
    let nine = format!("{fraction:0<9}");
    (end > 0).then(|| nine[..9].parse().ok())?
}

/// `Z`, or how far east of Greenwich, s.
fn offset_seconds(zone: &str) -> Option<i64> {
    if let "Z" | "z" = zone {
        return Some(0);
    }
    let sign = match zone.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = &zone[1..];
    let (hours, minutes) = (number(&mut rest, 2, ":")?, number(&mut rest, 2, "")?);
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for days in -800_000..800_000 {
            let (year, month, of_month) = date(days);
            assert_eq!(day(year, month, of_month), days, "{year}-{month}-{of_month}");
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for ns in [0, 1_700_000_000_123_456_789, 951_782_400_000_000_000, 4_107_542_399_999_999_999]
        {
            let mut text = String::new();
            write_utc(ns, &mut text).unwrap();
            assert_eq!(utc_ns(&format!("{text}Z")), Ok(ns), "{text}");
        }
    }

    #[test]
    fn times_have_a_zone() {
        const AT: i64 = 1_795_257_900_000_000_000;
        for text in [
            "2026-11-21T10:45:00Z",
            "2026-11-21 10:45:00z",
            "2026-11-21T10:45:00.000Z",
            "2026-11-21t11:45:00+01:00",
            "2026-11-21T05:15:00-05:30",
            "2026-11-22T00:30:00+13:45",
        ] {
            assert_eq!(utc_ns(text), Ok(AT), "{text}");
        }
        assert_eq!(utc_ns("2026-11-21T10:45:00.5Z"), Ok(AT + 500_000_000));
        assert_eq!(utc_ns("2026-11-21T10:45:00.0000000019Z"), Ok(AT + 1));
        let local = utc_ns("2026-11-21T10:45:00").unwrap_err();
        assert!(local.ends_with("end it in Z for UTC, or in an offset such as +01:00"), "{local}");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in [
            "",
            "now",
            "10:45",
            "2026-11-21",
            "2026-11-21T10:45Z",
            "26-11-21T10:45:00Z",
            "2026-1-2T10:45:00Z",
            "2026-02-29T10:45:00Z",
            "2026-13-01T10:45:00Z",
            "2026-00-01T10:45:00Z",
            "2026-11-00T10:45:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T10:60:00Z",
            "2026-12-31T23:59:60Z",
            "1969-12-31T23:59:59Z",
            "2262-01-01T00:00:00Z",
            "2026-11-21T10:45:00.Z",
            "2026-11-21T10:45:00+1",
            "2026-11-21T10:45:00+01:00Z",
            "2026-11-21T10:45:00+24:00",
            "2026-11-21T10:45:00ü",
            "2026-11-21T10:45:0üZ",
            "+026-11-21T10:45:00Z",
        ] {
            let error = utc_ns(wrong).unwrap_err();
            assert!(error.starts_with(&format!("'{wrong}' is ")), "{error}");
        }
    }
}
