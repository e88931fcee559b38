//! What this program was started with and has changed for itself, which is as it was for the recorded command.
//!
//! `nohup` ignores SIGHUP, and a shell without job control SIGINT and SIGQUIT of what it puts into the background: whoever
//! ignores a signal for us means our children, too, and no handler of ours may undo it (POSIX, *signal concepts*;
//! bash(1), *SIGNALS*). Most signals we ignore nowhere, so what is ignored now was ignored then. The others are looked at before
//! Rust's runtime begins: it ignores SIGPIPE, and opens /dev/null where a standard descriptor is closed.
//!
//! Whether SIGCHLD is ignored or blocked, the agent must hear of it, and wait for its children: so both end here.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Signals that this program may ignore, or handle where they were ignored.
const CHANGED: [libc::c_int; 4] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGQUIT, libc::SIGTTOU];

/// Which of them were ignored, by bits.
static IGNORED: AtomicU64 = AtomicU64::new(0);

static CHILD_BLOCKED: AtomicBool = AtomicBool::new(false);

/// Which of the descriptors 0 to 2 were closed, by bits.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Where this program was allowed to run, once it has kept itself to fewer CPUs.
static CPUS: OnceLock<CpuSet> = OnceLock::new();

/// How many descriptors this program might open, once it has changed that for itself.
static DESCRIPTORS: OnceLock<Rlimit> = OnceLock::new();

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        for signal in CHANGED {
            IGNORED.fetch_or(u64::from(is_ignored_now(signal)) << signal, Relaxed);
        }
        set(libc::SIGCHLD, libc::SIG_DFL);
        CHILD_BLOCKED.store(block_child(libc::SIG_UNBLOCK), Relaxed);
        for descriptor in 0..=2 {
            // SAFETY: it asks for flags.
            let is_closed = unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0;
            CLOSED.fetch_or(u64::from(is_closed) << descriptor, Relaxed);
        }
    }
    look
};

/// Whether the signal was ignored when this program was executed.
pub fn is_ignored(signal: libc::c_int) -> bool {
    match CHANGED.contains(&signal) {
        true => IGNORED.load(Relaxed) >> signal & 1 == 1,
        false => is_ignored_now(signal),
    }
}

/// Ignores a signal of [`CHANGED`].
pub(crate) fn ignore(signal: libc::c_int) {
    set(signal, libc::SIG_IGN);
}

/// Ends that.
pub(crate) fn restore(signal: libc::c_int) {
    set(signal, if is_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL });
}

/// Makes all as it was, in a forked child that is about to execute a program: system calls alone.
///
/// # Errors
///
/// When the kernel refuses the CPUs, or the limit of descriptors.
pub(crate) fn restore_all() -> rustix::io::Result<()> {
    CHANGED.into_iter().for_each(restore);
    if CHILD_BLOCKED.load(Relaxed) {
        block_child(libc::SIG_BLOCK);
    }
    for descriptor in (0..=2).filter(|descriptor| CLOSED.load(Relaxed) >> descriptor & 1 == 1) {
        // SAFETY: what Rust's runtime has opened in its place is used by nothing between fork and exec.
        unsafe { libc::close(descriptor) };
    }
    DESCRIPTORS.get().map_or(Ok(()), |&limit| setrlimit(Resource::Nofile, limit))?;
    CPUS.get().map_or(Ok(()), |cpus| sched_setaffinity(None, cpus))
}

/// This is how many descriptors this program might open until now; the first one counts.
pub(crate) fn keep_descriptors(limit: Rlimit) {
    DESCRIPTORS.get_or_init(|| limit);
}

/// Keeps this thread, and those that it starts, to these CPUs.
///
/// # Errors
///
/// `InvalidInput` when none of them is online or allowed to this program (sched_setaffinity(2)).
pub fn keep_to(cpus: &[u32]) -> io::Result<()> {
    let before = sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    sched_setaffinity(None, &set)?;
    CPUS.get_or_init(|| before);
    Ok(())
}

/// The CPUs that this program was started with, if it has kept itself to others since.
pub(crate) fn cpus() -> Option<CpuSet> {
    CPUS.get().copied()
}

fn set(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: no function of ours.
    unsafe { libc::signal(signal, action) };
}

/// Blocks SIGCHLD of this thread, or does not; whether it was blocked.
fn block_child(how: libc::c_int) -> bool {
    // SAFETY: both sets are plain data, valid when zeroed.
    unsafe {
        let (mut child, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigaddset(&mut child, libc::SIGCHLD);
        libc::pthread_sigmask(how, &child, &mut before);
        libc::sigismember(&before, libc::SIGCHLD) == 1
    }
}

fn is_ignored_now(signal: libc::c_int) -> bool {
    // SAFETY: `action` is plain data, valid when zeroed; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
