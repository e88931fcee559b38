//! A thread that sleeps, works and is preempted, and what `/proc` counts of it and of the whole machine meanwhile.
//!
//! Marks (events `counters.mark` with the number of the place) stand around every reading, so that what was
//! recorded between two marks can be held against the difference of two readings.

use std::fs::read_to_string;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use ft_user::sync::Mutex;
use serde_json::{Value, json};

use crate::sched::{self, now_ns};

/// Pages that are touched for the first time while `inner` is held.
const TOUCHED: usize = 300;

fn mark(place: u64) {
    ft_user::event!("counters.mark", place: u64);
}

/// What the kernel counts of the calling thread.
#[derive(PartialEq)]
pub(crate) struct Own {
    status: String,
    schedstat: String,
}

impl Own {
    /// Reads both, with a mark at a moment for which both hold: nothing was switched in between. The thread has
    /// just been woken: the kernel adds up its run time only when it leaves the CPU.
    pub(crate) fn read(place: u64) -> Own {
        let now = || {
            let read = |name| read_to_string(format!("/proc/thread-self/{name}")).expect("proc");
            let status = read("status");
            let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
            Own { status: switches.collect::<Vec<_>>().join(" "), schedstat: read("schedstat") }
        };
        loop {
            sched::sleep_until(now_ns() + 1_000_000);
            let before = now();
            mark(place);
            if now() == before {
                return before;
            }
        }
    }

    /// Page faults of the calling thread so far, minor and major ones.
    fn faults() -> i64 {
        let usage = sched::usage();
        usage.ru_minflt + usage.ru_majflt
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "status": self.status, "schedstat": self.schedstat })
    }
}

/// Touches memory that was never touched, page by page, and each page twice.
fn touch(pages: usize) {
    let bytes = pages * 4096;
    // SAFETY: new memory, of pages that nobody makes one of, which is given back.
    unsafe {
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE);
        for _ in 0..2 {
            (0..bytes).step_by(4096).for_each(|at| memory.cast::<u8>().add(at).write_volatile(1));
        }
        libc::munmap(memory, bytes);
    }
}

/// Counts of the whole machine, between two marks.
fn machine(place: u64) -> Value {
    mark(place);
    let softirqs = read_to_string("/proc/softirqs").expect("proc");
    let interrupts = read_to_string("/proc/interrupts").expect("proc");
    let first = first_process();
    mark(place + 1);
    json!({ "softirqs": softirqs, "interrupts": interrupts, "first_process": first })
}

/// For how many ns the machine's first process has run, and how often.
fn first_process() -> [u64; 2] {
    let mut sums = [0; 2];
    for task in std::fs::read_dir("/proc/1/task").expect("proc").flatten() {
        let Ok(text) = read_to_string(task.path().join("schedstat")) else { continue };
        let mut numbers = text.split_whitespace().map(|n| n.parse::<u64>().expect("a number"));
        let mut next = || numbers.next().expect("three numbers");
        let [ran, _waited, times] = [next(), next(), next()];
        sums = [sums[0] + ran, sums[1] + times];
    }
    sums
}

/// Prints what `/proc` says at the begin and at the end. The locks `outer` and `inner` are held around and
/// between the thread's own two readings.
pub(crate) fn run(rounds: u64) -> String {
    let (outer, inner) = (Mutex::named("outer", ()), Mutex::named("inner", ()));
    let ended = AtomicBool::new(false);
    let active = AtomicBool::new(false);
    thread::scope(|s| {
        sched::on_stage(s, "ft-rival", 50, || {
            while !ended.load(Relaxed) {
                sched::sleep_until(now_ns() + 700_000);
                if active.load(Relaxed) {
                    sched::spin_until(now_ns() + 300_000);
                }
            }
        });
        let counted = sched::on_stage(s, "ft-counted", 10, || {
            let first = machine(1);
            let around = outer.lock().expect("not poisoned");
            let before = Own::read(3);
            let faults = Own::faults();
            let between = inner.lock().expect("not poisoned");
            touch(TOUCHED);
            active.store(true, Relaxed);
            for _ in 0..rounds {
                sched::sleep_until(now_ns() + 200_000);
                sched::spin_until(now_ns() + 300_000);
            }
            active.store(false, Relaxed);
            sched::sleep_until(now_ns() + 2_000_000);
            drop(between);
            let faults = Own::faults() - faults;
            let after = Own::read(4);
            drop(around);
            let last = machine(5);
            json!({
                "tid": sched::gettid(),
                "own": [before.json(), after.json()],
                "faults": [TOUCHED as i64, faults],
                "machine": [first, last],
            })
        });
        let truth = counted.join().expect("counted");
        ended.store(true, Relaxed);
        truth.to_string()
    })
}
