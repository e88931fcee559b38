//! Locks in every way in which they can be waited for: one that changes hands many times meanwhile, one with
//! readers at once, one behind a condition, and two threads that wait for each other for ever.
//!
//! ```text
//! stage CPU    holder   FIFO 10  ─holds──sleeps┐┌long turns┐┌┐┌┐ … short turns ┌┐┌┐ sleeps
//!              waiter   FIFO 5       waits ────────────────────────────────────────gets it
//! ```
//!
//! The holder does not leave the CPU between its turns, so the waiter, which was woken, cannot come. The long turns
//! are over long before the wait is.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

use ft_user::sync::{Condvar, Mutex, MutexGuard, RwLock};

use crate::sched;

const SETTLE_NS: i64 = 10_000_000;
/// Turns and how long each holds the lock.
const LONG: (u32, i64) = (100, 150_000);
const SHORT: (u32, i64) = (150, 20_000);

static CONVOY: Mutex<u64> = Mutex::named("convoy", 0);
static SHARED: RwLock<u64> = RwLock::named("shared", 0);
static QUEUE: Mutex<u64> = Mutex::named("queue", 0);
static ARRIVED: Condvar = Condvar::new();
static FATAL: [Mutex<u64>; 2] = [const { Mutex::named("fatal", 0) }; 2];

/// Prints, for each of `rounds`, for how long the long turns held the lock: at least, and at most; and how much of the hold
/// before them the waiter saw at most.
pub(crate) fn run(rounds: u64) -> String {
    let turns: Vec<String> = (0..rounds).map(|_| convoy()).collect();
    readers();
    condition(rounds * 10);
    let [one, other] = deadlock();
    format!(
        "{{\"rounds\":[{}],\"holds\":{},\"deadlock\":[{one},{other}]}}",
        turns.join(","),
        1 + LONG.0 + SHORT.0
    )
}

/// Takes the lock `count` times, and keeps it for `ns` each time: surely, and at most.
fn turns((count, ns): (u32, i64), take: impl Fn() -> MutexGuard<'static, u64>) -> (i64, i64) {
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..count {
        let before = sched::now_ns();
        let held = take();
        let from = sched::now_ns();
        sched::spin_until(from + ns);
        inside += sched::now_ns() - from;
        drop(held);
        outside += sched::now_ns() - before;
    }
    (inside, outside)
}

fn convoy() -> String {
    let start = sched::Start::of(2);
    scope(|scope| {
        let holder = sched::on_stage(scope, "ft-holder", 10, || {
            let held = CONVOY.lock().expect("not poisoned");
            let begin = start.wait();
            sched::sleep_until(begin + 2 * SETTLE_NS);
            drop(held);
            let released = sched::now_ns();
            // Each at a place of its own.
            let (inside, outside) = turns(LONG, || CONVOY.lock().expect("not poisoned"));
            turns(SHORT, || CONVOY.lock().expect("not poisoned"));
            (sched::gettid(), inside, outside, released)
        });
        let waiter = sched::on_stage(scope, "ft-waiter", 5, || {
            let begin = start.wait();
            sched::sleep_until(begin + SETTLE_NS);
            let called = sched::now_ns();
            *CONVOY.lock().expect("not poisoned") += 1;
            (sched::gettid(), called)
        });
        let (holder, inside, outside, released) = holder.join().expect("the holder");
        let (waiter, called) = waiter.join().expect("the waiter");
        let before = released - called;
        format!("[{waiter},{holder},{inside},{outside},{before}]")
    })
}

/// Two readers at once, one of which comes and goes later, and a writer that waits for both.
fn readers() {
    let (first, both) = (Barrier::new(2), Barrier::new(3));
    let pause = || sleep(Duration::from_millis(3));
    scope(|scope| {
        scope.spawn(|| {
            let _shared = SHARED.read();
            first.wait();
            both.wait();
            pause();
        });
        scope.spawn(|| {
            first.wait();
            let _shared = SHARED.read();
            both.wait();
            pause();
            pause();
        });
        scope.spawn(|| {
            both.wait();
            *SHARED.write().expect("not poisoned") += 1;
        });
    });
}

/// One thread fills a queue that another one waits for.
fn condition(count: u64) {
    let held = Barrier::new(2);
    scope(|scope| {
        scope.spawn(|| {
            for turn in 0..count {
                let queue = QUEUE.lock().expect("not poisoned");
                if turn == 0 {
                    // So that the queue is empty the first time, and it must wait.
                    held.wait();
                }
                *ARRIVED.wait_while(queue, |queue| *queue == 0).expect("not poisoned") -= 1;
            }
        });
        held.wait();
        for _ in 0..count {
            *QUEUE.lock().expect("not poisoned") += 1;
            ARRIVED.notify_one();
        }
    });
}

/// Two threads that never end; their numbers.
fn deadlock() -> [i32; 2] {
    static BOTH: Barrier = Barrier::new(2);
    static TIDS: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];
    for n in 0..2 {
        let embrace = move || {
            let _one = FATAL[n].lock().expect("not poisoned");
            BOTH.wait();
            TIDS[n].store(sched::gettid(), Relaxed);
            let _other = FATAL[1 - n].lock().expect("not poisoned");
        };
        Builder::new().name(format!("fatal-{n}")).spawn(embrace).expect("spawn");
    }
    // From here on they sleep for nothing else.
    let asleep = |tid: &AtomicI32| {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", tid.load(Relaxed)));
        stat.is_ok_and(|stat| stat.contains(") S "))
    };
    while !TIDS.iter().all(asleep) {
        sleep(Duration::from_millis(1));
    }
    TIDS.each_ref().map(|tid| tid.load(Relaxed))
}
