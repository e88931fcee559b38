//! Two threads on one CPU that pass a byte to and fro through pipes: each round trip is two context
//! switches and two wake-ups.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use ft_costs::{cpu, cycles, fewer, median, tell};

const ROUND_TRIPS: u64 = 20_000;
const BATCHES: u64 = 9;

/// Tells `switch`, ns.
pub(crate) fn measure() {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    let (ping_out, mut ping_in) = pipe().expect("a pipe");
    let (mut pong_out, pong_in) = pipe().expect("a pipe");
    // It inherits the CPU.
    let echo = std::thread::spawn(|| echo(ping_out, pong_in));
    let mut batch = || {
        let start = cycles::begin();
        for _ in 0..ROUND_TRIPS {
            ping_in.write_all(&[1]).expect("the other end is open");
            pong_out.read_exact(&mut [0]).expect("the other end is open");
        }
        (cycles::end() - start) as f64 / (2 * ROUND_TRIPS) as f64 / per_ns
    };
    batch();
    tell("switch", median((0..fewer(BATCHES, 3)).map(|_| batch()).collect()));
    drop(ping_in);
    echo.join().expect("the echo ends with its pipe");
}

fn echo(mut from: PipeReader, mut to: PipeWriter) {
    let mut byte = [0];
    while from.read(&mut byte).is_ok_and(|n| n == 1) {
        to.write_all(&byte).expect("the other end is open");
    }
}
