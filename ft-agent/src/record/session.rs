//! The event loop of a recording: when it ends, and what is shown meanwhile.
//!
//! It ends when the command ends, when all processes given by `-p` have ended, after the duration, on
//! SIGINT, SIGTERM or SIGHUP (but for one that was ignored when the agent was started), or when the spool cannot be
//! written. Ctrl-C reaches the command too, which shares our process group: its last events are waited for, [`GRACE`]
//! at most or until a second Ctrl-C. A command that still runs when the recording is over gets SIGTERM, as
//! `perf record` does it; but not when the recording has failed: then it goes on untraced, and is waited for.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::panic::resume_unwind;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use ft_user::glob;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::child::Child;
use super::collector::{Command, Finished};
use super::notice::Notice;
use super::progress::{Counters, Line};
use super::signals::Signals;
use super::{Options, Outcome, RecordError};
use crate::collect::discover::Identity;
use crate::collect::server::Server;
use ft_trace::spool::WriteError;

/// How long the command may take to end after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// From progress line to progress line, and from look to look whether everything has ended.
const TICK: Duration = Duration::from_millis(500);

/// Longer than any recording.
const FOREVER: Duration = Duration::from_secs(86400 * 365 * 30);

/// A recording that runs.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) commands: Sender<Command>,
    pub(super) thread: JoinHandle<Result<Finished, WriteError>>,
    pub(super) server: Server,
    pub(super) counters: Arc<Counters>,
    pub(super) notices: UnboundedReceiver<Notice>,
    pub(super) report: &'a mut dyn FnMut(&Notice),
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The command, or everything that was asked for, has ended.
    Finished,
    /// A signal.
    Interrupted,
    /// The duration is over.
    Duration,
    /// The collection thread has ended by itself: the spool cannot be written.
    Failed,
}

impl Cause {
    /// As in [`ft_trace::spool::frame::End::reason`].
    fn reason(self) -> &'static str {
        match self {
            Cause::Finished => "finished",
            Cause::Interrupted => "interrupted",
            Cause::Duration => "duration",
            Cause::Failed => "failed",
        }
    }
}

/// The loop, from before the first change to any process: a signal that comes early is kept for it.
pub(super) struct EventLoop {
    runtime: Runtime,
    signals: Signals,
}

impl EventLoop {
    /// Takes over the signals.
    ///
    /// # Errors
    ///
    /// When the kernel refuses what an event loop needs.
    pub(super) fn new(snapshots: bool) -> Result<EventLoop, RecordError> {
        let build = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = build.map_err(RecordError::system("start the event loop"))?;
        let signals = {
            let _inside = runtime.enter();
            Signals::new(snapshots).map_err(RecordError::system("wait for signals"))?
        };
        Ok(EventLoop { runtime, signals })
    }
}

