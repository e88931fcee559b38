//! Records numbered events until it is killed (or `limit` is reached), and publishes the number of the
//! newest committed one in a shared file mapping, which outlives it.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Runs; `path` is a file of at least eight bytes.
pub(crate) fn run(path: &str, limit: u64) -> String {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("progress file");
    // SAFETY: a fresh shared mapping of a file of at least eight bytes; it stays mapped for good.
    let progress = unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            8,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(at, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        &*at.cast::<AtomicU64>()
    };
    let mut number = 0u64;
    while number < limit {
        number += 1;
        ft_user::event!("endless.step", number: u64, check: u64 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        progress.store(number, Ordering::Release);
        if number.is_multiple_of(64) {
            // Slow enough for any disk: about two million events a second at most.
            for _ in 0..2_000 {
                std::hint::spin_loop();
            }
        }
    }
    format!("{{\"number\":{number}}}")
}

/// Records `limit` numbered events, as fast as it can.
pub(crate) fn flood(limit: u64) -> String {
    write(limit);
    format!("{{\"number\":{limit}}}")
}

/// The same; nobody reads them meanwhile.
pub(crate) fn unread(limit: u64) -> String {
    while_unread(|| write(limit));
    format!("{{\"number\":{limit}}}")
}

/// Writes something; who reads that, the parent, stands still meanwhile, or until the writer sleeps, as it may when its ring is full.
pub(crate) fn while_unread<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: plain system calls; the parent goes on below, whatever happens here but a death by a signal.
    let (reader, writer) = unsafe { (libc::getppid(), libc::gettid()) };
    let is_over = &AtomicBool::new(false);
    let signal = |number| {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(reader, number) }, 0, "{}", std::io::Error::last_os_error());
    };
    signal(libc::SIGSTOP);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(Ordering::Acquire) && !is_asleep(writer) {
                std::thread::yield_now();
            }
            signal(libc::SIGCONT);
        });
        let done = work();
        is_over.store(true, Ordering::Release);
        done
    })
}

/// Whether a thread of this process sleeps: the third field of its `stat` (proc_pid_stat(5)).
fn is_asleep(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("it is there");
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

fn write(limit: u64) {
    for number in 1..=limit {
        ft_user::event!("endless.step", number: u64, check: u64 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}
