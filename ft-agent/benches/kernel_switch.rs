//! What watching the kernel costs one context switch: two threads on one CPU pass a byte to and fro
//! through pipes, unwatched and with the programs of each choice of groups.
//!
//! Each round trip is two switches and two wake-ups, all of which are recorded. The rounds of all
//! choices are interleaved, so that a change of the machine's load meets all of them. On a machine that
//! does other things run it as `chrt -f 50`: then the pair yields to nobody.

use std::{
    io::{PipeReader, PipeWriter, Read, Write, pipe},
    sync::mpsc,
    time::{Duration, Instant},
};

use ft_agent::collect::kernel::{Group, Kernel, Options};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

const ROUND_TRIPS: u32 = 5_000;
const REPETITIONS: usize = 15;
const CHOICES: [&str; 4] = ["none", "task", "sched", "default"];

fn main() {
    let mut results = CHOICES.map(|_| Vec::new());
    for _ in 0..REPETITIONS {
        for (choice, result) in CHOICES.iter().zip(&mut results) {
            let groups = Group::parse_list(choice).expect("the choices are groups");
            match watched(groups) {
                Ok(ns) => result.push(ns),
                Err(error) => {
                    println!("SKIPPED: {error}");
                    return;
                }
            }
        }
    }
    println!(
        "{:<8} {:>8} {:>8} {:>8}  ns per switch, with its wake-up",
        "groups", "min", "median", "max"
    );
    let mut unwatched = 0.0;
    for (choice, result) in CHOICES.iter().zip(&mut results) {
        result.sort_by(f64::total_cmp);
        let (min, median, max) = (result[0], result[REPETITIONS / 2], result[REPETITIONS - 1]);
        if *choice == "none" {
            unwatched = median;
        }
        println!("{choice:<8} {min:>8.0} {median:>8.0} {max:>8.0}  {:+.0}", median - unwatched);
    }
}

/// Nanoseconds per switch while the programs of `groups` are attached and drained.
fn watched(groups: Vec<Group>) -> Result<f64, ft_agent::collect::kernel::KernelError> {
    let mut kernel = Kernel::load(&Options { groups, ..Options::default() })?;
    kernel.observe(std::process::id())?;
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || done.send(ping_pong()));
    let mut records = Vec::new();
    loop {
        records.clear();
        kernel.drain(&mut records, usize::MAX);
        if let Ok(result) = is_done.recv_timeout(Duration::from_millis(20)) {
            let lost = kernel.losses()?;
            assert!(lost.is_empty(), "records were lost, so not all were paid for: {lost:?}");
            return Ok(result);
        }
    }
}

fn ping_pong() -> f64 {
    // The echo thread inherits the CPU.
    let mut cpu = CpuSet::new();
    cpu.set(sched_getcpu());
    sched_setaffinity(None, &cpu).expect("a thread may pin itself to where it runs");
    let (ping_out, mut ping_in) = pipe().expect("a pipe");
    let (mut pong_out, pong_in) = pipe().expect("a pipe");
    let echo = std::thread::spawn(|| echo(ping_out, pong_in));
    let mut round_trip = || {
        ping_in.write_all(&[1]).expect("the other end is open");
        pong_out.read_exact(&mut [0]).expect("the other end is open");
    };
    (0..ROUND_TRIPS / 10).for_each(|_| round_trip());
    let start = Instant::now();
    (0..ROUND_TRIPS).for_each(|_| round_trip());
    let elapsed = start.elapsed();
    drop(ping_in);
    echo.join().expect("the echo ends with its pipe");
    elapsed.as_nanos() as f64 / f64::from(2 * ROUND_TRIPS)
}

fn echo(mut from: PipeReader, mut to: PipeWriter) {
    let mut byte = [0];
    while from.read(&mut byte).is_ok_and(|n| n == 1) {
        to.write_all(&byte).expect("the other end is open");
    }
}
