//! Signals that end what the control plane runs.
//!
//! tokio installs a handler and never takes it back, but after a recording Ctrl-C must end a conversion again. So the default
//! action is restored when [`Signals`] is dropped, and the handler when the signal is taken again. A signal that was
//! ignored when the agent was started stays ignored ([`is_ignored`]).

use std::future::poll_fn;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::inherited::is_ignored;

/// What ends a recording.
pub const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// tokio's handlers, by signal.
static HANDLERS: Mutex<Vec<(libc::c_int, libc::sigaction)>> = Mutex::new(Vec::new());

/// Signals that have no effect but being told, until this is dropped.
#[derive(Debug)]
pub struct Signals {
    streams: Vec<(libc::c_int, Signal)>,
    put_back: Option<libc::c_int>,
}

impl Signals {
    /// Takes those of `signals` that are not ignored. To be used within [`run`](super::run), by one at a time.
    ///
    /// # Errors
    ///
    /// When the kernel refuses a handler.
    pub fn take(signals: &[libc::c_int]) -> io::Result<Signals> {
        let taken = signals.iter().copied().filter(|&number| !is_ignored(number));
        let streams =
            taken.map(|number| Ok((number, handled(number)?))).collect::<io::Result<_>>()?;
        Ok(Signals { streams, put_back: None })
    }

    /// The number of the next one that comes; never ends if all are ignored.
    pub async fn next(&mut self) -> libc::c_int {
        if let Some(number) = self.put_back.take() {
            return number;
        }
        poll_fn(|context| {
            let mut streams = self.streams.iter_mut();
            let came = streams.find_map(|(number, stream)| {
                stream.poll_recv(context).is_ready().then_some(*number)
            });
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Signals {
    /// Makes one that has come the next one.
    pub fn put_back(&mut self, number: libc::c_int) {
        self.put_back = Some(number);
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (number, _) in &self.streams {
            // SAFETY: the default action is no function of ours.
            unsafe { libc::signal(*number, libc::SIG_DFL) };
        }
    }
}

/// A stream of a signal that has tokio's handler.
fn handled(number: libc::c_int) -> io::Result<Signal> {
    let stream = signal(SignalKind::from_raw(number))?;
    let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = handlers.iter().find(|(known, _)| *known == number);
    // SAFETY: `now` is plain data, valid when zeroed; what is set is what tokio had set.
    unsafe {
        match known {
            Some((_, handler)) => drop(libc::sigaction(number, handler, std::ptr::null_mut())),
            None => {
                let mut now: libc::sigaction = std::mem::zeroed();
                libc::sigaction(number, std::ptr::null(), &mut now);
                handlers.push((number, now));
            }
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(signal: libc::c_int) -> libc::sighandler_t {
        // SAFETY: `action` is plain data, valid when zeroed; nothing is changed.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            action.sa_sigaction
        }
    }

    fn raise(signal: libc::c_int) {
        // SAFETY: the signal has a handler.
        unsafe { libc::raise(signal) };
    }

    #[test]
    fn signals_are_told_until_they_are_given_back() {
        let [first, second] = [libc::SIGUSR1, libc::SIGWINCH];
        for _ in 0..3 {
            let told = super::super::run(async {
                let mut signals = Signals::take(&[first, second]).unwrap();
                let mut told = Vec::new();
                for signal in [first, second, first] {
                    raise(signal);
                    told.push(signals.next().await);
                }
                signals.put_back(second);
                told.push(signals.next().await);
                told
            });
            assert_eq!(told.unwrap(), [first, second, first, second]);
            assert_eq!([first, second].map(handler), [libc::SIG_DFL; 2]);
        }
        // What was ignored stays so.
        // SAFETY: no function of ours.
        unsafe { libc::signal(first, libc::SIG_IGN) };
        super::super::run(async { drop(Signals::take(&[first])) }).unwrap();
        assert_eq!(handler(first), libc::SIG_IGN);
        // SAFETY: as above.
        unsafe { libc::signal(first, libc::SIG_DFL) };
    }
}
