//! A thread is woken while it is on its way to sleep, and another one takes its CPU.
//!
//! ```text
//! waker    CPU 0  ───────────────────────────────────sends a signal
//! sleeper  stage  ──begin of the round, sigtimedwait┐ sleeps or not ········└──
//! rival    stage  ready ····························└──keeps the CPU─────────┘
//! ```
//!
//! Both on the stage have one real-time priority, so that none takes the CPU from the other. The sleeper sleeps unless
//! the signal is there already. The waker searches the moment from which on it sleeps: there the two race.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::thread;

use ft_user::sync::Mutex;
use serde_json::json;

use crate::counters::Own;
use crate::sched::{self, now_ns};

/// From the begin of a round to that of the next, ns.
const ROUND_NS: i64 = 600_000;

/// How long the rival keeps the CPU, ns.
const KEEP_NS: i64 = 200_000;

/// The waker's first guess when the sleeper goes to sleep, after the begin of a round, and its steps, ns.
const GUESS_NS: i64 = 2_000;
const STEP_NS: i64 = 50;

/// Prints what `/proc` says of the sleeper before and after; it holds the locks `outer` and `inner` as in `counters`.
pub(crate) fn run(rounds: u64) -> String {
    let (outer, inner) = (Mutex::named("outer", ()), Mutex::named("inner", ()));
    let sleeper_tid = AtomicI32::new(0);
    let slept = AtomicBool::new(false);
    let start = sched::Start::of(3);
    let begin = |at: i64, round: u64| at + ROUND_NS * (round as i64 + 10);
    thread::scope(|s| {
        let waker = thread::Builder::new().name("ft-waker".into());
        let wakes = || {
            sched::pin(0);
            sched::fifo(10);
            let (at, mut later) = (start.wait(), GUESS_NS);
            for round in 0..rounds {
                let begin = begin(at, round);
                sched::sleep_until(begin - 40_000);
                let step = if slept.load(SeqCst) { -STEP_NS } else { STEP_NS };
                later = (later + step).clamp(-20_000, 100_000);
                sched::spin_until(begin + later);
                signal(sleeper_tid.load(SeqCst));
            }
        };
        waker.spawn_scoped(s, wakes).expect("spawn");
        sched::on_stage(s, "ft-rival", 10, || {
            let at = start.wait();
            for round in 0..rounds {
                // The sleeper has the CPU now, until it sleeps.
                sched::sleep_until(begin(at, round) - 20_000);
                sched::spin_until(now_ns() + KEEP_NS);
            }
        });
        let sleeper = sched::on_stage(s, "ft-sleeper", 10, || {
            let set = signals();
            // Two signals are one to a thread that has not taken the first yet.
            let patience = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            sleeper_tid.store(sched::gettid(), SeqCst);
            let around = outer.lock().expect("not poisoned");
            let before = Own::read(3);
            let between = inner.lock().expect("not poisoned");
            let at = start.wait();
            for round in 0..rounds {
                let begin = begin(at, round);
                sched::sleep_until(begin - 40_000);
                let switches = sched::switches().0;
                sched::spin_until(begin);
                // SAFETY: set and time are valid, and nothing is asked for about the signal.
                unsafe { libc::sigtimedwait(&set, std::ptr::null_mut(), &patience) };
                slept.store(sched::switches().0 != switches, SeqCst);
            }
            drop(between);
            let after = Own::read(4);
            drop(around);
            json!({ "tid": sched::gettid(), "own": [before.json(), after.json()] })
        });
        sleeper.join().expect("sleeper").to_string()
    })
}

/// The signal that wakes, blocked from now on for the calling thread: it waits until it is asked for.
fn signals() -> libc::sigset_t {
    // SAFETY: the set is plain data, valid when zeroed, and outlives the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    }
}

fn signal(tid: i32) {
    // SAFETY: numbers alone; the thread is one of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
}
