//! Ends of waits, as programs give them.

use libc::{clockid_t, timespec};

/// Whether the C library takes this for a time on this clock, whatever else it looks at. What is none it refuses at once or only where it
/// has to wait, depending on the function; so such a call is left to it, and an attempt does not come first.
///
/// # Safety
///
/// `until` is null, or points to a time.
pub(crate) unsafe fn is_time(clock: clockid_t, until: *const timespec) -> bool {
    // SAFETY: says the caller.
    let Some(until) = (unsafe { until.as_ref() }) else { return false };
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
        && until.tv_sec >= 0
        && (0..1_000_000_000).contains(&until.tv_nsec)
}
