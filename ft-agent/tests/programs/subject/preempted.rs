//! A `SCHED_FIFO` thread takes the CPU of a thread that holds a lock, or polls, for a known time.
//!
//! ```text
//! victim     FIFO 10  ──hold/poll──────┐              ┌───────────release
//! preemptor  FIFO 50   sleep           └──known time──┘ sleep
//!                                      from           to
//! ```
//!
//! The preemptor reads the clock when it gets the CPU and just before it gives it up; the victim cannot
//! have run in between. It was off the CPU a little longer: by the two context switches.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use ft_user::gap::Poller;
use ft_user::sync::Mutex;

use crate::sched;

const LEAD_NS: i64 = 3_000_000;
const TAIL_NS: i64 = 2_000_000;

/// Runs `victim(end)` `rounds` times against a preemptor that takes `length_us` each time.
///
/// Prints when the preemptor had the CPU, and when the victim was inside of `victim`: where a round came
/// too late, because the machine did not run it, the one is not within the other.
fn duel(length_us: u64, rounds: u64, mut victim: impl FnMut(i64) + Send) -> String {
    let length_ns = length_us as i64 * 1000;
    let period = LEAD_NS + length_ns + TAIL_NS + 10_000_000;
    let both = Barrier::new(2);
    let start = AtomicI64::new(0);
    let begin = |priority| {
        sched::pin(sched::stage());
        sched::fifo(priority);
        ft_user::thread_init();
        if both.wait().is_leader() {
            start.store(sched::now_ns() + 10_000_000, Ordering::Relaxed);
        }
        both.wait();
        let start = start.load(Ordering::Relaxed);
        move |round: u64| start + round as i64 * period
    };
    thread::scope(|s| {
        let preemptor = thread::Builder::new()
            .name("ft-preemptor".into())
            .spawn_scoped(s, || {
                let start_of = begin(50);
                let taken: Vec<(i64, i64)> = (0..rounds)
                    .map(|round| {
                        sched::sleep_until(start_of(round) + LEAD_NS);
                        let from = sched::now_ns();
                        sched::spin_until(from + length_ns);
                        (from, sched::now_ns())
                    })
                    .collect();
                // Gives the CPU up at once in the last round too, before it does anything else.
                sched::sleep_until(start_of(rounds));
                (sched::gettid(), json(&taken))
            })
            .expect("spawn");
        let victim = thread::Builder::new()
            .name("ft-victim".into())
            .spawn_scoped(s, || {
                let start_of = begin(10);
                let inside: Vec<(i64, i64)> = (0..rounds)
                    .map(|round| {
                        sched::sleep_until(start_of(round));
                        let from = sched::now_ns();
                        victim(start_of(round) + LEAD_NS + length_ns + TAIL_NS);
                        (from, sched::now_ns())
                    })
                    .collect();
                (sched::gettid(), json(&inside))
            })
            .expect("spawn");
        let (victim, inside) = victim.join().expect("victim");
        let (preemptor, taken) = preemptor.join().expect("preemptor");
        format!(
            "{{\"victim\":{victim},\"preemptor\":{preemptor},\
             \"taken\":{taken},\"inside\":{inside}}}"
        )
    })
}

fn json(intervals: &[(i64, i64)]) -> String {
    let pairs: Vec<String> = intervals.iter().map(|(from, to)| format!("[{from},{to}]")).collect();
    format!("[{}]", pairs.join(","))
}

/// The victim holds a lock while it is preempted.
pub(crate) fn hold(length_us: u64, rounds: u64) -> String {
    let lock = Mutex::named("victim", 0u64);
    duel(length_us, rounds, |end| {
        let mut held = lock.lock().expect("not poisoned");
        sched::spin_until(end);
        *held += 1;
    })
}

/// The victim polls while it is preempted.
pub(crate) fn poll(length_us: u64, rounds: u64) -> String {
    // Measures the counter now, not in the first round.
    ft_user::gap::tsc_hz();
    duel(length_us, rounds, |end| {
        let mut poller = Poller::new(Duration::from_micros(100));
        while sched::now_ns() < end {
            poller.poll();
        }
    })
}
