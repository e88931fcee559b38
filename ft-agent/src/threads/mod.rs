//! The agent's threads: one way to begin, and one way to end.
//!
//! Collection, conversion, analyses behind a recording and the probes of clocks are threads with a name (`ft-…`, which
//! `top -H` and `perf` show), fed by a channel, and each ends when that hangs up. They have no runtime; the main thread has
//! one ([`control`](crate::control)). The thread that needs a result joins the other one (`finish`), which hands on a panic.
//!
//! | thread | does | is fed by | waits for |
//! |---|---|---|---|
//! | main | the control plane: registrations, control socket, signals, the command, timers, progress, keys of `top` | the kernel, channels | those, in one `epoll` |
//! | `ft-collect` | copies rings and the kernel's records to the spool | instructions, arrivals | the disk, and its own pauses |
//! | `ft-look` … | the runtime's blocking threads: looks at processes (16 at most, 8 for one user), starting the command, joining threads | a queue in which users take turns | as long as the process makes it wait: no thread waits for it |
//! | `ft-convert` | converts while the recording goes on | closed segments | the disk, and a CPU that has nothing else to do |
//! | `ft-convert` | makes a trigger's snapshot | orders | the disk, at the lowest priority |
//! | `ft-flight` | keeps the window of the flight recorder | closed segments | nothing that takes long |
//! | `ft-watch` | looks for what triggers ask for, and tells the control plane | segments | the disk, at a low priority |
//! | `ft-snapshot` | makes a snapshot that somebody waits for, and answers | orders | the disk |
//! | `ft-ask` | looks at a process before the recording, and for names (`ft_trace::look`) | | as long as the process makes it; left behind after 2 s |
//! | `ft-probe` | visits every CPU, before the recording | | a CPU; left behind after 0.1 s |
//! | `ft-build-id` | reads the build id of the program, before the recording | | its file; left behind after 2 s |
//! | `ft-stderr` | writes what is said and drawn while a recording runs | messages | stderr, which may be a terminal that was stopped |
//! | `ft-unprobe` … | holds the probes of one file, in a table of descriptors of its own | | the end of the recording; then, while calls of probed functions end, 0.1 s at most |
//!
//! `ft-collect` waits for nobody. It takes by `try_recv`, and a [`Bell`] ends its pause. What it gives goes into queues that
//! cannot make it wait: segments, of which there are few, because each is on the disk by then; notices, which are only counted once
//! 1024 are unread; looks, which are refused beyond a user's share. Two queues are no channels (`collect/arrivals.rs`,
//! `control/looks.rs`), because users take turns in them, which a channel cannot.
//!
//! The control plane has the priority of the collecting thread while it records, since programs wait for their registration. Threads
//! that it starts, and the command, have the priority with which the agent was started.

mod background;
mod bell;
mod urgent;

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle};

pub(crate) use background::{Background, LOWEST, Leaves};
pub use bell::Bell;
pub(crate) use bell::Pause;
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
