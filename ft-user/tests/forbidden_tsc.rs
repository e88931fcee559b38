//! A thread that may not read the time stamp counter (`PR_SET_TSC`) goes on without events, which are counted.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use common::{Memory, tid};
use ft_user::Config;

// linux/prctl.h
const PR_SET_TSC: i32 = 26;
const PR_TSC_ENABLE: u64 = 1;
const PR_TSC_SIGSEGV: u64 = 2;

/// What a thread that looks for a ring in vain writes before it looks again.
const PAUSE_EVENTS: u64 = 256;

fn may_read_tsc(mode: u64) {
    // SAFETY: takes no pointer, and concerns this thread.
    assert_eq!(unsafe { libc::prctl(PR_SET_TSC, mode) }, 0);
}

fn tell(n: u64) {
    ft_user::event!("tsc.tells", n: u64);
    ft_user::event!("tsc.text", text: &str = "as text", n: u64);
}

// One test: the count is that of the process.
#[test]
fn a_thread_that_may_not_read_the_counter_lives_and_its_events_are_counted() {
    common::start(Config::default());
    ft_user::enable("tsc.*");
    let mut memory = Memory::own();
    let lost = |memory: &Memory| memory.shared().0.without_tsc.load(Relaxed);

    let forbidden = || {
        may_read_tsc(PR_TSC_SIGSEGV);
        ft_user::thread_init();
        (0..500).for_each(tell);
        may_read_tsc(PR_TSC_ENABLE);
        // The first of these still count as before, until it looks for a ring again.
        (0..PAUSE_EVENTS).for_each(tell);
        tell(u64::MAX);
        tid()
    };
    let forbidden = thread::spawn(forbidden).join().unwrap();
    let free = thread::spawn(|| {
        (0..500).for_each(tell);
        tid()
    });
    let free = free.join().unwrap();

    let events = memory.take();
    let of = |tid| events.iter().filter(move |event| event.tid == tid).count() as u64;
    assert_eq!(of(free), 1000);
    let written = 2 * (500 + PAUSE_EVENTS + 1);
    assert_eq!(of(forbidden) + lost(&memory), written);
    assert!(lost(&memory) >= 1000 && of(forbidden) >= 2, "{}", lost(&memory));
    let own = events.iter().filter(|event| event.tid == forbidden);
    assert!(own.into_iter().all(|event| !event.shared), "it has a ring in the end");
}
