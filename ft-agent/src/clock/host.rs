//! What the kernel says of its time of day, and which of its clocks PTP can synchronise.

use std::fs;

use ft_trace::spool::frame::{ClockSample, HostClock};

/// PTP clocks that are noted.
///
/// Limit: cannot be reached on any existing host; beyond it, some are not named. Their time is not read.
/// Shown by: no figure: their time is not read.
const MAX_PTP_CLOCKS: usize = 64;

/// Takes one sample, and asks the kernel for its time of day; about a microsecond more than [`sample`](super::sample()).
pub fn sample_with_host() -> ClockSample {
    ClockSample { host: Some(host()), ..super::sample() }
}

/// Asks the kernel by adjtimex(2), which needs no rights as long as nothing is set.
fn host() -> HostClock {
    // SAFETY: `timex` is plain data, valid when zeroed; the call sets nothing, since no mode is named.
    let (result, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut timex), timex)
    };
    if result < 0 {
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        return HostClock { result: -error, ..HostClock::default() };
    }
    HostClock {
        result,
        status: timex.status,
        tai_s: timex.tai,
        offset: timex.offset,
        frequency: timex.freq,
        max_error_us: timex.maxerror,
        estimated_error_us: timex.esterror,
    }
}

/// The clocks of `/sys/class/ptp`, by number: `ptp0 KVM virtual PTP`.
pub fn ptp_clocks() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/class/ptp") else { return Vec::new() };
    let numbered = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number: u32 = name.strip_prefix("ptp")?.parse().ok()?;
        let called = fs::read_to_string(entry.path().join("clock_name")).unwrap_or_default();
        Some((number, format!("{name} {}", called.trim()).trim_end().to_owned()))
    });
    let mut clocks: Vec<_> = numbered.take(MAX_PTP_CLOCKS).collect();
    clocks.sort_unstable();
    clocks.into_iter().map(|(_, clock)| clock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_and_nothing_is_set() {
        let (a, b) = (host(), host());
        assert!((0..=5).contains(&a.result) || a.result == -libc::EPERM, "{a:?}");
        // A daemon may set it at any time, but hardly to something else in every microsecond.
        assert_eq!((a.result, a.status, a.tai_s), (b.result, b.status, b.tai_s));
        assert!(sample_with_host().host.is_some() && super::super::sample().host.is_none());
    }
}
