//! Switches, and time on a CPU, in a chain of calls of a known length, which frame pointers lead through.

use std::io::pipe;
use std::os::fd::{AsRawFd, RawFd};

use ft_costs::{cpu, cycles, fewer, median, tell};

/// Functions of the chain, beside those that begin a thread.
const DEPTH: i32 = 16;

const ROUND_TRIPS: u64 = 20_000;
const BATCHES: u64 = 9;

/// Steps of one dependency chain: some 0.2 s.
const PASSES: u64 = 100_000_000;

unsafe extern "C" {
    safe fn ft_costs_ping(depth: i32, input: RawFd, output: RawFd, passes: u64) -> u64;
    safe fn ft_costs_echo(depth: i32, input: RawFd, output: RawFd) -> u64;
    safe fn ft_costs_spin(depth: i32, passes: u64) -> u64;
}

/// As [`ping_pong`](crate::ping_pong): tells `switch`, ns.
pub(crate) fn switch() {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    let (ping_out, ping_in) = pipe().expect("a pipe");
    let (pong_out, pong_in) = pipe().expect("a pipe");
    let echo = std::thread::spawn(move || {
        ft_costs_echo(DEPTH, ping_out.as_raw_fd(), pong_in.as_raw_fd());
    });
    let batch = || {
        let start = cycles::begin();
        let done = ft_costs_ping(DEPTH, pong_out.as_raw_fd(), ping_in.as_raw_fd(), ROUND_TRIPS);
        assert_eq!(done, ROUND_TRIPS, "the other end is open");
        (cycles::end() - start) as f64 / (2 * ROUND_TRIPS) as f64 / per_ns
    };
    batch();
    tell("switch", median((0..fewer(BATCHES, 3)).map(|_| batch()).collect()));
    drop(ping_in);
    echo.join().expect("the echo ends with its pipe");
}

/// Tells `pass`, ns of the thread's own time on a CPU, which has that of interrupts, and nothing of other threads.
pub(crate) fn spin() {
    cpu::pin(cpu::measured());
    let batch = || {
        let start = cpu::of_this_thread();
        std::hint::black_box(ft_costs_spin(DEPTH, PASSES));
        (cpu::of_this_thread() - start) * 1e9 / PASSES as f64
    };
    batch();
    tell("pass", median((0..fewer(BATCHES, 3)).map(|_| batch()).collect()));
}
