//! The time stamp counter.

use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A loop around a subject: so many passes, from this seed.
pub type Loop = fn(u64, u64) -> u64;

/// Reads the counter, without order.
#[inline(always)]
pub fn rdtsc() -> u64 {
    // SAFETY: every x86-64 has the instruction.
    unsafe { _rdtsc() }
}

/// Reads the counter before work, which cannot move in front of it.
#[inline(always)]
pub fn begin() -> u64 {
    // SAFETY: every x86-64 that runs Linux has the instructions.
    unsafe {
        _mm_lfence();
        let tsc = _rdtsc();
        _mm_lfence();
        tsc
    }
}

/// Reads the counter behind work, all of which is done.
#[inline(always)]
pub fn end() -> u64 {
    // SAFETY: as in `begin`.
    unsafe {
        let tsc = __rdtscp(&mut 0);
        _mm_lfence();
        tsc
    }
}

/// Cycles of the counter in a nanosecond.
pub fn per_ns() -> f64 {
    let (time, tsc) = (Instant::now(), begin());
    while time.elapsed() < Duration::from_millis(100) {}
    (end() - tsc) as f64 / time.elapsed().as_nanos() as f64
}

/// How often to measure a loop.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Passes of one batch.
    pub passes: u64,
    /// Batches before the first that counts.
    pub warm_up: u64,
    /// Batches that count.
    pub batches: u64,
    /// Rest behind each, for whoever takes the events.
    pub rest: Duration,
}

impl Plan {
    /// For what is off.
    pub const OFF: Plan = Plan { passes: 200_000, warm_up: 1, batches: 31, rest: Duration::ZERO };
    /// For what is on: a batch of events of up to three slots fits in a ring of 65,536, and is taken out in
    /// the rest.
    pub const ON: Plan =
        Plan { passes: 10_000, warm_up: 20, batches: 31, rest: Duration::from_millis(20) };
}

/// Cycles that one pass of `subject` takes longer than one of `base`: the difference of the medians of
/// batches that are measured in turns.
pub fn net(base: Loop, subject: Loop, plan: Plan) -> f64 {
    let cycles = |work: Loop, seed| {
        let start = begin();
        black_box(work(plan.passes, black_box(seed)));
        (end() - start) as f64 / plan.passes as f64
    };
    for seed in 1..=plan.warm_up {
        cycles(base, seed);
        cycles(subject, seed);
        std::thread::sleep(plan.rest.min(Duration::from_millis(3)));
    }
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for seed in 1..=plan.batches {
        without.push(cycles(base, seed));
        with.push(cycles(subject, seed));
        std::thread::sleep(plan.rest);
    }
    crate::median(with) - crate::median(without)
}
