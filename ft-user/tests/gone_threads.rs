//! Rings of threads that end without a word, and of threads whose first event a signal handler leaves.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;

use common::{Memory, tid};
use ft_user::Config;
use ft_user::layout::ring_state;

const RINGS: u32 = 100;

fn tell(n: u64) {
    ft_user::event!("gone.tells", n: u64);
}

/// A thread that writes an event and ends as no C library ends one: no destructor runs.
extern "C" fn ends_without_a_word(_: *mut libc::c_void) -> *mut libc::c_void {
    tell(1);
    // SAFETY: ends this thread, which holds nothing.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("it has ended");
}

fn run_to_its_end(body: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void) {
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the body takes nothing; the thread is joined once.
    unsafe {
        let null = ptr::null_mut();
        assert_eq!(libc::pthread_create(thread.as_mut_ptr(), ptr::null(), body, null), 0);
        assert_eq!(libc::pthread_join(thread.assume_init(), ptr::null_mut()), 0);
    }
}

thread_local! {
    /// Where this thread begins its first event.
    static BEGIN: std::cell::UnsafeCell<MaybeUninit<libc::ucontext_t>> =
        const { std::cell::UnsafeCell::new(MaybeUninit::uninit()) };
    /// The handler leaves what it interrupts.
    static LEAVES: AtomicBool = const { AtomicBool::new(false) };
}

static LEFT: AtomicU64 = AtomicU64::new(0);

extern "C" fn leaves(_: libc::c_int) {
    if LEAVES.with(|leaves| leaves.load(Relaxed)) {
        LEFT.fetch_add(1, Relaxed);
        // SAFETY: the context was filled before it was to be left, and its function has not returned.
        unsafe { libc::setcontext(BEGIN.with(std::cell::UnsafeCell::get).cast()) };
    }
}

/// Writes the first event of its thread, from the beginning each time that it is left.
#[inline(never)]
fn first_event() {
    // SAFETY: fills the thread's own place.
    unsafe { assert_eq!(libc::getcontext(BEGIN.with(std::cell::UnsafeCell::get).cast()), 0) };
    LEAVES.with(|leaves| leaves.store(true, Relaxed));
    tell(2);
    LEAVES.with(|leaves| leaves.store(false, Relaxed));
}

#[test]
fn their_rings_are_not_lost() {
    common::start(Config { ring_slots: 1 << 12, rings: RINGS, ..Config::default() });
    ft_user::enable("gone.*");
    let mut memory = Memory::own();

    // As many as there are rings, and then one that lives.
    (0..RINGS).for_each(|_| run_to_its_end(ends_without_a_word));
    let states = |memory: &Memory| -> Vec<u32> {
        memory.rings().map(|ring| ring.state.load(Acquire)).collect()
    };
    assert_eq!(states(&memory), [ring_state::LIVE; RINGS as usize], "each had one of its own");
    // It looks at some of them each time that it looks for a ring.
    let (mut events, mut own, mut gone) = (0, false, HashSet::new());
    for _ in 0..15 {
        (0..300).for_each(tell);
        let taken = memory.take();
        events += taken.len();
        gone.extend(taken.iter().map(|event| event.tid));
        own |= taken.iter().any(|event| event.tid == tid() && !event.shared);
    }
    assert!(own, "it has found a ring");
    assert_eq!(events, RINGS as usize + 15 * 300, "and no event is lost");
    assert_eq!(gone.len(), RINGS as usize + 1, "each is told of the thread that wrote it");

    // Threads whose first event is left again and again.
    // SAFETY: the handler leaves only where that is asked for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = leaves as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()), 0);
    }
    for _ in 0..20 {
        let (target, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let one = thread::scope(|scope| {
            let one = scope.spawn(|| {
                // SAFETY: takes no argument.
                target.store(unsafe { libc::pthread_self() }, Release);
                first_event();
                while !done.load(Acquire) {
                    thread::yield_now();
                }
                tell(3);
                tid()
            });
            while target.load(Acquire) == 0 {
                std::hint::spin_loop();
            }
            for _ in 0..20 {
                // SAFETY: the thread waits until this is over.
                unsafe { libc::pthread_kill(target.load(Relaxed), libc::SIGUSR1) };
                thread::yield_now();
            }
            done.store(true, Release);
            one.join().unwrap()
        });
        // Behind one that was left when it had its place, too.
        let events = memory.take_last();
        let last = events.iter().find(|event| event.words[0] == 3).expect("its last event");
        assert_eq!((last.tid, last.shared), (one, false), "it has a ring");
    }
    println!("{} first events were left", LEFT.load(Relaxed));
}
