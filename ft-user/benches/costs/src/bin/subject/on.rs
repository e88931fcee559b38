//! An event that is on, with warm caches, in a process whose rings the agent drains. Nanoseconds.

use std::hint::black_box;
use std::sync::Barrier;

use ft_costs::cycles::{Loop, Plan, begin, end, net, per_ns, rdtsc};
use ft_costs::{cpu, fewer, hold, latency, median, tell};
use ft_user::event;

latency!(base, |x, i| hold!(i));
latency!(tsc, |x, i| black_box(rdtsc()));
latency!(two, |x, i| event!("costs.on_two", x: u64, i: u64));
latency!(six, |x, i| event!(
    "costs.on_six", x: u64, i: u64, a: u64 = x + 1, b: u64 = x ^ 2, c: u64 = i + 3, d: u64 = i ^ x
));
latency!(text, |x, i| event!("costs.on_text", i: u64, t: &str = "sixteen letters!"));

/// Tells `rdtsc`, `two`, `six` and `text` (a word and 16 bytes).
pub(crate) fn one_thread() {
    cpu::pin(cpu::measured());
    let per_ns = per_ns();
    let plan = Plan { batches: fewer(31, 4), ..Plan::ON };
    let subjects: [(&str, Loop); 4] = [("rdtsc", tsc), ("two", two), ("six", six), ("text", text)];
    for (name, subject) in subjects {
        tell(name, net(base, subject, plan) / per_ns);
    }
}

/// Tells `alone` and `together`: an event of a thread on the measured CPU while the other CPU is idle,
/// and while a thread there does the same, gross of the loop.
pub(crate) fn two_threads() {
    let per_ns = per_ns();
    let started = Barrier::new(2);
    let (warm_up, rounds) = (20, fewer(61, 8));
    let batch = || {
        let start = begin();
        black_box(two(Plan::ON.passes, black_box(1)));
        (end() - start) as f64 / Plan::ON.passes as f64 / per_ns
    };
    let rest = || std::thread::sleep(Plan::ON.rest);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cpu::pin(0);
            ft_user::thread_init();
            for _ in 0..warm_up + rounds {
                started.wait();
                batch();
            }
        });
        cpu::pin(cpu::measured());
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for round in 0..warm_up + rounds {
            let one = batch();
            rest();
            started.wait();
            let both = batch();
            rest();
            if round >= warm_up {
                alone.push(one);
                together.push(both);
            }
        }
        tell("alone", median(alone));
        tell("together", median(together));
    });
}
