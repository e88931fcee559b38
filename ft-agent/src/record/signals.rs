//! The signals of a recording. One that was ignored when the agent was started stays ignored.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::inherited::is_ignored;

/// What ends a recording.
const ENDING: [SignalKind; 3] =
    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// Waits for the signals that end a recording or ask for a snapshot. They have their default effect again when this is
/// gone: tokio keeps its handlers for good, but a conversion or a report must end on Ctrl-C.
pub(super) struct Signals {
    ending: [Option<Signal>; 3],
    /// SIGUSR1, when it asks for a snapshot.
    snapshot: Option<Signal>,
}

impl Signals {
    /// Takes over the signals, in a runtime.
    ///
    /// # Errors
    ///
    /// When the kernel refuses a handler.
    pub(super) fn new(snapshots: bool) -> io::Result<Signals> {
        let mut ending = [None, None, None];
        for (slot, kind) in ending.iter_mut().zip(ENDING) {
            if !is_ignored(kind.as_raw_value()) {
                *slot = Some(signal(kind)?);
            }
        }
        let snapshot = snapshots.then(|| signal(SignalKind::user_defined1())).transpose()?;
        Ok(Signals { ending, snapshot })
    }

    /// One that ends the recording.
    pub(super) async fn any(&mut self) {
        let [a, b, c] = &mut self.ending;
        tokio::select! {
            () = next(a) => {}
            () = next(b) => {}
            () = next(c) => {}
        }
    }

    /// One that ends the recording (true), or asks for a snapshot.
    pub(super) async fn ends(&mut self) -> bool {
        let Signals { ending: [a, b, c], snapshot } = self;
        tokio::select! {
            () = next(a) => true,
            () = next(b) => true,
            () = next(c) => true,
            () = next(snapshot) => false,
        }
    }
}

/// The next of a signal; never of one that is not waited for.
async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, kind) in self.ending.iter_mut().zip(ENDING) {
            if signal.take().is_some() {
                // SAFETY: the default action is no function of ours.
                unsafe { libc::signal(kind.as_raw_value(), libc::SIG_DFL) };
            }
        }
    }
}
