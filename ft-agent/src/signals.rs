//! Signals, taken over for a while.
//!
//! There is one handler. It notes which signal came, for who asks now and then ([`came`]), and writes its number into
//! a pipe, from which a thread hands it to whoever waits ([`Taken::forward`]). Signals that were ignored when the
//! agent was started stay ignored ([`is_ignored`]). What was taken has its default effect again when [`Taken`] is
//! dropped: a conversion or a report must end on Ctrl-C. But what asked for something that can no longer be had has none
//! ([`Taken::asking`]).

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use crate::inherited::is_ignored;
use crate::threads;

/// The signal that came last; 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

/// Somebody waits at the pipe.
static IS_FORWARDED: AtomicBool = AtomicBool::new(false);

/// Made once and never closed: a handler that was stopped in the middle never writes into another file.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();

/// What is read from the pipe when nobody waits any more.
const OVER: u8 = 0;

/// The signal that has come since signals were taken last; 0 for none.
pub fn came() -> libc::c_int {
    CAME.load(Relaxed)
}

/// Signals that have no effect but those of this module, until it is dropped.
#[derive(Debug)]
pub struct Taken {
    signals: Vec<libc::c_int>,
    /// Those among them that end nothing, then or later.
    asking: Vec<libc::c_int>,
    is_forwarded: bool,
}

impl Taken {
    /// Takes signals whose coming is looked for with [`came`]. The second one of each has its default effect.
    pub fn once(signals: &[libc::c_int]) -> Taken {
        CAME.store(0, Relaxed);
        Taken {
            signals: take(signals, libc::SA_RESETHAND),
            asking: Vec::new(),
            is_forwarded: false,
        }
    }

    /// Takes signals that a thread hands to `tell`, one by one. To be used by one at a time.
    ///
    /// # Errors
    ///
    /// When there is no descriptor or no thread to be had.
    pub fn forward(
        signals: &[libc::c_int],
        mut tell: impl FnMut(libc::c_int) + Send + 'static,
    ) -> io::Result<Taken> {
        let (reader, _) = pipe()?;
        let mut reader = reader.try_clone()?;
        let read = move || {
            let mut signal = [OVER];
            while reader.read_exact(&mut signal).is_ok() && signal[0] != OVER {
                tell(signal[0].into());
            }
        };
        CAME.store(0, Relaxed);
        // Nobody waits for it: it may be telling somebody who does not listen.
        drop(threads::spawn("ft-signals", read)?);
        IS_FORWARDED.store(true, Relaxed);
        Ok(Taken { signals: take(signals, 0), asking: Vec::new(), is_forwarded: true })
    }

    /// Of these signals, those that ask for something: afterwards they have no effect at all, because whoever sends one
    /// cannot know that it comes too late.
    #[must_use]
    pub fn asking(mut self, signals: &[libc::c_int]) -> Taken {
        self.asking = signals.to_vec();
        self
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for &signal in &self.signals {
            if self.asking.contains(&signal) {
                handle(signal, nothing, libc::SA_RESTART);
            } else {
                // SAFETY: the default action is no function of ours.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
        }
        if self.is_forwarded {
            IS_FORWARDED.store(false, Relaxed);
            if let Some((_, writer)) = PIPE.get() {
                // Full, it holds signals that nobody has read: then the thread waits for whom it tells.
                let _ = (&*writer).write(&[OVER]);
            }
        }
    }
}

/// The pipe, whose writing end never blocks.
fn pipe() -> io::Result<&'static (PipeReader, PipeWriter)> {
    if let Some(pipe) = PIPE.get() {
        return Ok(pipe);
    }
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&writer, true)?;
    Ok(PIPE.get_or_init(|| (reader, writer)))
}

/// Those that are taken: what was ignored is not.
fn take(signals: &[libc::c_int], flags: libc::c_int) -> Vec<libc::c_int> {
    let signals: Vec<_> = signals.iter().copied().filter(|&signal| !is_ignored(signal)).collect();
    for &signal in &signals {
        handle(signal, note, libc::SA_RESTART | flags);
    }
    signals
}

/// Makes a write beyond RLIMIT_FSIZE an error like that of a full disk; by default its signal kills
/// (setrlimit(2)). A handler, because a recorded command would inherit that the signal is ignored.
pub fn survive_file_size_limit() {
    if !is_ignored(libc::SIGXFSZ) {
        handle(libc::SIGXFSZ, nothing, libc::SA_RESTART);
    }
}

extern "C" fn nothing(_: libc::c_int) {}

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

extern "C" fn note(signal: libc::c_int) {
    CAME.store(signal, Relaxed);
    if IS_FORWARDED.load(Relaxed)
        && let (Some((_, writer)), Ok(number)) = (PIPE.get(), u8::try_from(signal))
    {
        // SAFETY: write(2) may be called at any instruction; `errno` is what it was for whoever was interrupted. The
        // pipe is never closed.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            libc::write(writer.as_raw_fd(), (&raw const number).cast(), 1);
            *errno = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn raise(signal: libc::c_int) {
        // SAFETY: the signal has a handler, or is ignored.
        unsafe { libc::raise(signal) };
    }

    fn handler(signal: libc::c_int) -> libc::sighandler_t {
        // SAFETY: `action` is plain data, valid when zeroed; nothing is changed.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            action.sa_sigaction
        }
    }

    #[test]
    fn signals_are_told_until_they_are_given_back() {
        let [first, second] = [libc::SIGUSR1, libc::SIGWINCH];
        for _ in 0..3 {
            let (sender, told) = channel();
            let taken = Taken::forward(&[first, second], move |n| sender.send(n).unwrap()).unwrap();
            for signal in [first, second, first] {
                raise(signal);
                assert_eq!(told.recv(), Ok(signal));
            }
            assert_eq!(came(), first);
            drop(taken);
            assert_eq!([first, second].map(handler), [libc::SIG_DFL; 2]);
            assert!(told.recv().is_err(), "the thread has ended");
        }
        // Of those that ask for something none ends the process, however late it comes.
        drop(Taken::forward(&[first, second], |_| {}).map(|taken| taken.asking(&[first])));
        raise(first);
        assert_eq!((came(), handler(second)), (0, libc::SIG_DFL));
        // What was ignored stays so.
        // SAFETY: no function of ours.
        unsafe { libc::signal(first, libc::SIG_IGN) };
        drop(Taken::once(&[first]));
        assert_eq!(handler(first), libc::SIG_IGN);
        // SAFETY: as above.
        unsafe { libc::signal(first, libc::SIG_DFL) };

        let taken = Taken::once(&[first]);
        assert_eq!(came(), 0);
        raise(first);
        assert_eq!((came(), handler(first)), (first, libc::SIG_DFL));
        drop(taken);
    }
}
