//! Events at a given rate: bursts of 64, at times that were fixed at the start.

use std::sync::Barrier;

use crate::cycles::rdtsc;
use crate::{cpu, cycles, tell};

const BURST: u64 = 64;

/// Threads of this program make `rate` million events a second each, for `seconds`. The first runs on the
/// measured CPU, the second on the one that the tracer reads on. The first argument of each event is one
/// of 16 addresses, the second counts. Tells `produced`, `rate`, millions a
/// second of all threads, and `cpu`, the CPU time of the program in seconds.
pub fn run(event: fn(u64, u64), threads: usize, rate: f64, seconds: f64) {
    let per_ns = cycles::per_ns();
    let started = Barrier::new(threads);
    let produced: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let started = &started;
                scope.spawn(move || {
                    cpu::pin(if thread == 0 { cpu::measured() } else { 0 });
                    event(0, 0);
                    started.wait();
                    paced(event, rate, seconds, per_ns)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    tell("produced", produced as f64);
    tell("rate", produced as f64 / seconds / 1e6);
    tell("cpu", cpu::of_this_process());
}

fn paced(event: fn(u64, u64), rate: f64, seconds: f64, per_ns: f64) -> u64 {
    let burst_cycles = BURST as f64 / rate * 1e3 * per_ns;
    let start = rdtsc();
    let end = start + (seconds * 1e9 * per_ns) as u64;
    let mut due = start as f64;
    let mut random = start | 1;
    let mut count = 1;
    while rdtsc() < end {
        for _ in 0..BURST {
            crate::step!(random);
            event(0x7f12_3456_7000 + (random >> 60) * 64, count);
            count += 1;
        }
        due += burst_cycles;
        while (rdtsc() as f64) < due {
            std::hint::spin_loop();
        }
    }
    count
}
