//! The flight recorder: records without end, keeps the last window, and makes traces of it.
//!
//! The rings are drained all the time, as in any recording, into a spool of short segments
//! (`SEGMENTS` to a window), of which the old ones are deleted (`rolling.rs`). A snapshot closes the
//! open segment and gives the segments of the window a second name in a directory of its own
//! (`snapshot.rs`); a thread converts and analyses it there (`makers.rs`). One mechanism so
//! serves the rings and the kernel's stream, a window is a time and not a number of events, and what
//! was lost is known. (An overwriting ring holds as many events as it has slots, says nothing of what it
//! has overwritten, and the kernel's buffer has no such mode.) A process that chose overwrite mode itself
//! is copied with each snapshot.
//!
//! ```text
//! collection ─ closed segment ─> keeper ─ deletes, links ─┬─> watcher ─ looks for what the triggers ask for
//!      ^                                                  └─> makers ─ convert, analyse, answer
//!      └── "take a snapshot" ── control plane <── watcher, control socket
//! ```
//!
//! Disk: the window, or the budget if that is less, and one segment; the registry of the processes of the
//! window; plus the snapshots, of which triggers take a limited number.

mod away;
mod cycles;
mod makers;
mod rolling;
mod snapshot;
#[cfg(test)]
mod tests;
mod trigger;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::record::{Closed, Segments, Wish};
use crate::threads::{self, Background, Leaves};
use ft_trace::convert::ConvertError;
use ft_trace::dir::Dir;
use ft_trace::spool::{self, Limits, ReadError, Segment, Spool, segment_name};
use ft_trace::store::StoreError;
use makers::{Makers, Order, Orders};
use rolling::Rolling;
use snapshot::Plan;
pub use snapshot::complete;
pub use trigger::{Hit, Interval, Trigger};
pub(crate) use watch::Live;
use watch::Lookout;

/// Segments of a window: what a trigger finds is late by one.
const SEGMENTS: u32 = 8;

/// Shortest segment; shorter ones cost more than they hold.
const SHORTEST_SEGMENT: Duration = Duration::from_millis(100);

/// Above that of a conversion (setpriority(2)): what it finds late may be gone. Nobody waits for it before the end.
const WATCHER_NICE: i32 = 10;

/// What to keep and when to take a snapshot.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// How far a snapshot reaches back.
    pub window: Duration,
    /// Bytes of the spool; it shortens the window if need be.
    pub budget_bytes: u64,
    /// What makes a snapshot by itself.
    pub triggers: Vec<Trigger>,
    /// Least time from one snapshot by a trigger to the next.
    pub distance: Duration,
    /// Most snapshots by triggers.
    pub most: u32,
}

impl FlightOptions {
    /// When the recording must close its segments.
    pub fn limits(&self) -> Limits {
        let age = (self.window / SEGMENTS).max(SHORTEST_SEGMENT);
        Limits { bytes: (self.budget_bytes / u64::from(SEGMENTS)).clamp(1 << 16, 1 << 30), age }
    }
}

