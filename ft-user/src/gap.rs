//! Gaps: a thread that polls in a loop finds out for itself when it did not run.
//!
//! The method of Hourglass (section 4): read the time stamp counter again and again; two readings that
//! are farther apart than a pass of the loop takes enclose a time in which the thread did not run its
//! code. The thread knows when, not why; the agent joins each gap with what the kernel did meanwhile.
//!
//! ```
//! use std::time::Duration;
//! use ft_user::gap::Poller;
//!
//! let mut poller = Poller::new(Duration::from_micros(5));
//! for _ in 0..1000 {
//!     if let Some(gap) = poller.poll() {
//!         println!("not running for {} cycles", gap.after.0 - gap.before.0);
//!     }
//! }
//! ```
//!
//! Events: `gap.begin` (threshold, poller), `gap.seen` (before, after), `gap.end` (polls, poller). The
//! gaps of a poller are between its begin and its end on the same thread.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::arch::rdtsc;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
use crate::portable::rdtsc;
use crate::{__event, Tsc};

/// A time in which the polling thread did not run: it read the counter before and after, and not in
/// between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last reading before.
    pub before: Tsc,
    /// The first reading after.
    pub after: Tsc,
}

/// Looks for gaps; call [`poll`](Poller::poll) in a loop.
///
/// It stays on the thread that made it: its gaps are that thread's.
#[derive(Debug)]
pub struct Poller {
    threshold_tsc: u64,
    last: u64,
    polls: u64,
    number: u32,
    not_send: PhantomData<*const ()>,
}

impl Poller {
    /// Looks for gaps that are longer than `threshold`. The first call in a process measures the
    /// frequency of the counter ([`tsc_hz`]).
    ///
    /// A pass of an empty loop takes some 10 to 20 ns; a useful threshold is well above the longest
    /// pass of the loop at hand.
    pub fn new(threshold: Duration) -> Self {
        let cycles = threshold.as_nanos() * u128::from(tsc_hz()) / 1_000_000_000;
        Poller::with_threshold_tsc(u64::try_from(cycles).unwrap_or(u64::MAX))
    }

    /// Looks for gaps that are longer than this many cycles.
    pub fn with_threshold_tsc(threshold_tsc: u64) -> Self {
        static POLLERS: AtomicU32 = AtomicU32::new(0);
        let number = POLLERS.fetch_add(1, Relaxed);
        __event!(kind = PollBegin, "gap.begin", threshold: u64 = threshold_tsc, poller: u32 = number);
        Poller { threshold_tsc, last: rdtsc(), polls: 0, number, not_send: PhantomData }
    }

    /// Reads the counter, and records the gap since the last reading if it is longer than the threshold.
    #[inline]
    pub fn poll(&mut self) -> Option<Gap> {
        let (before, after) = (self.last, rdtsc());
        self.last = after;
        self.polls += 1;
        // A counter that goes backwards, on another processor perhaps, makes no gap.
        if after.saturating_sub(before) <= self.threshold_tsc {
            return None;
        }
        let gap = Gap { before: Tsc(before), after: Tsc(after) };
        __event!(kind = PollGap, "gap.seen", before: Tsc = gap.before, after: Tsc = gap.after);
        Some(gap)
    }

    /// The last reading of the counter: where the present run ends, so far.
    #[inline]
    pub fn last(&self) -> Tsc {
        Tsc(self.last)
    }

    /// How often it was polled.
    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// The threshold in cycles.
    pub fn threshold_tsc(&self) -> u64 {
        self.threshold_tsc
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        __event!(kind = PollEnd, "gap.end", polls: u64 = self.polls, poller: u32 = self.number);
    }
}

/// Frequency of the time stamp counter in Hz, measured once per process against `CLOCK_MONOTONIC`.
///
/// The measurement busy-waits for 2 ms. At either end it takes the narrowest of eight readings (TSC,
/// clock, TSC), some 30 ns wide on a machine at rest, so that the error is about 20 ppm: enough for a
/// threshold. Times in a trace come from the agent's clock model, not from this.
pub fn tsc_hz() -> u64 {
    static HZ: AtomicU64 = AtomicU64::new(0);
    let known = HZ.load(Relaxed);
    if known != 0 {
        return known;
    }
    let (tsc, ns) = reading();
    let end = loop {
        let now = reading();
        if now.1 - ns >= 2_000_000 {
            break now;
        }
    };
    let hz = u128::from(end.0.saturating_sub(tsc)) * 1_000_000_000 / u128::from(end.1 - ns);
    // Two threads that measure at once agree well enough. Never 0, which means "not measured".
    let hz = (hz as u64).max(1);
    HZ.store(hz, Relaxed);
    hz
}

/// Counter and clock (ns) at one instant.
fn reading() -> (u64, u64) {
    let narrowest = (0..8).map(|_| {
        let before = rdtsc();
        let ns = monotonic_ns();
        let width = rdtsc().saturating_sub(before);
        (width, before + width / 2, ns)
    });
    let (_, tsc, ns) = narrowest.min().unwrap_or_default();
    (tsc, ns)
}

pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequency_is_plausible_and_stable() {
        let hz = tsc_hz();
        assert!((100_000_000..10_000_000_000).contains(&hz), "{hz}");
        assert_eq!(tsc_hz(), hz);
    }

    #[test]
    fn gap_is_two_readings_apart() {
        let mut poller = Poller::with_threshold_tsc(0);
        let first = std::iter::repeat_with(|| poller.poll()).flatten().next().unwrap();
        let second = std::iter::repeat_with(|| poller.poll()).flatten().next().unwrap();
        assert!(first.before < first.after);
        assert!(first.after <= second.before);
        assert_eq!(poller.last(), second.after);
        assert!(poller.polls() >= 2);
    }

    #[test]
    fn nothing_is_longer_than_forever() {
        let mut poller = Poller::new(Duration::MAX);
        assert_eq!(poller.threshold_tsc(), u64::MAX);
        assert!((0..1000).all(|_| poller.poll().is_none()));
    }
}
