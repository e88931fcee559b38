//! Signals, taken over for a while by what has no control plane: an analysis looks now and then whether one has come.
//!
//! Signals that were ignored when the agent was started stay ignored ([`is_ignored`]). What was taken has its default effect
//! again when [`Taken`] is dropped. What runs under the control plane takes them by [`control::Signals`](crate::control::Signals).

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::inherited::is_ignored;

/// The signal that came last; 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

/// The signal that has come since signals were taken last; 0 for none.
pub fn came() -> libc::c_int {
    CAME.load(Relaxed)
}

/// Signals that have no effect but those of this module, until it is dropped.
#[derive(Debug)]
pub struct Taken {
    signals: Vec<libc::c_int>,
}

impl Taken {
    /// Takes signals whose coming is looked for with [`came`]. The second one of each has its default effect.
    pub fn once(signals: &[libc::c_int]) -> Taken {
        CAME.store(0, Relaxed);
        let signals: Vec<_> =
            signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect();
        for &signal in &signals {
            handle(signal, note, libc::SA_RESTART | libc::SA_RESETHAND);
        }
        Taken { signals }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for &signal in &self.signals {
            // SAFETY: the default action is no function of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Makes a write beyond RLIMIT_FSIZE an error like that of a full disk; by default its signal kills
/// (setrlimit(2)). A handler, because a recorded command would inherit that the signal is ignored.
pub fn survive_file_size_limit() {
    if !is_ignored(libc::SIGXFSZ) {
        handle(libc::SIGXFSZ, nothing, libc::SA_RESTART);
    }
}

extern "C" fn nothing(_: libc::c_int) {}

extern "C" fn note(signal: libc::c_int) {
    CAME.store(signal, Relaxed);
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: `action` is plain data, valid when zeroed; both handlers of this module do only what may be done at any
    // instruction (signal-safety(7)).
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = flags;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_noted_once_and_the_next_one_has_its_default_effect() {
        let handler = || {
            // SAFETY: `action` is plain data, valid when zeroed; nothing is changed.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(libc::SIGUSR2, std::ptr::null(), &mut action);
                action.sa_sigaction
            }
        };
        let taken = Taken::once(&[libc::SIGUSR2]);
        assert_eq!(came(), 0);
        // SAFETY: the signal has a handler.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert_eq!((came(), handler()), (libc::SIGUSR2, libc::SIG_DFL));
        drop(taken);
        // SAFETY: no function of ours.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        drop(Taken::once(&[libc::SIGUSR2]));
        assert_eq!(handler(), libc::SIG_IGN);
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
    }
}
