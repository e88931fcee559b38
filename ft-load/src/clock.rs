//! The time stamp counter beside `CLOCK_MONOTONIC`.
//!
//! While a load runs it reads the counter, which costs least. A [`Clock`] is made of a reading of both before and one
//! after, and puts every counter value between them on `CLOCK_MONOTONIC`: by one straight line, in whole numbers, so
//! that neighbouring intervals tile, and order is kept. Over a run of seconds the two readings, each some 30 ns wide,
//! leave a few parts in a thousand million; what the line is off in between is measured ([`Clock::distance`]).

use std::arch::x86_64::_rdtsc;

/// Counter and clock at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The counter, in cycles.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub ns: u64,
}

impl Reading {
    /// Reads both: of eight tries the one in which the counter moved least around the clock.
    pub fn now() -> Self {
        let narrowest = (0..8).map(|_| {
            let before = tsc();
            let ns = monotonic_ns();
            let width = tsc().saturating_sub(before);
            (width, Reading { tsc: before + width / 2, ns })
        });
        narrowest.min_by_key(|(width, _)| *width).expect("eight tries").1
    }
}

/// The line through two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    from: Reading,
    cycles: i128,
    ns: i128,
}

impl Clock {
    /// The line through `from` and `to`, of which the second was read later.
    pub fn between(from: Reading, to: Reading) -> Self {
        let cycles = i128::from(to.tsc.saturating_sub(from.tsc).max(1));
        Clock { from, cycles, ns: i128::from(to.ns.saturating_sub(from.ns).max(1)) }
    }

    /// `CLOCK_MONOTONIC` at a value of the counter, in nanoseconds, rounded down.
    pub fn ns(&self, tsc: u64) -> i64 {
        let cycles = i128::from(tsc) - i128::from(self.from.tsc);
        (i128::from(self.from.ns) + (cycles * self.ns).div_euclid(self.cycles)) as i64
    }

    /// The counter at a time of `CLOCK_MONOTONIC`.
    pub fn tsc(&self, ns: u64) -> u64 {
        let ns = i128::from(ns) - i128::from(self.from.ns);
        (i128::from(self.from.tsc) + (ns * self.cycles).div_euclid(self.ns)).max(0) as u64
    }

    /// How many cycles that many nanoseconds have, rounded up.
    pub fn cycles(&self, ns: u64) -> u64 {
        ((i128::from(ns) * self.cycles + self.ns - 1) / self.ns) as u64
    }

    /// Cycles per second.
    pub fn hz(&self) -> f64 {
        self.cycles as f64 * 1e9 / self.ns as f64
    }

    /// How far the line is from a reading that it was not made of, in nanoseconds.
    pub fn distance(&self, reading: Reading) -> u64 {
        self.ns(reading.tsc).abs_diff(reading.ns as i64)
    }
}

/// The counter.
pub(crate) fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it, and Linux lets programs read it.
    unsafe { _rdtsc() }
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The CPU time of all threads of this process so far, in nanoseconds.
pub(crate) fn process_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_goes_through_its_readings_and_keeps_order() {
        let from = Reading { tsc: 1_000_000_007, ns: 50_000_000_000 };
        let to = Reading { tsc: 3_600_000_011, ns: 51_000_000_003 };
        let clock = Clock::between(from, to);
        assert_eq!(clock.ns(from.tsc), from.ns as i64);
        assert_eq!(clock.ns(to.tsc), to.ns as i64);
        assert!(clock.ns(from.tsc - 5) <= clock.ns(from.tsc));
        for tsc in from.tsc..from.tsc + 1000 {
            assert!(clock.ns(tsc) <= clock.ns(tsc + 1));
        }
        assert_eq!(clock.distance(Reading { tsc: to.tsc, ns: to.ns + 7 }), 7);
        // There and back is at most a cycle's worth off.
        assert!(clock.ns(clock.tsc(50_123_456_789)).abs_diff(50_123_456_789) <= 1);
        assert!((clock.hz() / 2.6e9 - 1.0).abs() < 1e-6);
        assert_eq!(clock.cycles(0), 0);
        assert_eq!(clock.cycles(1), 3);
    }
}
