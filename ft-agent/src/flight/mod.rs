//! The flight recorder: records without end, keeps the last window, and makes traces of it.
//!
//! The rings are drained all the time, as in any recording, into a spool of short segments
//! ([`SEGMENTS`] to a window), of which the old ones are deleted ([`rolling`]). A snapshot closes the
//! open segment and gives the segments of the window a second name in a directory of its own
//! ([`snapshot`]); a thread of the lowest priority converts and analyses it there. One mechanism so
//! serves the rings and the kernel's stream, a window is a time and not a number of events, and what
//! was lost is known. (An overwriting ring holds as many events as it has slots, says nothing of what it
//! has overwritten, and the kernel's buffer has no such mode.) A process that chose overwrite mode itself
//! is copied with each snapshot.
//!
//! ```text
//! collection ─ closed segment ─> keeper ─ deletes, links ─┬─> watcher ─ looks for what the triggers ask for
//!      ^                                                  └─> worker ─ converts, analyses
//!      └── "take a snapshot" ── watcher
//! ```
//!
//! Disk: the window, or the budget if that is less, and one segment; the registry of the processes of the
//! window; plus the snapshots, of which triggers take a limited number.

mod find;
mod rolling;
mod snapshot;
mod trigger;
mod watch;

use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::record::{Closed, Segments};
pub use find::{Recorder, SnapshotError};
use ft_trace::convert::ConvertError;
use ft_trace::dir::Dir;
use ft_trace::spool::{self, Limits, ReadError, Segment, Spool, segment_name};
use ft_trace::store::StoreError;
use rolling::Rolling;
use snapshot::Plan;
pub use snapshot::complete;
pub use trigger::{Hit, Subject, Trigger};
use watch::Watch;

/// Segments of a window: what a trigger finds is late by one.
const SEGMENTS: u32 = 8;

/// Shortest segment; shorter ones cost more than they hold.
const SHORTEST_SEGMENT: Duration = Duration::from_millis(100);

/// Lowest priority of the ordinary scheduler (sched(7)).
const NICE: i32 = 19;

/// The watcher does not wait for a conversion, nor does anybody for the watcher.
const WATCHER_NICE: i32 = 10;

/// What to keep and when to take a snapshot.
#[derive(Clone, Debug)]
pub struct Options {
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

impl Options {
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

/// What is told while the recorder runs.
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
pub struct Finished {
    /// Complete snapshots.
    pub snapshots: Vec<PathBuf>,
    /// The last was taken at the end of the recording. Else the spool is still there.
    pub ended: bool,
    /// Hits of triggers that took no snapshot: too early after another, or too many.
    pub ignored: u64,
    /// Segments that were deleted before the triggers could look at them.
    pub missed: u64,
}

/// What the worker is told.
enum Work {
    Convert { dir: PathBuf, reason: String },
    Failed(FlightError),
}

/// A running flight recorder.
#[derive(Debug)]
pub struct Flight {
    keeper: JoinHandle<bool>,
    watcher: JoinHandle<Watcher>,
    worker: JoinHandle<Vec<PathBuf>>,
    dir: PathBuf,
}

impl Flight {
    /// Starts the recorder's threads for the directory `dir`, which the recording makes; give it the
    /// [`Segments`]. `report` is called on another thread.
    ///
    /// # Errors
    ///
    /// When no thread can be made.
    pub fn spawn(
        dir: PathBuf,
        options: &Options,
        report: impl FnMut(&Message) + Send + 'static,
    ) -> io::Result<(Flight, Segments)> {
        let (closed_sender, closed) = channel();
        let (requests_sender, requests) = channel();
        let (watch_sender, watch) = channel();
        let (work_sender, work) = channel();
        let oldest = Arc::new(AtomicU32::new(0));
        let window_ns = i64::try_from(options.window.as_nanos()).unwrap_or(i64::MAX);
        let keeper = Keeper {
            dir: dir.clone(),
            rolling: Rolling::new(window_ns, options.budget_bytes),
            oldest: oldest.clone(),
            watch: watch_sender,
            work: work_sender.clone(),
            snapshots: 0,
        };
        let watcher = Watcher::new(&dir, options, requests_sender);
        let fail = move |error| drop(work_sender.send(Work::Failed(error)));
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let keeper = thread("ft-flight").spawn(move || keeper.run(&closed))?;
        let watcher = thread("ft-watch").spawn(move || watcher.run(watch, fail))?;
        let worker = thread("ft-convert").spawn(move || finish_snapshots(work, report))?;
        let segments = Segments { closed: closed_sender, requests, backlog: None, oldest };
        Ok((Flight { keeper, watcher, worker, dir }, segments))
    }