impl Session<'_> {
    /// Runs until the end, with the command if there is one.
    pub(super) fn run(
        self,
        events: EventLoop,
        child: Option<Child>,
    ) -> Result<Outcome, RecordError> {
        let EventLoop { runtime, signals } = events;
        runtime.block_on(self.drive(signals, child))
    }

    async fn drive(
        mut self,
        mut signals: Signals,
        mut child: Option<Child>,
    ) -> Result<Outcome, RecordError> {
        let mut status = None;
        let cause = self.watch(&mut signals, child.as_mut(), &mut status).await;
        if let Some(child) = &mut child
            && status.is_none()
        {
            status = self.end(child, cause, &mut signals).await;
        }
        let exit_code = status.as_ref().and_then(ExitStatus::code);
        let counters = self.counters.clone();
        let finished = self.stop(cause, exit_code)?;
        let interrupted = cause != Cause::Finished;
        let (bytes, processes) = (finished.bytes, finished.sources);
        Ok(Outcome { status, interrupted, bytes, lost: counters.lost(), processes })
    }

    /// Waits for the end of the recording.
    async fn watch(
        &mut self,
        signals: &mut Signals,
        mut child: Option<&mut Child>,
        status: &mut Option<ExitStatus>,
    ) -> Cause {
        let deadline = Instant::now() + self.options.duration.unwrap_or(FOREVER);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut line = (self.options.progress && io::stderr().is_terminal()).then(Line::new);
        let pids = self.options.pids.iter().filter_map(|&pid| Identity::of(pid).ok());
        let processes: Vec<Identity> = pids.collect();
        let cause = loop {
            tokio::select! {
                ends = signals.ends() => {
                    if ends {
                        break Cause::Interrupted;
                    }
                    let request = Command::Snapshot("asked for by a signal".into());
                    // Fails when the collection has ended, which the next tick finds.
                    let _ = self.commands.send(request);
                    self.thread.thread().unpark();
                }
                () = sleep_until(deadline) => break Cause::Duration,
                ended = ended(child.as_deref_mut()) => {
                    *status = ended;
                    break Cause::Finished;
                }
                Some(notice) = self.notices.recv() => {
                    line.iter_mut().for_each(Line::clear);
                    (self.report)(&notice);
                }
                _ = tick.tick() => {
                    if self.thread.is_finished() {
                        break Cause::Failed;
                    }
                    line.iter_mut().for_each(|line| line.draw(&self.counters));
                    let only_pids = child.is_none() && !self.options.pids.is_empty();
                    if only_pids && !self.options.system_wide && processes.iter().all(Identity::has_ended) {
                        break Cause::Finished;
                    }
                }
            }
        };
        line.iter_mut().for_each(Line::clear);
        cause
    }

    /// Ends a command that outlived its recording; its status if it did end.
    async fn end(
        &mut self,
        child: &mut Child,
        cause: Cause,
        signals: &mut Signals,
    ) -> Option<ExitStatus> {
        if cause == Cause::Failed {
            (self.report)(&Notice::Untraced { pid: child.pid });
            tokio::select! {
                status = ended(Some(child)) => return status,
                () = signals.any() => {}
            }
        }
        if cause == Cause::Interrupted {
            // Ctrl-C has reached it as well: its last events still belong to the recording.
            tokio::select! {
                status = ended(Some(child)) => return status,
                () = signals.any() => {}
                () = tokio::time::sleep(GRACE) => {}
            }
        }
        child.terminate();
        match timeout(GRACE, ended(Some(child))).await {
            Ok(status) => status,
            Err(_) => {
                (self.report)(&Notice::Survivor { pid: child.pid, seconds: GRACE.as_secs() });
                None
            }
        }
    }

    /// Stops the collection and reports what only the end shows.
    fn stop(mut self, cause: Cause, exit_code: Option<i32>) -> Result<Finished, RecordError> {
        drop(self.server);
        let reason = cause.reason().to_owned();
        // Fails when it has ended by itself.
        let _ = self.commands.send(Command::Stop { reason, exit_code });
        self.thread.thread().unpark();
        let finished = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        while let Ok(notice) = self.notices.try_recv() {
            (self.report)(&notice);
        }
        let finished = finished?;
        if finished.unanswered > 0 {
            (self.report)(&Notice::Unanswered { programs: finished.unanswered });
        }
        // Processes that were attached and have no rings were told of at the start.
        if finished.sources > 0 || !self.options.command.is_empty() {
            for glob in unmatched(&self.options.events, &finished.sites) {
                let sites = finished.sites.iter().cloned().collect();
                (self.report)(&Notice::NoMatch { glob, sites });
            }
        }
        Ok(finished)
    }
}

fn unmatched(globs: &[String], sites: &BTreeSet<String>) -> Vec<String> {
    let matches = |glob: &&String| sites.iter().any(|site| glob::matches(glob, site));
    globs.iter().filter(|glob| !matches(glob)).cloned().collect()
}

/// Resolves when the command has ended; never without a command.
async fn ended(child: Option<&mut Child>) -> Option<ExitStatus> {
    match child {
        Some(child) => (&mut child.ended).await.ok().and_then(Result::ok),
        None => std::future::pending().await,
    }
}
