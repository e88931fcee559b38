//! The control plane: one current-thread runtime of tokio on the main thread.
//!
//! It runs what waits for events from outside: registrations (a task for each connection), signals, the recorded command,
//! timers, the progress line, triggers, the control socket, and the keys of `top`. What can block runs elsewhere:
//! - a look at a process on the runtime's blocking threads, with permits per user ([`looks`]);
//! - collection, conversion and the probes of clocks in threads of their own, without a runtime
//!   ([`threads`](crate::threads)).
//!
//! The collecting thread sends to this plane and never waits for it.

pub(crate) mod looks;
pub mod registration;
mod signals;
pub mod socket;

mod client;

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Builder;

pub use client::{ControlError, Recorder, is_recorded};
pub use signals::{ENDING, Signals};

/// Blocking threads at most: those of the looks, and a few for what a command leaves behind and for waiting for threads.
const BLOCKING_THREADS: usize = looks::PERMITS + 8;

/// Runs `work` on this thread until it ends. What still blocks then is left behind and ends with the process.
///
/// # Errors
///
/// When the kernel gives no descriptors for a runtime.
///
/// # Panics
///
/// Within another asynchronous runtime.
pub fn run<T>(work: impl Future<Output = T>) -> io::Result<T> {
    run_with(BLOCKING_THREADS, work)
}

/// The same with so many blocking threads at most.
fn run_with<T>(threads: usize, work: impl Future<Output = T>) -> io::Result<T> {
    // A thread inherits the priority of the thread that starts it, and this one is raised while it records.
    let own = rustix::process::getpriority_process(None).unwrap_or(0);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(threads)
        .thread_name("ft-look")
        .on_thread_start(move || {
            // To be lowered is allowed to everybody.
            let _ = rustix::process::setpriority_process(None, own);
        })
        .build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(result)
}

/// A descriptor that the runtime watches for something to read, or for its end.
///
/// # Errors
///
/// When the kernel cannot watch it.
pub fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` keeps its number until it is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    watched.map_err(|error| error.into_parts().1)
}

/// A runtime for tests of what needs blocking threads.
#[cfg(test)]
pub(crate) fn handle() -> tokio::runtime::Handle {
    use std::sync::LazyLock;
    static RUNTIME: LazyLock<tokio::runtime::Runtime> =
        LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));
    RUNTIME.handle().clone()
}
