//! Events inside of signal handlers: none is lost or torn, and the program sees nothing of them.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::*;
use std::thread;

use common::{Memory, tid};
use ft_user::Config;

/// Events that handlers have written.
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    let n = HANDLED.fetch_add(1, Relaxed);
    ft_user::event!("signal.inner", n: u64, inverse: u64 = !n, third: u64 = n ^ 7);
}

fn install(signal: libc::c_int) {
    // SAFETY: the handler only counts and writes an event.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0);
    }
}

#[test]
fn handlers_write_events() {
    common::start(Config { ring_slots: 1 << 20, rings: 8, ..Config::default() });
    ft_user::enable("signal.*");
    let mut memory = Memory::own();
    install(libc::SIGUSR1);
    install(libc::SIGUSR2);

    // The first event of a thread comes from a handler: it claims the ring, and `errno` stays.
    let owner = thread::spawn(|| {
        // SAFETY: `errno` is this thread's; the signal has a handler.
        unsafe {
            *libc::__errno_location() = 77;
            libc::raise(libc::SIGUSR1);
            assert_eq!(*libc::__errno_location(), 77);
        }
        tid()
    })
    .join()
    .unwrap();
    let events = memory.take();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].tid, events[0].shared), (owner, false));

    // One thread writes; others shoot at it, so that handlers nest.
    let before = HANDLED.load(Relaxed);
    const OUTER: u64 = 20_000;
    // SAFETY: takes no argument.
    let target = unsafe { libc::pthread_self() };
    let shoot = |signal| {
        move || {
            for _ in 0..2_000 {
                // SAFETY: the target outlives this thread.
                unsafe { libc::pthread_kill(target, signal) };
                thread::yield_now();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(shoot(libc::SIGUSR1));
        scope.spawn(shoot(libc::SIGUSR2));
        for n in 0..OUTER {
            ft_user::event!("signal.outer", n: u64, inverse: u64 = !n, third: u64 = n ^ 7);
        }
    });
    let inner = HANDLED.load(Relaxed) - before;
    assert!(inner > 0);
    let events = memory.take();
    assert!(events.iter().all(|e| e.words[1] == !e.words[0] && e.words[2] == e.words[0] ^ 7));
    let count = |name| events.iter().filter(|event| event.name == name).count() as u64;
    assert_eq!((count("signal.outer"), count("signal.inner")), (OUTER, inner));
    assert!(events.iter().all(|event| event.tid == tid()));
}
