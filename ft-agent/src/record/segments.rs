//! The way from a recording to whoever uses its segments, and back.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, mpsc};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

use crate::control::socket::Answer;
use ft_trace::spool::Segment;

/// A segment that is complete, as the recording goes on.
#[derive(Debug)]
pub struct Closed {
    /// The segment.
    pub segment: Segment,
    /// A snapshot was asked for that ends with it. The last segment of a recording always has one.
    pub snapshot: Option<Wish>,
    /// It is the last: the recording has ended as it should.
    pub last: bool,
}

/// A snapshot that is to be taken.
#[derive(Debug)]
pub struct Wish {
    /// Why.
    pub reason: String,
    /// Somebody waits for it: who asked for it, or for the end of the recording.
    pub is_awaited: bool,
    /// Who has asked for it.
    pub answers: Vec<oneshot::Sender<Answer>>,
}

/// The way from a recording to whoever uses its segments, and back.
#[derive(Debug)]
pub struct Segments {
    /// Gets each segment as it is closed; hangs up when the spool is complete.
    pub closed: mpsc::Sender<Closed>,
    /// Reasons to close the open segment at once, for snapshots that nobody waits for.
    pub triggers: UnboundedReceiver<String>,
    /// Bytes of closed segments that wait for their conversion, where one goes on behind the recording.
    pub backlog: Option<Arc<AtomicU64>>,
    /// Number of the oldest segment that is still there. What concerns only older ones goes from the
    /// registry, too; 0 keeps everything.
    pub oldest: Arc<AtomicU32>,
}

impl Segments {
    /// For a recording whose segments nobody uses while it runs.
    pub fn unused() -> Segments {
        let (closed, triggers) = (mpsc::channel().0, unbounded_channel().1);
        Segments { closed, triggers, backlog: None, oldest: Arc::default() }
    }

    pub(super) fn add_to_backlog(&self, bytes: u64) {
        if let Some(backlog) = &self.backlog {
            backlog.fetch_add(bytes, Relaxed);
        }
    }

    pub(super) fn backlog(&self) -> u64 {
        self.backlog.as_ref().map_or(0, |backlog| backlog.load(Relaxed))
    }
}
