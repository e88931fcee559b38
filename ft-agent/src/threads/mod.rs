//! The agent's threads: one way to begin, and one way to end.
//!
//! Collection, conversion, analyses behind a recording and the probes of clocks are threads with a name (`ft-…`, which
//! `top -H` and `perf` show), fed by a channel, and each ends when that hangs up. They have no runtime; the main thread has
//! one ([`control`](crate::control)). What each may wait for, and for whom nobody waits, is in ARCHITECTURE.md under
//! *Concurrency*.

mod background;
mod urgent;

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle};

pub(crate) use background::{Background, LOWEST};
pub(crate) use urgent::raise;

/// Does `work` in a thread of this name (15 bytes at most, prctl(2)).
///
/// # Errors
///
/// When no thread can be made.
pub fn spawn<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work)
}

/// Waits for what its work returns.
///
/// # Panics
///
/// If the work has.
pub(crate) fn finish<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
