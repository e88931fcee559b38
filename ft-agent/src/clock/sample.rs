//! Samples of the clocks.
//!
//! A sample is a reading of CLOCK_MONOTONIC between two readings of the TSC. The true TSC of the
//! clock reading lies somewhere in that bracket, so its middle is wrong by at most half of it; of
//! several attempts the narrowest is kept, since a wide one was interrupted.

use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

use rustix::time::{ClockId, Timespec, clock_gettime};

use ft_trace::spool::frame::ClockSample;

/// Brackets from which the narrowest is taken.
const ATTEMPTS: usize = 7;

/// Back-to-back readings from which the step of the TSC is taken.
const STEP_READINGS: usize = 64;

/// Reads the TSC after all earlier instructions are done (`lfence; rdtsc`: Intel SDM, volume 2B, RDTSC).
pub fn read_tsc() -> u64 {
    // SAFETY: `lfence` and `rdtsc` exist on every x86-64 CPU, and Linux leaves CR4.TSD clear.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Takes one sample; about 1.5 µs.
///
/// The CPU is the one on which the sample ended. A sample during which the thread moved to another
/// CPU is still valid as long as the TSCs agree, which is what the model checks.
pub fn sample() -> ClockSample {
    let (tsc, bracket_tsc, mono_ns) = (0..ATTEMPTS)
        .map(|_| bracket())
        .min_by_key(|&(_, bracket_tsc, _)| bracket_tsc)
        .expect("at least one attempt");
    // Neither offset moves by a nanosecond except when someone sets the clock or suspends the
    // machine, so the time between these readings is taken out with a second reading of MONOTONIC.
    let before = now_ns(ClockId::Monotonic);
    let (realtime, boottime) = (now_ns(ClockId::Realtime), now_ns(ClockId::Boottime));
    let after = now_ns(ClockId::Monotonic);
    let middle = before + (after - before) / 2;
    let mut aux = 0;
    // SAFETY: every x86-64 CPU with an invariant TSC has `rdtscp`; it only writes `aux`.
    unsafe { __rdtscp(&mut aux) };
    ClockSample {
        tsc,
        mono_ns,
        bracket_tsc,
        realtime_offset_ns: realtime - middle,
        boottime_offset_ns: boottime - middle,
        // Linux keeps the CPU number in the low 12 bits of IA32_TSC_AUX (arch/x86/include/asm/segment.h).
        cpu: aux & 0xfff,
        step_tsc: step(),
        host: None,
    }
}

fn bracket() -> (u64, u64, i64) {
    let before = read_tsc();
    let mono_ns = now_ns(ClockId::Monotonic);
    let width = read_tsc().saturating_sub(before);
    (before + width / 2, width, mono_ns)
}

/// Smallest distance of two different readings in a row: the step of the TSC, or the time of a
/// reading where the step is finer than that.
fn step() -> u32 {
    let mut last = read_tsc();
    let mut smallest = u64::MAX;
    for _ in 0..STEP_READINGS {
        let now = read_tsc();
        match now.saturating_sub(last) {
            0 => {}
            distance => smallest = smallest.min(distance),
        }
        last = now;
    }
    u32::try_from(smallest).unwrap_or(0)
}

/// CLOCK_MONOTONIC, ns.
pub fn monotonic_ns() -> i64 {
    now_ns(ClockId::Monotonic)
}

/// A clock of the kernel, ns.
pub fn now_ns(clock: ClockId) -> i64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec * 1_000_000_000 + tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_advance_and_the_bracket_is_narrow() {
        let (a, b) = (sample(), sample());
        assert!(b.mono_ns > a.mono_ns);
        assert!(b.tsc > a.tsc);
        assert!(a.bracket_tsc > 0);
        assert!(a.step_tsc > 0);
        assert!(a.boottime_offset_ns >= -1_000_000);
    }
}
