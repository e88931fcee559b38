//! Records numbered events until it is killed (or `limit` is reached), and publishes the number of the
//! newest committed one in a shared file mapping, which outlives it.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

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
    for number in 1..=limit {
        ft_user::event!("endless.step", number: u64, check: u64 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    format!("{{\"number\":{limit}}}")
}
