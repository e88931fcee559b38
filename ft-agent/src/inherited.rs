//! Ignored signals and CPUs that this program was started with, which are those of the recorded command.
//!
//! `nohup` ignores SIGHUP, and a shell without job control SIGINT and SIGQUIT of what it puts into the background: whoever
//! ignores a signal for us means our children, too, and no handler of ours may undo it (POSIX, *signal concepts*;
//! bash(1), *SIGNALS*). We ignore nothing ourselves, so what is ignored now was ignored then. Only SIGPIPE is ignored by Rust's
//! runtime, before `main`, and not for children; so it is looked at before that.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where this program was allowed to run, once it has kept itself to fewer CPUs.
static CPUS: OnceLock<CpuSet> = OnceLock::new();

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        SIGPIPE_IGNORED.store(is_ignored_now(libc::SIGPIPE), Relaxed);
    }
    look
};

/// Whether the signal was ignored when this program was executed.
pub fn is_ignored(signal: libc::c_int) -> bool {
    if signal == libc::SIGPIPE { SIGPIPE_IGNORED.load(Relaxed) } else { is_ignored_now(signal) }
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

fn is_ignored_now(signal: libc::c_int) -> bool {
    // SAFETY: `action` is plain data, valid when zeroed; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
