//! Three threads wait in a chain behind a holder that a `SCHED_FIFO` thread preempts for a known time.
//!
//! ```text
//! stage CPU    victim     FIFO 10  ─holds first────┐            ┌──release first──
//!              preemptor  FIFO 50   sleep          └─known time─┘ sleep
//! other CPUs   one        holds second, waits for first   FIFO 60
//!              two        holds third, waits for second
//!              three      waits for third
//! ```
//!
//! The victim sleeps until all three wait, so that they find a CPU. They get their locks in turn when it has
//! released the first.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use ft_user::sync::Mutex;

use crate::sched;

/// Time for the three to find their lock taken.
const SETTLE_NS: i64 = 20_000_000;

/// What the victim spins before it is preempted, and after it.
const SPIN_NS: i64 = 5_000_000;

/// The preemptor takes the CPU for `length_us`. Prints who is who, and when the preemptor had it.
pub(crate) fn run(length_us: u64) -> String {
    let length_ns = length_us as i64 * 1000;
    let [first, second, third] = ["first", "second", "third"].map(|name| Mutex::named(name, 0u64));
    let (holds_all, start) = (Barrier::new(5), AtomicI64::new(0));
    // After the barrier all hold what they shall hold, and the time of the round is set.
    let meet = || {
        if holds_all.wait().is_leader() {
            start.store(sched::now_ns(), Ordering::Relaxed);
        }
        holds_all.wait();
        start.load(Ordering::Relaxed)
    };
    let waiter = |prio: i32, own: Option<&Mutex<u64>>, wanted: &Mutex<u64>| {
        sched::fifo(prio);
        ft_user::thread_init();
        let held = own.map(|lock| lock.lock().expect("not poisoned"));
        meet();
        *wanted.lock().expect("not poisoned") += 1;
        drop(held);
        sched::gettid()
    };
    thread::scope(|s| {
        let spawn = |name: &str| thread::Builder::new().name(name.into());
        let victim = spawn("ft-victim").spawn_scoped(s, || {
            sched::pin(sched::stage());
            sched::fifo(10);
            ft_user::thread_init();
            let held = first.lock().expect("not poisoned");
            let begin = meet();
            sched::sleep_until(begin + SETTLE_NS - SPIN_NS);
            sched::spin_until(begin + SETTLE_NS + length_ns + SPIN_NS);
            drop(held);
            sched::gettid()
        });
        let preemptor = spawn("ft-preemptor").spawn_scoped(s, || {
            sched::pin(sched::stage());
            sched::fifo(50);
            ft_user::thread_init();
            let begin = meet();
            sched::sleep_until(begin + SETTLE_NS);
            let from = sched::now_ns();
            sched::spin_until(from + length_ns);
            let to = sched::now_ns();
            sched::sleep_until(to + SETTLE_NS);
            (sched::gettid(), from, to)
        });
        let one = spawn("one").spawn_scoped(s, || waiter(60, Some(&second), &first));
        let two = spawn("two").spawn_scoped(s, || waiter(5, Some(&third), &second));
        let three = spawn("three").spawn_scoped(s, || waiter(5, None, &third));
        let [one, two, three] =
            [one, two, three].map(|t| t.expect("spawn").join().expect("a waiter"));
        let victim = victim.expect("spawn").join().expect("victim");
        let (preemptor, from, to) = preemptor.expect("spawn").join().expect("preemptor");
        format!(
            "{{\"victim\":{victim},\"preemptor\":{preemptor},\"waiters\":[{one},{two},{three}],\
             \"taken\":[{from},{to}]}}"
        )
    })
}
