//! What one lock for the records of all CPUs costs: every CPU names its thread anew as fast as it can, each of which is a
//! record, into one ring buffer, and into one for each CPU. The program that writes it looks at nothing else that CPUs share.
//!
//! Beside it what one thread takes to collect them: to take the records out, and to write them to a spool, too.
//!
//! `cargo bench -p ft-tests --bench ring_buffers [-- ROUNDS]`, as root, on a machine that does nothing else; the spool is written
//! below `TMPDIR`. Nobody reads the buffers meanwhile; they are large enough for all. The ways take turns; a figure is the median
//! of the rounds, of a call the CPU time, of a record the time that passes.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use ft_agent::collect::kernel::{Group, Kernel, KernelOptions};
use ft_trace::spool::frame::{ClockSample, Frame, Start};
use ft_trace::spool::{Limits, Spool, Writer};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// For which the CPUs are busy, and the buffer that holds all records of one from that time.
const TIME: Duration = Duration::from_millis(30);
const BYTES: usize = 8 << 20;

/// One way to record.
#[derive(Clone, Copy)]
enum Recorded {
    Not,
    One,
    Each,
    /// As `Each`, and what is taken out goes to a spool.
    Written,
}

/// What a round has shown, ns.
struct Round {
    /// A call, of each CPU.
    call: f64,
    /// To take a record out of its buffer.
    drain: f64,
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(9);
    let allowed = sched_getaffinity(None).expect("the CPUs of this process");
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    println!(
        "| busy CPUs | not recorded | one buffer | a buffer for each CPU | taken out of one | of one for each | and written |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut busy = 1;
    loop {
        let ways = [Recorded::Not, Recorded::One, Recorded::Each, Recorded::Written];
        let rounds: Vec<[Round; 4]> =
            (0..rounds).map(|_| ways.map(|way| round(&cpus[..busy], way))).collect();
        let median = |way: usize, value: fn(&Round) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(|round| value(&round[way])).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let of = |way| (median(way, |round| round.call), median(way, |round| round.drain));
        let [without, one, each, written] = [0, 1, 2, 3].map(of);
        println!(
            "| {busy} | {:.0} ns | {:.0} ns | {:.0} ns | {:.1} ns | {:.1} ns | {:.1} ns |",
            without.0, one.0, each.0, one.1, each.1, written.1
        );
        if busy == cpus.len() {
            return;
        }
        busy = (2 * busy).min(cpus.len());
    }
}

fn round(cpus: &[usize], recorded: Recorded) -> Round {
    let load = |most_ring_buffers| {
        let groups = vec![Group::Task];
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
        let ring_bytes = (BYTES * cpus.next_power_of_two()).min(1 << 30) as u32;
        let options =
            KernelOptions { groups, ring_bytes, most_ring_buffers, ..KernelOptions::default() };
        Kernel::load(&options).expect("the kernel's side")
    };
    let mut kernel = match recorded {
        Recorded::Not => None,
        Recorded::One => Some(load(1)),
        Recorded::Each | Recorded::Written => Some(load(u32::MAX)),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut spool = matches!(recorded, Recorded::Written).then(|| writer(folder.path()));
    kernel.iter_mut().for_each(|kernel| kernel.observe(std::process::id()));
    let barrier = &Barrier::new(cpus.len());
    let told: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let busy: Vec<_> =
            cpus.iter().map(|&cpu| scope.spawn(move || calls(cpu, barrier))).collect();
        busy.into_iter().map(|thread| thread.join().expect("a thread that only calls")).collect()
    });
    let calls: u64 = told.iter().map(|(calls, _)| calls).sum();
    let call = told.iter().map(|(calls, time)| time.as_nanos() as f64 / *calls as f64).sum::<f64>();
    let (mut bytes, mut records) = (Vec::with_capacity(1 << 20), 0);
    let (began, mut took) = (Instant::now(), Duration::ZERO);
    if let Some(kernel) = &mut kernel {
        kernel.unobserve(std::process::id());
        loop {
            bytes.clear();
            let drained = kernel.drain(&mut bytes, 1 << 20);
            records += drained.records;
            if let Some(spool) = &mut spool {
                spool.push(&Frame::Kernel(&bytes)).expect("room on the disk");
            }
            if !drained.more {
                break;
            }
        }
        if let Some(spool) = &mut spool {
            spool.flush().expect("room on the disk");
        }
        took = began.elapsed();
        let lost: u64 = kernel.losses().expect("the counters").iter().map(|loss| loss.count).sum();
        assert!(lost == 0 && records >= calls, "{records} records of {calls} calls, {lost} lost");
    }
    let drain = took.as_nanos() as f64 / records.max(1) as f64;
    Round { call: call / cpus.len() as f64, drain }
}

/// A spool in a folder, of one segment.
fn writer(folder: &Path) -> Writer {
    let spool = Spool::create(folder).expect("an empty folder");
    let limits = Limits { bytes: u64::MAX, age: Duration::MAX };
    Writer::create(spool, limits, Start::default(), ClockSample::default())
        .expect("room on the disk")
}

/// Calls on one CPU: how many, in which time.
fn calls(cpu: usize, barrier: &Barrier) -> (u64, Duration) {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).expect("a CPU that is allowed");
    barrier.wait();
    let (mut calls, began, had) = (0, Instant::now(), cpu_time());
    while began.elapsed() < TIME {
        for _ in 0..1000 {
            // SAFETY: the name ends with a NUL.
            unsafe { libc::prctl(libc::PR_SET_NAME, c"busy".as_ptr()) };
        }
        calls += 1000;
    }
    (calls, cpu_time() - had)
}

/// What this thread has had of its CPU, so that whoever else runs on it does not count.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
