//! What the session waits for, in one channel.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Instant;

use super::RecordError;
use super::notice::Notice;
use crate::signals::Taken;

/// Notices at most that wait to be printed. Of those that do not fit, the user is told how many they were.
const WAITING: usize = 1 << 10;

/// What ends a recording.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// What asks for a snapshot.
const SNAPSHOT: libc::c_int = libc::SIGUSR1;

/// Something that the session waits for.
#[derive(Debug)]
pub(super) enum Happening {
    /// A signal that ends the recording.
    Ending,
    /// A signal that asks for a snapshot.
    Snapshot,
    /// The command has ended.
    Ended(io::Result<ExitStatus>),
    /// Something for the user to know.
    Notice(Notice),
}

/// The session's end of the channel. Signals are taken as long as it lives.
#[derive(Debug)]
pub(super) struct Happenings {
    // Before the signals: the thread that hands them on must find nobody there.
    receiver: Receiver<Happening>,
    _signals: Taken,
    sender: SyncSender<Happening>,
    left_out: Arc<AtomicU64>,
}

impl Happenings {
    /// Takes over the signals; what comes before the session runs is kept for it. SIGUSR1 asks for a snapshot if
    /// there are any.
    ///
    /// # Errors
    ///
    /// When the kernel refuses what that needs.
    pub(super) fn new(snapshots: bool) -> Result<Happenings, RecordError> {
        let (sender, receiver) = sync_channel(WAITING);
        let tell = sender.clone();
        let forward = move |signal| {
            let happening =
                if signal == SNAPSHOT { Happening::Snapshot } else { Happening::Ending };
            // Fails when the session is over.
            let _ = tell.send(happening);
        };
        let asking = snapshots.then_some(SNAPSHOT);
        let signals: Vec<_> = ENDING.into_iter().chain(asking).collect();
        let signals = Taken::forward(&signals, forward);
        let signals = signals.map_err(RecordError::system("wait for signals"))?;
        let _signals = signals.asking(&[SNAPSHOT]);
        Ok(Happenings { receiver, _signals, sender, left_out: Arc::default() })
    }

    /// For a thread that may wait until it is heard.
    pub(super) fn sender(&self) -> SyncSender<Happening> {
        self.sender.clone()
    }

    /// For the collecting thread, which may not.
    pub(super) fn notices(&self) -> Notices {
        Notices { sender: self.sender.clone(), left_out: self.left_out.clone() }
    }

    /// The next until then, if one comes.
    pub(super) fn next(&self, until: Option<Instant>) -> Option<Happening> {
        let Some(until) = until else { return self.receiver.recv().ok() };
        let left = until.saturating_duration_since(Instant::now());
        self.receiver.recv_timeout(left).ok()
    }

    /// Those notices that have not been taken yet, and how many did not fit.
    pub(super) fn rest(&self) -> (Vec<Notice>, u64) {
        let mut notices = Vec::new();
        loop {
            match self.receiver.try_recv() {
                Ok(Happening::Notice(notice)) => notices.push(notice),
                Ok(_) => {}
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        (notices, self.left_out.load(Relaxed))
    }
}

/// The way of notices to the session, which never waits.
#[derive(Clone, Debug)]
pub(super) struct Notices {
    sender: SyncSender<Happening>,
    left_out: Arc<AtomicU64>,
}

impl Notices {
    /// Tells it to the session; counts it where nobody has listened for long: stderr may be a terminal that was
    /// stopped.
    pub(super) fn tell(&self, notice: Notice) {
        if self.sender.try_send(Happening::Notice(notice)).is_err() {
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
impl Notices {
    /// Those that nobody listens to.
    pub(super) fn unheard() -> Notices {
        Notices { sender: sync_channel(0).0, left_out: Arc::default() }
    }

    /// How many of them there were.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not [`Happenings::new`]: the signals of this process are those of other tests, too.
    fn channel() -> (Receiver<Happening>, Notices) {
        let (sender, receiver) = sync_channel(2);
        (receiver, Notices { sender, left_out: Arc::default() })
    }

    #[test]
    fn notices_that_nobody_reads_are_counted() {
        let (receiver, notices) = channel();
        for pid in 0..5 {
            notices.tell(Notice::Untraced { pid });
        }
        assert_eq!(notices.left_out.load(Relaxed), 3);
        let first = receiver.recv().unwrap();
        assert!(matches!(first, Happening::Notice(Notice::Untraced { pid: 0 })));
    }
}
