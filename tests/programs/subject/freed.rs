//! A lock is free, and the thread that waits for it is not woken: how long it sleeps then, behind whom it waits for the CPU, and
//! how often the lock is taken before it has it, is known.
//!
//! ```text
//! holder  FIFO 50  ══holds══╗    ═╗    ═╗  wakes──keeps the CPU──sleep
//! waiter  FIFO 10  asleep····free··free··free····runnable············└has it
//! ```
//!
//! A lock of its own, since those of the standard library wake who waits at once. Nothing here depends on when somebody comes:
//! the holder goes on when the kernel says that the waiter sleeps.

use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering::SeqCst};
use std::thread;

use ft_user::lock_api::RawMutex as Traced;
use lock_api::{Mutex, RawMutex};
use serde_json::json;

use crate::sched::{self, now_ns};

/// How long the lock is free, and how long it is held again, ns.
const FREE_NS: i64 = 40_000;
const HELD_NS: i64 = 10_000;

/// How long the holder keeps the CPU after it has woken the waiter, ns.
const KEEP_NS: i64 = 200_000;

/// From look to look at the waiter, ns.
const LOOK_NS: i64 = 100_000;

/// The lock is taken this often between, round by round.
const TAKEN: [i64; 4] = [0, 1, 2, 5];

/// A lock, the only one of its kind, whose waiter is woken when [`wake`] is called.
struct Unwoken;

static TAKEN_BY_SOMEBODY: AtomicBool = AtomicBool::new(false);

/// Changes with each call of [`wake`].
static WAKES: AtomicU32 = AtomicU32::new(0);

/// The waiter is about to sleep.
static WAITS: AtomicBool = AtomicBool::new(false);

/// When it was back, ns.
static BACK: AtomicI64 = AtomicI64::new(0);

// SAFETY: whoever sets the word has the lock until it resets it.
unsafe impl RawMutex for Unwoken {
    const INIT: Unwoken = Unwoken;

    type Guard = ();

    fn lock(&self) {
        loop {
            let wakes = WAKES.load(SeqCst);
            if self.try_lock().is_some() {
                return;
            }
            WAITS.store(true, SeqCst);
            futex(libc::FUTEX_WAIT, wakes);
            BACK.store(now_ns(), SeqCst);
        }
    }

    fn try_lock(&self) -> Option<()> {
        (!TAKEN_BY_SOMEBODY.swap(true, SeqCst)).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        TAKEN_BY_SOMEBODY.store(false, SeqCst);
    }

    fn is_locked(&self) -> bool {
        TAKEN_BY_SOMEBODY.load(SeqCst)
    }
}

fn wake() {
    WAKES.fetch_add(1, SeqCst);
    futex(libc::FUTEX_WAKE, 1);
}

fn futex(call: i32, value: u32) {
    let (call, none) = (call | libc::FUTEX_PRIVATE_FLAG, std::ptr::null::<libc::timespec>());
    // SAFETY: the word is a static.
    unsafe { libc::syscall(libc::SYS_futex, WAKES.as_ptr(), call, value, none) };
}

type Lock = Mutex<Traced<Unwoken>, ()>;

/// Does something; from when to when, at most, ns.
fn timed<T>(what: impl FnOnce() -> T) -> (T, [i64; 2]) {
    let from = now_ns();
    let done = what();
    (done, [from, now_ns()])
}

/// How long it was between two moments, at least and at most, ns.
fn between(first: [i64; 2], second: [i64; 2]) -> [i64; 2] {
    [second[0] - first[1], second[1] - first[0]]
}

/// One round, by the holder. Times in pairs: at least, and at most.
struct Freed {
    taken: i64,
    /// How long the lock was free and the waiter asleep.
    asleep: [i64; 2],
    /// How long it was free when that was woken.
    late: [i64; 2],
    woken: [i64; 2],
    /// When the holder gave up the CPU, and for how long it did not have it since.
    kept: i64,
    lost: i64,
}

/// Prints for each round how often the lock was taken; how long the waiter slept while it was free, how late it was woken, how
/// long it then waited for the CPU, each at least and at most; what of the latter the holder did not have the CPU, at most; and
/// when the waiter had the lock.
pub(crate) fn run(rounds: u64) -> String {
    let lock: Lock = Mutex::from_raw(Traced::named("unwoken"), ());
    let (begins, begin) = pipe().expect("pipe");
    let (ends, end) = pipe().expect("pipe");
    let (lock, tid) = (&lock, &AtomicI32::new(0));
    thread::scope(|s| {
        let waiter = sched::on_stage(s, "ft-waiter", 10, move || {
            tid.store(sched::gettid(), SeqCst);
            wait(lock, begins, end)
        });
        let holder =
            sched::on_stage(s, "ft-holder", 50, move || hold(lock, tid, begin, ends, rounds));
        let (holder, freed) = holder.join().expect("holder");
        let got = waiter.join().expect("waiter");
        let told: Vec<Vec<i64>> = freed
            .iter()
            .zip(got)
            .map(|(f, [back, got])| {
                let queued = [f.kept - f.woken[1], back - f.woken[0]];
                [&[f.taken][..], &f.asleep, &f.late, &queued, &[f.lost, got]].concat()
            })
            .collect();
        json!({ "holder": holder, "waiter": tid.load(SeqCst), "rounds": told }).to_string()
    })
}

fn hold(
    lock: &Lock,
    waiter: &AtomicI32,
    mut begin: PipeWriter,
    mut ends: PipeReader,
    rounds: u64,
) -> (i32, Vec<Freed>) {
    let round = |round: u64| {
        let held = lock.lock();
        WAITS.store(false, SeqCst);
        begin.write_all(&[1]).expect("pipe");
        while !(WAITS.load(SeqCst) && sleeps(waiter.load(SeqCst))) {
            sched::sleep_until(now_ns() + LOOK_NS);
        }
        let ((), mut released) = timed(|| drop(held));
        let (taken, mut asleep) = (TAKEN[round as usize % TAKEN.len()], [0; 2]);
        let mut add = |times: [i64; 2]| asleep = [asleep[0] + times[0], asleep[1] + times[1]];
        for _ in 0..taken {
            sched::spin_until(now_ns() + FREE_NS);
            let (again, acquired) = timed(|| lock.lock());
            add(between(released, acquired));
            sched::spin_until(now_ns() + HELD_NS);
            ((), released) = timed(|| drop(again));
        }
        sched::spin_until(now_ns() + FREE_NS);
        let ((), woken) = timed(wake);
        let late = between(released, woken);
        add(late);
        let lost = sched::spin_until(now_ns() + KEEP_NS);
        let kept = now_ns();
        assert_eq!(ends.read(&mut [0]).expect("pipe"), 1);
        Freed { taken, asleep, late, woken, kept, lost }
    };
    (sched::gettid(), (0..rounds).map(round).collect())
}

/// By the end of the other pipe it is over.
fn wait(lock: &Lock, mut begins: PipeReader, mut end: PipeWriter) -> Vec<[i64; 2]> {
    let mut got = Vec::new();
    while begins.read(&mut [0]).expect("pipe") == 1 {
        let held = lock.lock();
        got.push([BACK.load(SeqCst), now_ns()]);
        drop(held);
        end.write_all(&[1]).expect("pipe");
    }
    got
}

/// Whether a thread sleeps until it is woken (proc_pid_stat(5)).
fn sleeps(tid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("a thread of ours");
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}
