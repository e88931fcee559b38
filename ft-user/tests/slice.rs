//! Mutexes that ask for time-slice extensions tell at their release what the running kernel made of it.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::Memory;
use ft_user::Config;
use ft_user::layout::Slice;
use ft_user::sync::{Condvar, Mutex};

static BOOK: Mutex<u32> = Mutex::named("book", 0).with_slice_extension();
static JOURNAL: Mutex<u32> = Mutex::named("journal", 0).with_slice_extension();
static PLAIN: Mutex<u32> = Mutex::named("plain", 0);
static NEVER: Condvar = Condvar::new();

/// Whether this thread's requests are heeded (include/uapi/linux/prctl.h).
fn enabled() -> bool {
    const PR_RSEQ_SLICE_EXTENSION: libc::c_int = 79;
    const PR_RSEQ_SLICE_EXTENSION_GET: libc::c_ulong = 1;
    // SAFETY: a call of numbers alone.
    unsafe { libc::prctl(PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_GET, 0, 0, 0) == 1 }
}

/// The tests read all events of the process.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Pins the calling thread to the first CPU that it may use.
fn pin() {
    // SAFETY: a set of CPUs is numbers, and the calls know its size.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&cpus), &mut cpus), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &cpus));
        libc::CPU_ZERO(&mut cpus);
        libc::CPU_SET(first.unwrap(), &mut cpus);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&cpus), &cpus), 0);
    }
}

/// What came of holds that last so many turns of a loop, beside another thread that always wants the CPU: until one ends as
/// `wanted`, or none can, or many have ended otherwise.
fn outcomes(turns: u32, most: usize, wanted: Slice) -> Vec<u64> {
    let last = [wanted, Slice::Impossible].map(|outcome| outcome as u64);
    let is_over = AtomicBool::new(false);
    let hold = || {
        pin();
        // SAFETY: the call cannot fail.
        let tid = unsafe { libc::gettid() } as u32;
        let mut memory = Memory::own();
        memory.take();
        let mut found = Vec::new();
        while found.len() < most && !found.iter().any(|outcome| last.contains(outcome)) {
            for _ in 0..100 {
                let _book = BOOK.lock().unwrap();
                (0..turns).for_each(|_| spin_loop());
            }
            let events = memory.take().into_iter();
            let releases = events.filter(|e| e.tid == tid && e.name == "lock.mutex_release");
            found.extend(releases.map(|event| event.words[2]));
        }
        // As this thread was told when it took its first mutex.
        assert_eq!(found.contains(&(Slice::Impossible as u64)), !enabled(), "{found:?}");
        found
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            pin();
            while !is_over.load(Relaxed) {
                spin_loop();
            }
        });
        let found = scope.spawn(hold).join();
        is_over.store(true, Relaxed);
        found.unwrap()
    })
}

#[test]
fn who_is_interrupted_is_granted_time_and_who_takes_too_long_loses_it() {
    let _alone = ONE_AT_A_TIME.lock();
    common::start(Config::default());
    assert!(ft_user::enable("lock.*") > 0);
    // An extension lasts 5 to 50 µs.
    for (turns, most, wanted) in [(100, 100_000, Slice::Granted), (100_000, 1000, Slice::Over)] {
        let found = outcomes(turns, most, wanted);
        let count = |outcome: Slice| found.iter().filter(|&&o| o == outcome as u64).count();
        let [impossible, pending, granted, over] =
            [Slice::Impossible, Slice::Pending, Slice::Granted, Slice::Over].map(count);
        assert_eq!(impossible + pending + granted + over, found.len(), "{found:?}");
        if impossible > 0 {
            assert_eq!(
                impossible,
                found.len(),
                "what cannot be asked for does not come: {found:?}"
            );
            continue;
        }
        println!("{turns} turns: {granted} granted, {over} over, {pending} pending");
        assert!(count(wanted) > 0, "{turns} turns: none of {} was {wanted:?}", found.len());
    }
    ft_user::disable("lock.*");
}

#[test]
fn each_release_tells_what_the_kernel_made_of_the_request() {
    let _alone = ONE_AT_A_TIME.lock();
    common::start(Config::default());
    assert!(ft_user::enable("lock.*") > 0);
    let mut memory = Memory::own();
    memory.take();
    {
        let mut book = BOOK.lock().unwrap();
        let journal = JOURNAL.lock().unwrap();
        let limit = std::time::Duration::from_millis(1);
        let (journal, _) = NEVER.wait_timeout(journal, limit).unwrap();
        *book += *journal;
    }
    let events = memory.take();
    ft_user::disable("lock.*");
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    let expected = [
        "mutex_acquire",
        "mutex_acquire",
        "cond_wait",
        "cond_wake",
        "mutex_release",
        "mutex_release",
    ];
    assert_eq!(names, expected.map(|name| format!("lock.{name}")));
    let told: Vec<u64> = events[4..].iter().map(|event| event.words[2]).collect();
    match enabled() {
        // The outer hold has slept: the kernel has taken its request back, and nobody has asked again.
        true => assert_eq!(told, [Slice::Over as u64; 2]),
        false => assert_eq!(told, [Slice::Impossible as u64; 2]),
    }
}

/// That one mutex of a program asks changes no other one.
#[test]
fn a_mutex_that_was_not_made_for_it_asks_for_nothing() {
    let _alone = ONE_AT_A_TIME.lock();
    common::start(Config::default());
    assert!(ft_user::enable("lock.*") > 0);
    // A thread that has taken no other mutex.
    let asked = thread::spawn(|| {
        let mut memory = Memory::own();
        memory.take();
        drop(PLAIN.lock().unwrap());
        (memory.take(), enabled())
    });
    let (events, asked) = asked.join().unwrap();
    ft_user::disable("lock.*");
    assert!(!asked, "its thread has not made the system call");
    let arguments: Vec<_> = events.iter().map(|e| (e.name.as_str(), e.words.len())).collect();
    assert_eq!(arguments, [("lock.mutex_acquire", 2), ("lock.mutex_release", 2)]);
}
