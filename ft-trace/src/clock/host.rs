//! How far the time of day of a host can be off, by its kernel's own account.
//!
//! Whoever synchronises the clock gives the kernel the maximum error that it has then; the kernel adds 500 µs each second,
//! and calls the clock unsynchronised from 16 s on, with which it begins (`second_overflow` of `kernel/time/ntp.c`). So
//! that figure is a bound only while the clock is synchronised, and only of a daemon that knows one: `systemd-timesyncd`
//! (`manager_adjust_clock`) and `phc2sys` (`sysclk_set_sync`) give the kernel 0, to keep it below the 16 s.

use crate::ids::Nanos;
use crate::spool::frame::{ClockSample, HostClock};
use crate::tables::{HostClockRow, HostClockState};

/// What adjtimex(2) returns for a clock that is not synchronised.
const TIME_ERROR: i32 = 5;

/// Flags of `linux/timex.h`: not synchronised; `offset` is in ns.
const STA_UNSYNC: i32 = 0x0040;
const STA_NANO: i32 = 0x2000;

/// From here on a clock is not synchronised, µs (`NTP_PHASE_LIMIT` of `linux/timex.h`).
const PHASE_LIMIT_US: i64 = 16_000_000;

/// What the kernel adds to the maximum error each second, µs (`MAXFREQ` of `linux/timex.h`).
const DRIFT_US: i64 = 500;

/// The row of a sample that asked the kernel.
pub fn host_row(sample: &ClockSample) -> Option<HostClockRow> {
    let host = sample.host?;
    let state = state(&host);
    let correction = correction_ns(&host);
    let is_bounded = state == HostClockState::Synchronised;
    let ns = |us: i64| us.saturating_mul(1000);
    let bound_ns = ns(host.max_error_us).saturating_add(correction.saturating_abs());
    let is_told = state != HostClockState::Unknown;
    Some(HostClockRow {
        ts: Nanos(sample.mono_ns),
        state,
        bound_ns: is_bounded.then_some(bound_ns),
        estimate_ns: is_bounded.then(|| ns(host.estimated_error_us)),
        correction_ns: is_told.then_some(correction),
        frequency_ppm: is_told.then(|| host.frequency as f64 / 65_536.0),
        tai_s: Some(host.tai_s).filter(|&tai_s| is_told && tai_s != 0),
        status: is_told.then_some(host.status),
    })
}

fn state(host: &HostClock) -> HostClockState {
    let is_synchronised = host.result != TIME_ERROR
        && host.status & STA_UNSYNC == 0
        && (0..PHASE_LIMIT_US).contains(&host.max_error_us);
    // An error of 0 has grown by whole steps since. With one of another origin that is so once in 500 times, and then the
    // bound is not known either: what the kernel says of the estimate may be of another daemon, which ran before.
    let is_from_zero = host.max_error_us % DRIFT_US == 0;
    match host.result {
        ..0 => HostClockState::Unknown,
        _ if !is_synchronised => HostClockState::Unsynchronised,
        _ if is_from_zero => HostClockState::Unbounded,
        _ => HostClockState::Synchronised,
    }
}

fn correction_ns(host: &HostClock) -> i64 {
    if host.status & STA_NANO != 0 { host.offset } else { host.offset.saturating_mul(1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: HostClock) -> HostClockRow {
        host_row(&ClockSample { mono_ns: 7, host: Some(host), ..ClockSample::default() }).unwrap()
    }

    /// As chrony leaves it: 312 µs from its source at most.
    fn chrony() -> HostClock {
        HostClock {
            result: 0,
            status: 0x2001,
            tai_s: 37,
            offset: -4000,
            frequency: -(3 << 16),
            max_error_us: 312,
            estimated_error_us: 20,
        }
    }

    fn check(host: HostClock, state: HostClockState, bound_ns: Option<i64>) {
        let row = row(host);
        assert_eq!((row.state, row.bound_ns), (state, bound_ns), "{host:?}");
    }

    #[test]
    fn the_bound_is_the_kernels_with_what_is_still_to_be_corrected() {
        let row = row(chrony());
        assert_eq!((row.ts, row.state), (Nanos(7), HostClockState::Synchronised));
        assert_eq!((row.bound_ns, row.estimate_ns), (Some(316_000), Some(20_000)));
        assert_eq!((row.correction_ns, row.frequency_ppm), (Some(-4000), Some(-3.0)));
        assert_eq!((row.tai_s, row.status), (Some(37), Some(0x2001)));
        // Without STA_NANO the correction is in µs.
        check(
            HostClock { status: 1, offset: -4, ..chrony() },
            HostClockState::Synchronised,
            Some(316_000),
        );
        check(
            HostClock { max_error_us: 15_999_999, offset: 0, ..chrony() },
            HostClockState::Synchronised,
            Some(15_999_999_000),
        );
    }

    #[test]
    fn of_a_clock_that_is_not_synchronised_no_bound_is_known() {
        use HostClockState::Unsynchronised;
        // As a kernel begins.
        let (max_error_us, estimated_error_us) = (16_000_000, 16_000_000);
        let result = 5;
        let first =
            HostClock { result, status: 0x40, max_error_us, estimated_error_us, ..chrony() };
        check(first, Unsynchronised, None);
        assert_eq!(row(first).estimate_ns, None);
        check(HostClock { status: 0x40, ..chrony() }, Unsynchronised, None);
        check(HostClock { result, ..chrony() }, Unsynchronised, None);
        check(HostClock { max_error_us, ..chrony() }, Unsynchronised, None);
        check(HostClock { max_error_us: -1, ..chrony() }, Unsynchronised, None);
    }

    #[test]
    fn an_error_that_has_grown_from_nothing_bounds_nothing() {
        use HostClockState::{Synchronised, Unbounded};
        let told = |max_error_us, estimated_error_us| {
            let row = row(HostClock { max_error_us, estimated_error_us, ..chrony() });
            assert_eq!(row.bound_ns.is_some(), row.state == Synchronised);
            row.state
        };
        // systemd-timesyncd, at once and 64 s later; phc2sys, which leaves the estimate as it was.
        assert_eq!(told(0, 0), Unbounded);
        assert_eq!(told(32_000, 0), Unbounded);
        assert_eq!(told(500, 16_000_000), Unbounded);
        // phc2sys after chronyd, whose estimate is still there; or chronyd itself, at a multiple of 500 µs just now.
        assert_eq!(told(1500, 20), Unbounded);
        assert_eq!(told(1501, 20), Synchronised);
        assert_eq!(told(1501, 0), Synchronised);
    }

    #[test]
    fn a_call_that_was_refused_says_nothing() {
        let row = row(HostClock { result: -1, ..HostClock::default() });
        assert_eq!((row.state, row.bound_ns), (HostClockState::Unknown, None));
        assert_eq!((row.estimate_ns, row.correction_ns), (None, None));
        assert_eq!((row.frequency_ppm, row.tai_s, row.status), (None, None, None));
        assert_eq!(host_row(&ClockSample::default()), None);
    }

    #[test]
    fn a_spool_can_say_anything() {
        for n in [i64::MIN, i64::MAX] {
            for status in [0, STA_NANO] {
                let (frequency, max_error_us, estimated_error_us) = (n, n, n);
                let host = HostClock {
                    status,
                    offset: n,
                    frequency,
                    max_error_us,
                    estimated_error_us,
                    ..chrony()
                };
                assert_eq!(row(host).bound_ns, None);
                let bound = row(HostClock { status, offset: n, ..chrony() }).bound_ns;
                assert_eq!(bound, Some(i64::MAX));
            }
        }
    }
}
