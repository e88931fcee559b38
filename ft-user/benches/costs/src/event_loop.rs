//! The loop of npt (the non-preempt test of the Feather-Trace and LTTng papers): SCHED_FIFO, one event a
//! pass, the time of each pass in a histogram.

use std::time::Duration;

use crate::cycles::rdtsc;
use crate::{cpu, cycles, tell};

/// Longer passes are counted in the last place.
const CYCLES: usize = 1 << 16;

/// One run, ns: what real-time threads may use of a second is bounded (950 ms by default).
const RUN_NS: f64 = 7e8;

/// A pass that takes longer was interrupted.
const STALL_NS: f64 = 5e3;

/// Tells `mean` and `p999` of a pass, ns; `stalls`, passes above 5 µs, per second; `passes`.
pub fn measure(event: fn(u64, u64)) {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    tell("fifo", f64::from(cpu::real_time()));
    let mut histogram = vec![0u64; CYCLES];
    // More events than a buffer of 32 MiB holds, so that each of its pages is there.
    let warm_up = 2_000_000;
    let start = rdtsc();
    passes(event, warm_up, &mut histogram);
    let pass_ns = (rdtsc() - start) as f64 / per_ns / warm_up as f64;
    // Whoever takes the events catches up.
    std::thread::sleep(Duration::from_millis(300));
    histogram.fill(0);
    let count = (RUN_NS / pass_ns) as u64;
    let start = rdtsc();
    passes(event, count, &mut histogram);
    let ns = (rdtsc() - start) as f64 / per_ns;
    let at = count - count / 1000;
    let mut below = 0;
    let p999 = histogram.iter().position(|&passes| {
        below += passes;
        below >= at
    });
    let stalls: u64 = histogram[(STALL_NS * per_ns) as usize..].iter().sum();
    tell("mean", ns / count as f64);
    tell("p999", p999.expect("all passes are counted") as f64 / per_ns);
    tell("stalls", stalls as f64 / ns * 1e9);
    tell("passes", count as f64);
}

#[inline(never)]
fn passes(event: fn(u64, u64), count: u64, histogram: &mut [u64]) {
    let mut before = rdtsc();
    for n in 0..count {
        event(before, n);
        let now = rdtsc();
        histogram[((now - before) as usize).min(CYCLES - 1)] += 1;
        before = now;
    }
}
