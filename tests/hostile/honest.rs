//! The program that is recorded while others attack: two threads that number their events and holds.

use std::path::Path;
use std::thread;
use std::time::Duration;

use ft_user::sync::Mutex;

/// First argument of the program.
pub(crate) const ROLE: &str = "honest";

/// Threads that record.
const THREADS: u64 = 2;

/// Steps between two pauses.
const BURST: u64 = 8;

/// Bursts after the attack has begun, of a millisecond or more each.
const BURSTS_ATTACKED: u64 = 1_000;

/// Records until some time after the file `enough` is there, and prints what it did: a line for each thread,
/// its number, its steps. In each step are one event and one hold of one lock.
pub(crate) fn run(enough: &Path) {
    ft_user::init().expect("the tracer starts");
    // Not left to the agent alone: when it is kept busy its answer comes after half a second, and then programs do not
    // wait for it any more. What is in the rings by then is recorded.
    ft_user::enable("*");
    thread::scope(|scope| {
        // The first thread of the process is one of them.
        (1..THREADS).for_each(|_| drop(scope.spawn(|| steps(enough))));
        steps(enough);
    });
}

fn steps(enough: &Path) {
    // A lock of its own: every hold is short, and its thread alone ends it.
    let lock = Mutex::named("ledger", 0u64);
    let (mut step, mut left) = (0u64, BURSTS_ATTACKED);
    while left > 0 {
        for _ in 0..BURST {
            step += 1;
            ft_user::event!("honest.step", number: u64 = step);
            *lock.lock().expect("no thread panics") += 1;
        }
        left -= u64::from(enough.exists());
        thread::sleep(Duration::from_millis(1));
    }
    println!("honest {} {step}", rustix::thread::gettid().as_raw_nonzero());
}
