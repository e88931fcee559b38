//! Mutexes that ask for time-slice extensions tell at their release what the running kernel made of it.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(feature = "off")))]

mod common;

use common::Memory;
use ft_user::Config;
use ft_user::layout::Slice;
use ft_user::sync::{Condvar, Mutex};

static BOOK: Mutex<u32> = Mutex::named("book", 0);
static JOURNAL: Mutex<u32> = Mutex::named("journal", 0);
static NEVER: Condvar = Condvar::new();

/// Whether this thread's requests are heeded (include/uapi/linux/prctl.h).
fn enabled() -> bool {
    const PR_RSEQ_SLICE_EXTENSION: libc::c_int = 79;
    const PR_RSEQ_SLICE_EXTENSION_GET: libc::c_ulong = 1;
    // SAFETY: a call of numbers alone.
    unsafe { libc::prctl(PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_GET, 0, 0, 0) == 1 }
}

#[test]
fn each_release_tells_what_the_kernel_made_of_the_request() {
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