    /// Waits for the last snapshot, and removes the spool if that was taken: when the recording did not
    /// end in good order, the spool stays, and `ft-agent convert` makes a trace of it.
    ///
    /// # Errors
    ///
    /// When the spool cannot be removed.
    pub fn finish(self) -> Result<Finished, FlightError> {
        let ended = self.keeper.join().unwrap_or_else(|panic| resume_unwind(panic));
        let watcher = self.watcher.join().unwrap_or_else(|panic| resume_unwind(panic));
        let snapshots = self.worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        let (ignored, missed) = (watcher.ignored, watcher.watch.missed);
        let finished = Finished { snapshots, ended, ignored, missed };
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
    work: Sender<Work>,
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
                    self.fail(FlightError::Write { path: spool.segment(number), source });
                }
            }
            let oldest = self.rolling.window().1.next().unwrap_or_default();
            self.oldest.store(oldest, Relaxed);
            if let Some(reason) = snapshot {
                match self.snapshot(&spool, segment.to_ns, reason) {
                    Ok(()) => ended = last,
                    Err(error) => self.fail(error),
                }
            }
        }
        ended
    }

    fn fail(&self, error: FlightError) {
        let _ = self.work.send(Work::Failed(error));
    }

    fn snapshot(&mut self, spool: &Spool, to_ns: i64, reason: String) -> Result<(), FlightError> {
        self.snapshots += 1;
        let (from_ns, segments) = self.rolling.window();
        let segments = segments.collect();
        let dir = snapshot::dir(&self.dir, self.snapshots);
        let plan = Plan { dir, segments, from_ns, to_ns, reason };
        plan.take(spool)?;
        let _ = self.work.send(Work::Convert { dir: plan.dir, reason: plan.reason });
        Ok(())
    }
}

/// Finds what the triggers ask for.
struct Watcher {
    watch: Watch,
    distance: Duration,
    most: u32,
    requests: Sender<String>,
    /// When a trigger has asked for a snapshot last.
    last: Option<Instant>,
    taken: u32,
    /// See [`Finished::ignored`].
    ignored: u64,
}

impl Watcher {
    fn new(dir: &Path, options: &Options, requests: Sender<String>) -> Watcher {
        Watcher {
            watch: Watch::new(dir, options.triggers.clone()),
            distance: options.distance,
            most: options.most,
            requests,
            last: None,
            taken: 0,
            ignored: 0,
        }
    }

    fn run(mut self, segments: Receiver<Segment>, fail: impl Fn(FlightError)) -> Watcher {
        lower_priority(WATCHER_NICE);
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
        let _ = self.requests.send(hit.to_string());
    }
}

/// Makes traces of the snapshots, and tells what becomes of them. Returns those that are complete.
fn finish_snapshots(work: Receiver<Work>, mut report: impl FnMut(&Message)) -> Vec<PathBuf> {
    lower_priority(NICE);
    let mut snapshots = Vec::new();
    for task in work {
        let message = match task {
            Work::Convert { dir, reason } => match snapshot::finish(&dir) {
                Ok(()) => {
                    snapshots.push(dir.clone());
                    Message::Taken { dir, reason }
                }
                Err(error) => Message::Failed(error),
            },
            Work::Failed(error) => Message::Failed(error),
        };
        report(&message);
    }
    snapshots
}

/// Of the calling thread. Refused, it runs with the priority of the agent: slower for others, not wrong.
fn lower_priority(nice: i32) {
    let _ = rustix::process::setpriority_process(None, nice);
}
