//! Signals that were ignored when this program was executed.
//!
//! `nohup` ignores SIGHUP, and a shell without job control SIGINT and SIGQUIT of what it puts into the background: whoever
//! ignores a signal for us means our children, too, and no handler of ours may undo it (POSIX, *signal concepts*;
//! bash(1), *SIGNALS*). We ignore nothing ourselves, so what is ignored now was ignored then. Only SIGPIPE is ignored by Rust's
//! runtime, before `main`, and not for children; so it is looked at before that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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

fn is_ignored_now(signal: libc::c_int) -> bool {
    // SAFETY: `action` is plain data, valid when zeroed; nothing is changed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