/// Why a snapshot failed. The recorder goes on.
#[derive(Debug, thiserror::Error)]
pub enum FlightError {
    /// The directory of the snapshot cannot be written.
    #[error("cannot write {path}: {source}; make room, or remove old snapshots")]
    Write {
        /// Directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The spool cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// It cannot be analysed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the user is told while the recorder runs.
#[derive(Debug)]
pub enum Message {
    /// A snapshot is complete.
    Taken {
        /// Its trace.
        dir: PathBuf,
        /// Why it was taken.
        reason: String,
    },
    /// Something failed.
    Failed(FlightError),
}

/// How the recorder ended.
#[derive(Debug, Default)]
pub struct FlightOutcome {
    /// Complete snapshots.
    pub snapshots: Vec<PathBuf>,
    /// The last was taken at the end of the recording. Else the spool is still there.
    pub ended: bool,
    /// Hits of triggers that took no snapshot: too early after another, or too many.
    pub ignored: u64,
    /// Segments that were deleted before the triggers could look at them.
    pub missed: u64,
}

/// A running flight recorder.
#[derive(Debug)]
pub struct Flight {
    keeper: JoinHandle<bool>,
    watcher: Background<Watcher>,
    makers: Makers,
    dir: PathBuf,
}

impl Flight {
    /// Starts the recorder's threads for the directory `dir`, which the recording makes; give it the
    /// [`Segments`]. `report` is called on other threads.
    ///
    /// # Errors
    ///
    /// When no thread can be made.
    pub fn spawn(
        dir: PathBuf,
        options: &FlightOptions,
        report: impl Fn(&Message) + Send + Sync + 'static,
    ) -> io::Result<(Flight, Segments)> {
        let (closed_sender, closed) = channel();
        let (hits, triggers) = unbounded_channel();
        let (watch_sender, watch) = channel();
        let (makers, orders) = Makers::spawn(report)?;
        let oldest = Arc::new(AtomicU32::new(0));
        let window_ns = i64::try_from(options.window.as_nanos()).unwrap_or(i64::MAX);
        let keeper = Keeper {
            dir: dir.clone(),
            rolling: Rolling::new(window_ns, options.budget_bytes),
            oldest: oldest.clone(),
            watch: watch_sender,
            orders: orders.clone(),
            snapshots: 0,
        };
        let watcher = Watcher::new(&dir, options, hits);
        let keeper = threads::spawn("ft-flight", move || keeper.run(&closed))?;
        let watch = move || watcher.run(watch, |error| orders.tell(error));
        let watcher = Background::spawn("ft-watch", Leaves::Most(WATCHER_NICE), watch)?;
        let segments = Segments { closed: closed_sender, triggers, backlog: None, oldest };
        Ok((Flight { keeper, watcher, makers, dir }, segments))
    }

    /// Waits for the last snapshot, and removes the spool if that was taken: when the recording did not
    /// end as it should, the spool stays, and `ft-agent convert` makes a trace of it.
    ///
    /// # Errors
    ///
    /// When the spool cannot be removed.
    pub fn finish(self) -> Result<FlightOutcome, FlightError> {
        let ended = threads::finish(self.keeper);
        let watcher = self.watcher.finish();
        let snapshots = self.makers.finish();
        let (ignored, missed) = (watcher.ignored, watcher.watch.missed);
        let finished = FlightOutcome { snapshots, ended, ignored, missed };
        if ended {
            let removed = Dir::open(&self.dir).and_then(|trace| trace.remove(spool::DIRECTORY));
            removed.map_err(|source| FlightError::Write { path: self.dir.clone(), source })?;
        }
        Ok(finished)
    }
}

/// Keeps the window: does nothing that takes long.
struct Keeper {
    dir: PathBuf,
    rolling: Rolling,
    /// See [`Segments::oldest`].
    oldest: Arc<AtomicU32>,
    watch: Sender<Segment>,
    orders: Orders,
    snapshots: u32,
}

impl Keeper {
    /// Returns whether the snapshot of the end was taken.
    fn run(mut self, closed: &Receiver<Closed>) -> bool {
        let spool = Spool::of(&self.dir);
        let mut ended = false;
        for Closed { segment, snapshot, last } in closed {
            // The watcher has as long as the window to look at it; what it misses it counts.
            let _ = self.watch.send(segment);
            for number in self.rolling.push(segment) {
                let removed = spool.hold().and_then(|dir| dir.remove(&segment_name(number)));
                if let Err(source) = removed {
                    self.orders.tell(FlightError::Write { path: spool.segment(number), source });
                }
            }
            let oldest = self.rolling.window().1.next().unwrap_or_default();
            self.oldest.store(oldest, Relaxed);
            if let Some(wish) = snapshot {
                match self.snapshot(&spool, segment.to_ns, wish) {
                    Ok(()) => ended = last,
                    Err(error) => self.orders.tell(error),
                }
            }
        }
        ended
    }

    fn snapshot(&mut self, spool: &Spool, to_ns: i64, wish: Wish) -> Result<(), FlightError> {
        self.snapshots += 1;
        let Wish { reason, is_awaited, answers } = wish;
        let (from_ns, segments) = self.rolling.window();
        let segments = segments.collect();
        let dir = snapshot::dir(&self.dir, self.snapshots);
        let plan = Plan { dir, segments, from_ns, to_ns, reason };
        if let Err(error) = plan.take(spool) {
            makers::answer(answers, &Err(&error), &plan.dir);
            return Err(error);
        }
        let Plan { dir, reason, .. } = plan;
        self.orders.make(Order { number: self.snapshots, dir, reason, answers }, is_awaited);
        Ok(())
    }
}

/// Finds what the triggers ask for.
struct Watcher {
    watch: Lookout,
    distance: Duration,
    most: u32,
    hits: UnboundedSender<String>,
    /// When a trigger has asked for a snapshot last.
    last: Option<Instant>,
    taken: u32,
    /// See [`FlightOutcome::ignored`].
    ignored: u64,
}

impl Watcher {
    fn new(dir: &Path, options: &FlightOptions, hits: UnboundedSender<String>) -> Watcher {
        Watcher {
            watch: Lookout::new(dir, options.triggers.clone()),
            distance: options.distance,
            most: options.most,
            hits,
            last: None,
            taken: 0,
            ignored: 0,
        }
    }

    fn run(mut self, segments: Receiver<Segment>, fail: impl Fn(FlightError)) -> Watcher {
        for segment in segments {
            match self.watch.segment(&segment) {
                Ok(Some(hit)) => self.hit(&hit),
                Ok(None) => {}
                Err(error) => fail(error.into()),
            }
        }
        self
    }

    fn hit(&mut self, hit: &Hit) {
        let early = self.last.is_some_and(|last| last.elapsed() < self.distance);
        if early || self.taken >= self.most {
            self.ignored += 1;
            return;
        }
        (self.last, self.taken) = (Some(Instant::now()), self.taken + 1);
        // The recording may be over: then its last snapshot has the interval.
        let _ = self.hits.send(hit.to_string());
    }
}
