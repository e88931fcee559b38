//! After `thread_init` no event finds a page of its thread's ring missing.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::thread;

use ft_user::Config;

/// One slot each: 78 pages of a ring.
const EVENTS: u64 = 10_000;

/// Page faults of the calling thread that needed no disk.
fn faults() -> i64 {
    // SAFETY: zero is a value of all fields, and the call fills them in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage.ru_minflt
    }
}

/// What all events take. The first one is written before, as code and the stack are there only then.
fn faults_of_events() -> i64 {
    let tell = |n| ft_user::event!("faults.tells", n: u64);
    tell(0);
    let before = faults();
    (1..EVENTS).for_each(tell);
    faults() - before
}

#[test]
fn a_ring_that_was_made_ahead_has_all_of_its_memory() {
    common::start(Config::default());
    assert_eq!(ft_user::enable("faults.*"), 1);
    let work = || {
        ft_user::thread_init();
        faults_of_events()
    };
    let taken = thread::spawn(work).join().unwrap();
    assert!(taken < 8, "{taken} faults; without a ring made ahead there is one for each page");
}
