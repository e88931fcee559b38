//! What an event costs beside a system call and a buffered write (the paper's Table 1).

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Clock, Reading, tsc};
use crate::{Error, stats};

/// Cycles of the time stamp counter that one call takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Costs {
    /// Cycles of the counter in a second.
    pub(super) tsc_hz: f64,
    /// Begin and end of a traced function, beyond those of one that has no events. While nobody records, what it costs off.
    pub(super) function: f64,
    pub(super) getpid: f64,
    pub(super) printf: f64,
}

/// Calls of one reading.
const CALLS: usize = 500;

/// A reader has room for all, and time for them in between.
const PAUSE: Duration = Duration::from_micros(300);

#[inline(never)]
#[ft_user::function("costs::traced")]
fn traced(n: usize) -> usize {
    black_box(n)
}

#[inline(never)]
fn untraced(n: usize) -> usize {
    black_box(n)
}

/// Takes them, each that often.
///
/// # Errors
///
/// When `/dev/null` cannot be written.
pub(super) fn run(goes: usize) -> Result<Costs, Error> {
    ft_user::thread_init();
    let from = Reading::now();
    // SAFETY: two strings that end in a zero.
    let file = unsafe { libc::fopen(c"/dev/null".as_ptr(), c"w".as_ptr()) };
    if file.is_null() {
        return Err(Error::refused("/dev/null cannot be written; see `ls -l /dev/null`"));
    }
    let function = median(goes, |n| {
        traced(n);
    });
    let plain = median(goes, |n| {
        untraced(n);
    });
    let getpid = median(goes, |_| {
        // SAFETY: takes no pointer.
        unsafe { libc::syscall(libc::SYS_getpid) };
    });
    let printf = median(goes, |_| {
        // SAFETY: a file that is open, and a string without anything to be formatted.
        unsafe { libc::fprintf(file, c"test".as_ptr()) };
    });
    // SAFETY: it is open, and not used again.
    unsafe { libc::fclose(file) };
    let tsc_hz = Clock::between(from, Reading::now()).hz();
    Ok(Costs { tsc_hz, function: function - plain, getpid, printf })
}

/// Cycles of a call, in the middle of all goes.
fn median(goes: usize, call: impl Fn(usize)) -> f64 {
    let mut cycles: Vec<u64> = (0..goes.max(1))
        .map(|_| {
            thread::sleep(PAUSE);
            let begin = tsc();
            (0..CALLS).for_each(&call);
            tsc() - begin
        })
        .collect();
    cycles.sort_unstable();
    stats::percentile(&cycles, 50.0).unwrap_or(0) as f64 / CALLS as f64
}
