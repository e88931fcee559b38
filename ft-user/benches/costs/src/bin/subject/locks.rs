//! An uncontended lock and unlock. Nanoseconds net of the loop.

use std::cell::UnsafeCell;
use std::hint::black_box;

use ft_costs::cycles::{self, Loop, Plan, net};
use ft_costs::{cpu, fewer, latency, tell};

latency!(base, |x, i| x = black_box(x));
latency!(pthread_pair, |x, i| {
    // SAFETY: a static mutex, not held by this thread, then held by it.
    unsafe {
        libc::pthread_mutex_lock(MUTEX.0.get());
        x = black_box(x);
        libc::pthread_mutex_unlock(MUTEX.0.get());
    }
});
latency!(std_pair, |x, i| x ^= *black_box(&STD).lock().unwrap());
latency!(traced_pair, |x, i| x ^= *black_box(&TRACED).lock().unwrap());

struct Mutex(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex is made for several threads.
unsafe impl Sync for Mutex {}
static MUTEX: Mutex = Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static STD: std::sync::Mutex<u64> = std::sync::Mutex::new(0);
static TRACED: ft_user::sync::Mutex<u64> = ft_user::sync::Mutex::named("costs", 0);

/// Tells `pair`; the process knows nothing of what is preloaded into it.
pub(crate) fn pthread(on: bool) {
    // glibc may leave out atomic instructions while there is one thread.
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    measure(&[("pair", pthread_pair)], on);
}

/// Tells `std` and `traced`.
pub(crate) fn rust(on: bool) {
    measure(&[("std", std_pair), ("traced", traced_pair)], on);
}

fn measure(subjects: &[(&str, Loop)], on: bool) {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    let plan = if on { Plan { warm_up: 120, ..Plan::ON } } else { Plan::OFF };
    let plan = Plan { batches: fewer(plan.batches, 4), ..plan };
    for (name, subject) in subjects {
        tell(name, net(base, *subject, plan) / per_ns);
    }
}
