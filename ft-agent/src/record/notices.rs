//! The way of notices from the collecting thread to the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::notice::Notice;

/// Notices at most that wait to be printed. Of those that do not fit, the user is told how many they were.
///
/// Limit: further ones are counted, and the number is printed; what a trace has to tell is in its warnings all the
/// same.
/// Shown by: `notices_that_nobody_reads_are_counted`.
const WAITING: usize = 1 << 10;

/// The collecting thread's end, which never waits.
#[derive(Clone, Debug)]
pub(super) struct Notices {
    sender: Sender<Notice>,
    left_out: Arc<AtomicU64>,
}

/// The session's end.
#[derive(Debug)]
pub(super) struct Heard {
    receiver: Receiver<Notice>,
    left_out: Arc<AtomicU64>,
}

/// Both ends.
pub(super) fn notices() -> (Notices, Heard) {
    let (sender, receiver) = channel(WAITING);
    let left_out = Arc::<AtomicU64>::default();
    (Notices { sender, left_out: left_out.clone() }, Heard { receiver, left_out })
}

impl Notices {
    /// Tells it to the session; counts it where nobody has listened for long: stderr may be a terminal that was
    /// stopped.
    pub(super) fn tell(&self, notice: Notice) {
        if self.sender.try_send(notice).is_err() {
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Heard {
    /// The next; `None` when no more can come.
    pub(super) async fn next(&mut self) -> Option<Notice> {
        self.receiver.recv().await
    }

    /// Those that have not been taken yet, and how many did not fit.
    pub(super) fn rest(mut self) -> (Vec<Notice>, u64) {
        let notices = std::iter::from_fn(|| self.receiver.try_recv().ok()).collect();
        (notices, self.left_out.load(Relaxed))
    }
}

#[cfg(test)]
impl Notices {
    /// Those that nobody listens to.
    pub(super) fn unheard() -> Notices {
        notices().0
    }

    /// How many of them there were.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_that_nobody_reads_are_counted() {
        let (notices, heard) = notices();
        for pid in 0..WAITING as i32 + 3 {
            notices.tell(Notice::Untraced { pid, reason: String::new() });
        }
        let (heard, left_out) = heard.rest();
        assert_eq!((heard.len(), left_out), (WAITING, 3));
        assert!(matches!(heard[0], Notice::Untraced { pid: 0, .. }));
    }
}
