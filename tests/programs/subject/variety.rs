//! A little of everything that an application can record and the other scenarios leave out: arguments of every
//! type, scopes, locks in both orders, attempts, waits that time out, threads that end with a lock or without a ring,
//! and a thread that polls on a CPU that it has to share.

use std::num::NonZero;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

use ft_user::gap::Poller;
use ft_user::sync::{Condvar, Mutex, RwLock};
use ft_user::{event, scope as scoped};

use crate::{endless, sched};

static GATE: Mutex<()> = Mutex::named("gate", ());
static ONE: Mutex<()> = Mutex::named("one", ());
static OTHER: Mutex<()> = Mutex::named("other", ());
static LEFT: Mutex<()> = Mutex::named("left", ());
static RIGHT: Mutex<()> = Mutex::named("right", ());
static KEPT: Mutex<()> = Mutex::named("kept", ());
static POISONED: Mutex<()> = Mutex::named("poisoned", ());
static NAMELESS: Mutex<()> = Mutex::new(());
static TABLE: RwLock<u64> = RwLock::named("table", 0);
static NEVER: Condvar = Condvar::new();

/// How long the polling thread polls, ns.
const POLL_NS: i64 = 12_000_000;

/// Runs it all; two threads take a lock so often, as fast as they can, which is too fast for small rings.
pub(crate) fn run(turns: u64) -> String {
    (0..2).for_each(arguments);
    scopes();
    orders();
    attempts();
    endings();
    poll();
    burst(turns);
    format!("{{\"turns\":{turns}}}")
}

/// The same, behind holds of the main thread that nobody reads meanwhile: most of them have no room in a small ring.
pub(crate) fn unread(turns: u64) -> String {
    endless::while_unread(|| (0..turns).for_each(hold));
    run(turns)
}

fn arguments(round: u8) {
    event!("variety.nothing");
    event!(
        "variety.integers", least: i64 = i64::MIN, most: u64 = u64::MAX, byte: u8 = 255, small: i8 = -1,
        letter: char = 'ß', none: Option<NonZero<u32>> = None; "{least} to {most}, {letter}"
    );
    event!(
        "variety.others", yes: bool = true, no: bool = false, half: f64 = 0.5 + f64::from(round), single: f32 = -1.5 * f32::from(round),
        time: Duration = Duration::from_millis(3),
        nan: f64 = if round == 0 { f64::NAN } else { f64::INFINITY }
    );
    for text in ["", "plain", "tab\tand\nline", "ein Wort: Größe", "\u{1b}[31m"] {
        event!("variety.text", text: &str; "says {text}");
    }
    let long = "0123456789".repeat(40 - usize::from(round));
    event!("variety.long", first: &str = &long, number: u32 = 7, second: &str = &long);
    event!("variety.bytes", bytes: &[u8] = &[0, 255, b'a'], at: *const u8 = std::ptr::null());
}

fn scopes() {
    for round in 0..3u32 {
        let _outer = scoped!("variety.outer", round: u32; "round {round}");
        for _ in 0..round {
            let _inner = scoped!("variety.inner");
            sleep(Duration::from_micros(200));
        }
    }
    // One that never ends, and one that is ended by its thread.
    std::mem::forget(scoped!("variety.endless"));
    scope(|s| {
        s.spawn(|| {
            let _own = scoped!("variety.of_a_thread");
            let _held = ONE.lock();
            sleep(Duration::from_micros(300));
        });
    });
}

/// Two pairs of locks in both orders, one of them always behind a gate; nobody else is there meanwhile.
fn orders() {
    let gate = GATE.lock();
    drop((ONE.lock(), OTHER.lock()));
    drop((OTHER.lock(), ONE.lock()));
    drop(gate);
    drop((LEFT.lock(), RIGHT.lock()));
    drop((RIGHT.lock(), LEFT.lock()));
    // Readers, one inside of the other.
    drop((TABLE.read(), ONE.lock(), TABLE.read()));
}

fn attempts() {
    let both = Barrier::new(2);
    scope(|s| {
        s.spawn(|| {
            let held = (ONE.lock(), TABLE.write());
            both.wait();
            both.wait();
            drop(held);
        });
        both.wait();
        assert!(ONE.try_lock().is_err() && TABLE.try_read().is_err() && TABLE.try_write().is_err());
        both.wait();
        // Whatever comes first: a wait, or none.
        drop(ONE.lock());
    });
    assert!(ONE.try_lock().is_ok() && TABLE.try_read().is_ok() && TABLE.try_write().is_ok());
    let guard = ONE.lock().expect("not poisoned");
    let (guard, result) =
        NEVER.wait_timeout(guard, Duration::from_millis(1)).expect("not poisoned");
    assert!(result.timed_out());
    drop(guard);
    drop(NAMELESS.lock());
}

fn endings() {
    scope(|s| {
        Builder::new()
            .name("keeper".into())
            .spawn_scoped(s, || std::mem::forget(KEPT.lock()))
            .expect("spawn");
    });
    assert!(KEPT.try_lock().is_err());
    let panics = Builder::new().name("panics".into()).spawn(|| {
        let _held = POISONED.lock();
        // Without the message of a panic.
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(panics.expect("spawn").join().is_err() && POISONED.is_poisoned());
    // Threads at once, of which some find no ring where there are few.
    let all = Barrier::new(4);
    scope(|s| {
        for number in 0..4u32 {
            let all = &all;
            let work = move || {
                all.wait();
                for turn in 0..5u32 {
                    event!("variety.turn", number: u32, turn: u32);
                    let _held = (GATE.lock(), TABLE.read());
                    sched::spin_until(sched::now_ns() + 20_000);
                }
                all.wait();
            };
            Builder::new().name(format!("turn-{number}")).spawn_scoped(s, work).expect("spawn");
        }
    });
}

fn poll() {
    let over = AtomicBool::new(false);
    scope(|s| {
        let burn = || {
            sched::pin(sched::stage());
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        Builder::new().name("burner".into()).spawn_scoped(s, burn).expect("spawn");
        let poll = || {
            sched::pin(sched::stage());
            let (mut poller, end) =
                (Poller::new(Duration::from_micros(5)), sched::now_ns() + POLL_NS);
            while sched::now_ns() < end {
                poller.poll();
            }
            // In a hole that it makes itself.
            sleep(Duration::from_millis(1));
            poller.poll();
            over.store(true, Relaxed);
        };
        Builder::new().name("poller".into()).spawn_scoped(s, poll).expect("spawn");
    });
}

fn hold(turn: u64) {
    let _held = (LEFT.lock(), TABLE.read());
    event!("variety.burst", turn: u64);
}

fn burst(turns: u64) {
    scope(|s| {
        for name in ["burst-0", "burst-1"] {
            let work = move || {
                for turn in 0..2 * turns {
                    if turn == turns {
                        // What was lost is told before what comes now.
                        sleep(Duration::from_millis(2));
                    }
                    hold(turn);
                }
            };
            Builder::new().name(name.into()).spawn_scoped(s, work).expect("spawn");
        }
    });
}
