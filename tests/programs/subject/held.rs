//! What happens to a thread while it holds a lock: it sleeps, a signal interrupts it, it is moved to another CPU.
//! Its own readings of the clock, just inside and just outside, tell how long.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::thread;

use ft_user::sync::Mutex;
use serde_json::json;

use crate::sched::{self, now_ns};

static HELD: Mutex<()> = Mutex::named("held", ());
static IN_HANDLER: Mutex<()> = Mutex::named("in-handler", ());

/// How long the handler holds its lock.
const HANDLER_NS: i64 = 300_000;

/// Runs a round over and over on one real-time thread; prints the thread and what each round tells.
fn repeat<const N: usize>(rounds: u64, round: impl Fn() -> [i64; N] + Sync) -> String {
    thread::scope(|s| {
        let holder = sched::on_stage(s, "ft-holder", 20, || {
            let told: Vec<Vec<i64>> = (0..rounds)
                .map(|_| {
                    // Everything else on this CPU must have its share too.
                    sched::sleep_until(now_ns() + 500_000);
                    round().into()
                })
                .collect();
            (sched::gettid(), told)
        });
        let (tid, told) = holder.join().expect("holder");
        json!({ "tid": tid, "rounds": told }).to_string()
    })
}

/// Sleeps for a millisecond inside of the hold: before and after the sleep.
pub(crate) fn sleep(rounds: u64) -> String {
    repeat(rounds, || {
        let _held = HELD.lock().expect("not poisoned");
        let before = now_ns();
        sched::sleep_until(before + 1_000_000);
        [before, now_ns()]
    })
}

/// Before and after the acquisition in the handler, before and after the release.
static HANDLED: [AtomicI64; 4] = [const { AtomicI64::new(0) }; 4];

extern "C" fn handler(_: libc::c_int) {
    let mut stamps = [now_ns(); 4];
    let held = IN_HANDLER.try_lock().expect("nobody else takes it");
    stamps[1] = now_ns();
    sched::spin_until(stamps[1] + HANDLER_NS);
    stamps[2] = now_ns();
    drop(held);
    stamps[3] = now_ns();
    HANDLED.iter().zip(stamps).for_each(|(handled, stamp)| handled.store(stamp, Relaxed));
}

/// A timer's signal interrupts the hold, and its handler holds another lock: the four readings of
/// [`HANDLED`], and before and after the outer acquisition and release.
pub(crate) fn signal(rounds: u64) -> String {
    repeat(rounds, || {
        let timer = Timer::new();
        let mut stamps = [now_ns(); 4];
        let held = HELD.lock().expect("not poisoned");
        stamps[1] = now_ns();
        timer.fire_in(200_000);
        sched::spin_until(stamps[1] + 200_000 + HANDLER_NS + 200_000);
        stamps[2] = now_ns();
        drop(held);
        stamps[3] = now_ns();
        let [a, b, c, d] = [0, 1, 2, 3].map(|i: usize| HANDLED[i].load(Relaxed));
        [a, b, c, d, stamps[0], stamps[1], stamps[2], stamps[3]]
    })
}

/// A timer that sends SIGUSR1 to the thread that made it.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> Timer {
        let mut timer = std::ptr::null_mut();
        // SAFETY: all structures are plain data, valid when zeroed, and outlive the calls; the handler reads
        // the clock, stores atomics and takes a lock that nobody else takes.
        let status = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR1;
            event.sigev_notify_thread_id = sched::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer)
        };
        assert_eq!(status, 0, "timer_create: {}", std::io::Error::last_os_error());
        Timer(timer)
    }

    fn fire_in(&self, ns: i64) {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: 0, tv_nsec: ns };
        let time = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: the timer exists; `time` outlives the call.
        let status = unsafe { libc::timer_settime(self.0, 0, &time, std::ptr::null_mut()) };
        assert_eq!(status, 0, "timer_settime: {}", std::io::Error::last_os_error());
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and is not used again.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Moves to CPU 0 and back inside of the hold: before and after each move, and for how long the thread did
/// not run between the moves, at most.
pub(crate) fn migrate(rounds: u64) -> String {
    // A thread that is bound to one CPU is told that there is no other.
    let stage = sched::stage();
    repeat(rounds, || {
        let _held = HELD.lock().expect("not poisoned");
        let spin = || sched::spin_until(now_ns() + 100_000);
        let go = |cpu| {
            let before = now_ns();
            sched::pin(cpu);
            [before, now_ns()]
        };
        let mut lost = spin();
        let [before, there] = go(0);
        lost += spin();
        let [back, after] = go(stage);
        lost += spin();
        [before, there, back, after, lost]
    })
}
