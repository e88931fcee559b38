//! `--start-at`: when a recording is to begin, so that windows of several hosts coincide.

use std::time::Duration;

use ft_report::units;
use ft_trace::calendar;
use rustix::time::ClockId;

use crate::clock::now_ns;

/// How far away the next full multiple is at least: what is done before a recording takes less.
///
/// Limit: as `MAX_AHEAD`.
const MIN_AHEAD: Duration = Duration::from_secs(5);

/// How far a recording can be put off.
///
/// Limit: a time further away is refused; a nearer multiple is left out.
/// Shown by: `what_is_past_or_no_time_is_refused`, `a_time_is_a_date_or_counted_from_now_or_a_full_multiple`.
const MAX_AHEAD: Duration = Duration::from_secs(7 * 86_400);

/// When a recording is to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartAt {
    /// As it was asked for.
    pub asked: String,
    /// CLOCK_REALTIME, ns.
    pub at_ns: i64,
}

impl StartAt {
    /// Reads `2026-11-21T10:45:00Z` (RFC 3339), `+10s` (from now on) or `next=1m` (the next full multiple of a time since
    /// 1970 that is at least 5 s away).
    ///
    /// # Errors
    ///
    /// A sentence that tells the accepted form: for what is none, for times that are past or more than a week away.
    pub fn parse(text: &str) -> Result<StartAt, String> {
        let at_ns = at_ns(text, now_ns(ClockId::Realtime))?;
        Ok(StartAt { asked: text.to_owned(), at_ns })
    }

    /// How long it is until then; zero when it is past.
    pub(super) fn left(&self) -> Duration {
        let left = self.at_ns.saturating_sub(now_ns(ClockId::Realtime));
        Duration::from_nanos(u64::try_from(left).unwrap_or(0))
    }
}

fn at_ns(text: &str, now_ns: i64) -> Result<i64, String> {
    let ns = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    let at_ns = if let Some(after) = text.strip_prefix('+') {
        now_ns.saturating_add(ns(units::duration(after)?))
    } else if let Some(multiple) = text.strip_prefix("next=") {
        let multiple = ns(units::duration(multiple)?);
        let earliest = now_ns.saturating_add(ns(MIN_AHEAD));
        earliest.saturating_add((multiple - earliest.rem_euclid(multiple)) % multiple)
    } else if text.starts_with(|c: char| c.is_ascii_digit()) {
        calendar::utc_ns(text)?
    } else {
        return Err(format!(
            "'{text}' is no time to begin at; write for example 2026-11-21T10:45:00Z, +10s or next=1m"
        ));
    };
    if at_ns <= now_ns {
        return Err(format!(
            "'{text}' is past by the clock of this host; name a time to come, or check the clock with `date -u`"
        ));
    }
    if at_ns - now_ns > ns(MAX_AHEAD) {
        return Err(format!("'{text}' is more than a week away; start the recording later"));
    }
    Ok(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T10:45:00.25Z.
    const NOW: i64 = 1_795_257_900_250_000_000;
    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_time_is_a_date_or_counted_from_now_or_a_full_multiple() {
        let full = NOW - SECOND / 4;
        for (text, expected) in [
            ("2026-11-21T10:45:01Z", full + SECOND),
            ("2026-11-21T11:45:00.5+01:00", full + SECOND / 2),
            ("+10s", NOW + 10 * SECOND),
            ("+10", NOW + 10 * SECOND),
            ("+500ms", NOW + SECOND / 2),
            ("next=1m", full + 60 * SECOND),
            ("next=10s", full + 10 * SECOND),
            ("next=1h", full + 900 * SECOND),
            // What is nearer than 5 s is left out.
            ("next=1s", full + 6 * SECOND),
            ("next=5s", full + 10 * SECOND),
        ] {
            assert_eq!(at_ns(text, NOW), Ok(expected), "{text}");
        }
        assert_eq!(
            at_ns("next=5s", full),
            Ok(full + 5 * SECOND),
            "one that is 5 s away is far enough"
        );
    }

    #[test]
    fn what_is_past_or_no_time_is_refused() {
        for (text, expected) in [
            ("2026-11-21T10:45:00Z", "name a time to come, or check the clock with `date -u`"),
            ("2026-11-21T10:45:00.25Z", "name a time to come, or check the clock with `date -u`"),
            ("2026-11-21T12:45:00", "end it in Z for UTC, or in an offset such as +01:00"),
            ("2027-11-21T10:45:00Z", "is more than a week away; start the recording later"),
            ("+200h", "is more than a week away; start the recording later"),
            ("+", "write for example 500ms, 10s, 2m or 1h"),
            ("+-5s", "write for example 500ms, 10s, 2m or 1h"),
            ("next=", "write for example 500ms, 10s, 2m or 1h"),
            ("next=0s", "write a duration between 1us and a year"),
            ("next=9000h", "write a duration between 1us and a year"),
            ("", "write for example 2026-11-21T10:45:00Z, +10s or next=1m"),
            ("noon", "write for example 2026-11-21T10:45:00Z, +10s or next=1m"),
            ("10:45", "write for example 2026-11-21T10:45:00Z, or +01:00 for Z"),
        ] {
            let error = at_ns(text, NOW).unwrap_err();
            assert!(error.ends_with(expected), "{text}: {error}");
        }
    }
}
