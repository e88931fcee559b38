//! The measured program: loops, batches, minimum and median.

use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use std::cell::UnsafeCell;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How much to measure. Told to the child as one argument.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Pairs of one batch.
    batch: u64,
    /// Batches.
    batches: u64,
    /// Rest between two, for whoever reads the events.
    rest: Duration,
}

impl Plan {
    pub(crate) const OFF: Plan = Plan { batch: 500_000, batches: 31, rest: Duration::ZERO };
    /// Two events a pair, so that a batch fits in the ring of 65,536.
    pub(crate) const ON: Plan =
        Plan { batch: 16_000, batches: 61, rest: Duration::from_millis(50) };
    /// For the larger buffers of LTTng.
    pub(crate) const ON_SLOWLY: Plan =
        Plan { batch: 100_000, batches: 15, rest: Duration::from_millis(200) };

    /// Pairs in all, with those that warm up.
    pub(crate) fn pairs(&self) -> u64 {
        self.batch / 10 + self.batch * self.batches
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.batch, self.batches, self.rest.as_millis())
    }
}

impl FromStr for Plan {
    type Err = ();
    fn from_str(text: &str) -> std::result::Result<Plan, ()> {
        let mut numbers = text.split(',').map(|number| number.parse::<u64>().map_err(drop));
        let mut next = || numbers.next().ok_or(())?;
        Ok(Plan { batch: next()?, batches: next()?, rest: Duration::from_millis(next()?) })
    }
}

/// Nanoseconds per pair, net of the loop.
#[derive(Clone, Copy)]
pub(crate) struct Result {
    pub(crate) minimum: f64,
    pub(crate) median: f64,
}

impl fmt::Display for Result {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.minimum, self.median)
    }
}

impl FromStr for Result {
    type Err = ();
    fn from_str(text: &str) -> std::result::Result<Result, ()> {
        let (minimum, median) = text.split_once(' ').ok_or(())?;
        let parse = |number: &str| number.parse().map_err(drop);
        Ok(Result { minimum: parse(minimum)?, median: parse(median)? })
    }
}

/// The result with the median median.
pub(crate) fn middle(results: &mut [Result]) -> Option<Result> {
    results.sort_by(|a, b| a.median.total_cmp(&b.median));
    results.get(results.len() / 2).copied()
}

struct Mutex(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex is made for several threads.
unsafe impl Sync for Mutex {}
static MUTEX: Mutex = Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// Measures, after telling on standard output that it begins.
pub(crate) fn run(plan: Plan) -> Result {
    pin();
    // glibc may leave out atomic instructions while there is one thread.
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    let cycles_per_ns = calibrate();
    println!("ready");
    std::thread::sleep(Duration::from_millis(100));
    std::hint::black_box(chain(plan.batch / 10, 1) ^ pairs(plan.batch / 10, 1));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for seed in 1..=plan.batches {
        without.push(cycles(plan, chain, seed));
        with.push(cycles(plan, pairs, seed));
        std::thread::sleep(plan.rest);
    }
    without.sort_by(f64::total_cmp);
    with.sort_by(f64::total_cmp);
    let net = |at: usize| (with[at] - without[at]) / cycles_per_ns;
    Result { minimum: net(0), median: net(with.len() / 2) }
}

fn cycles(plan: Plan, work: fn(u64, u64) -> u64, seed: u64) -> f64 {
    // SAFETY: the instructions exist on every x86-64 that Linux runs on.
    unsafe {
        _mm_lfence();
        let before = _rdtsc();
        _mm_lfence();
        std::hint::black_box(work(plan.batch, seed));
        let after = __rdtscp(&mut 0);
        _mm_lfence();
        (after - before) as f64 / plan.batch as f64
    }
}

fn step(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ x << 17
}

#[inline(never)]
fn chain(n: u64, mut x: u64) -> u64 {
    for _ in 0..n {
        x = std::hint::black_box(step(x));
    }
    x
}

#[inline(never)]
fn pairs(n: u64, mut x: u64) -> u64 {
    for _ in 0..n {
        // SAFETY: a static mutex, not held by this thread, then held by it.
        unsafe {
            libc::pthread_mutex_lock(MUTEX.0.get());
            x = std::hint::black_box(step(x));
            libc::pthread_mutex_unlock(MUTEX.0.get());
        }
    }
    x
}

/// Cycles of the time stamp counter per nanosecond.
fn calibrate() -> f64 {
    // SAFETY: as in `cycles`.
    let tsc = || unsafe { _rdtsc() };
    let (start, before) = (Instant::now(), tsc());
    while start.elapsed() < Duration::from_millis(50) {}
    (tsc() - before) as f64 / start.elapsed().as_nanos() as f64
}

/// Runs on the last CPU, so that whoever reads has the others.
fn pin() {
    // SAFETY: all of a CPU set may be zero, and it is as long as is said.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let cpus = libc::sysconf(libc::_SC_NPROCESSORS_ONLN).max(1) as usize;
        libc::CPU_SET(cpus - 1, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}
