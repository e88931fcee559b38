//! Waits for the end of a recording: when it comes, and what is shown and asked meanwhile.
//!
//! It ends when the command ends, when all processes given by `-p` have ended, after the duration, on
//! SIGINT, SIGTERM or SIGHUP (but for one that was ignored when the agent was started), when the control socket is told to
//! stop it, or when the spool cannot be
//! written. Ctrl-C reaches the command too, which shares our process group, and so does the end of a terminal: its last events are
//! waited for, [`GRACE`] at most or until a second Ctrl-C. When the recording is over, the command and all that it has started gets SIGTERM, and what
//! lives on after [`GRACE`] SIGKILL (`tree.rs`). When the recording has failed, the command goes on untraced and is waited for,
//! with all that it leaves, unless a signal comes or somebody stops it; nobody can register any more. With `--no-kill` nothing is ended.

use std::collections::{BTreeSet, HashSet};
use std::future::pending;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use ft_user::glob;
use rustix::process::Signal;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::asleep::Asleep;
use super::child::Child;
use super::collector::{Collected, Instruction};
use super::notice::Notice;
use super::notices::Heard;
use super::progress::{Counters, Line};
use super::sockets::Sockets;
use super::tree::Tree;
use super::{CutShort, Options, Outcome, RecordError};
use crate::collect::discover::Identity;
use crate::control::registration::{self, Server};
use crate::control::socket::{Answer, Asked, Control, ENDED, Request, Status};
use crate::control::{Signals, watched};
use crate::threads::{self, Bell};
use ft_trace::spool::WriteError;

/// How long the command, and what it has started, may take to end after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// How long what the command has started may take to end by itself when the command has ended.
const LINGER: Duration = Duration::from_millis(500);

/// How long a look at who has slept may take: the process decides about that.
const LOOK: Duration = Duration::from_secs(2);

/// From look to look at who still lives, at first and at last.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];

/// From look to look at processes that cannot say when they end.
const TICK: Duration = Duration::from_millis(500);

/// The collecting thread.
pub(super) struct Collecting {
    /// `None` when it was joined.
    pub(super) thread: Option<JoinHandle<Result<Collected, WriteError>>>,
    pub(super) commands: Sender<Instruction>,
    /// Ends its pause.
    pub(super) bell: Bell,
    /// Hangs up when the thread ends.
    pub(super) over: oneshot::Receiver<()>,
}

impl Collecting {
    fn tell(&self, instruction: Instruction) {
        // Fails when it has ended, which `over` tells.
        let _ = self.commands.send(instruction);
        self.bell.ring();
    }
}

/// A recording that runs.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) began: std::time::Instant,
    /// From when on the duration counts; `None`: from now on.
    pub(super) from: Option<std::time::Instant>,
    pub(super) collecting: Collecting,
    /// What the collecting thread has collected, once that has ended.
    pub(super) collected: Option<Result<Collected, WriteError>>,
    /// Both go when the collecting thread has ended, which answers who registers.
    pub(super) server: Option<Server>,
    pub(super) sockets: Option<Sockets>,
    /// `None` where there can be no socket.
    pub(super) control: Option<Control>,
    pub(super) counters: Arc<Counters>,
    /// The progress line, where it is to be drawn, until the recording ends.
    pub(super) line: Option<Line>,
    pub(super) signals: Signals,
    pub(super) notices: Heard,
    /// Reasons for snapshots that nobody waits for.
    pub(super) triggers: mpsc::UnboundedReceiver<String>,
    /// What the trigger has found that has ended the recording.
    pub(super) ended_by: Option<String>,
    /// The command and all that it has started; `None` if it is not to be ended.
    pub(super) tree: Option<Tree>,
    /// Threads of the processes that were named.
    pub(super) asleep: Asleep,
    pub(super) report: &'a mut dyn FnMut(&Notice),
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// The command, or everything that was asked for, has ended.
    Finished,
    /// A signal, or the control socket.
    Interrupted {
        /// It has reached the command, too.
        reaches_command: bool,
    },
    /// The duration is over, or a trigger has ended it.
    Duration,
    /// The collection thread has ended by itself: the spool cannot be written.
    Failed,
}

impl EndCause {
    /// As in [`ft_trace::spool::frame::End::reason`].
    fn reason(self) -> &'static str {
        match self {
            EndCause::Finished => "finished",
            EndCause::Interrupted { .. } => "interrupted",
            EndCause::Duration => "duration",
            EndCause::Failed => "failed",
        }
    }
}

/// What can come in every phase, and is not done by then.
enum Event {
    Signal(libc::c_int),
    /// By the control socket.
    Stop,
    /// What a trigger has found.
    Found(String),
    /// The collecting thread has ended.
    Over,
}

impl Session<'_> {
    /// Runs until the end, with the command if there is one.
    pub(super) async fn run(mut self, mut child: Option<Child>) -> Result<Outcome, RecordError> {
        let (cause, mut status) = self.watch(&mut child).await;
        if let Some(child) = &mut child {
            if status.is_none() {
                status = self.end_of_command(child, cause).await;
            }
            // What was not recorded to its end goes on, unless somebody has said that it shall not.
            let is_left = cause == EndCause::Failed && status.is_some();
            if let Some(tree) = self.tree.take().filter(|_| !is_left) {
                status = self.end(child, &tree, cause, status).await;
            }
        }
        let exit_code = status.as_ref().and_then(ExitStatus::code);
        let counters = self.counters.clone();
        let cut_short = |error| match error {
            RecordError::Spool(cut) => RecordError::Spool(CutShort { status, ..cut }),
            error => error,
        };
        let finished = self.stop(cause, exit_code).await.map_err(cut_short)?;
        let interrupted = cause != EndCause::Finished;
        let (bytes, processes) = (finished.bytes, finished.sources);
        Ok(Outcome { status, interrupted, bytes, lost: counters.lost(), processes })
    }

    /// Waits for the end of the recording; the command's status if that is why.
    async fn watch(&mut self, child: &mut Option<Child>) -> (EndCause, Option<ExitStatus>) {
        let from = self.from.unwrap_or(self.began);
        let end = self.options.duration.and_then(|duration| from.checked_add(duration));
        let duration = async {
            match end {
                Some(end) => sleep_until(end.into()).await,
                None => pending().await,
            }
        };
        let only_pids =
            child.is_none() && !self.options.pids.is_empty() && !self.options.system_wide;
        let pids = self.options.pids.iter().filter(|_| only_pids);
        let processes = pids.filter_map(|&pid| Identity::of(pid).ok()).collect();
        let ended = async move {
            match only_pids {
                true => all_ended(processes).await,
                false => pending().await,
            }
        };
        tokio::pin!(duration, ended);
        let interrupted = |reaches_command| EndCause::Interrupted { reaches_command };
        let cause = loop {
            tokio::select! {
                () = &mut duration => break (EndCause::Duration, None),
                () = &mut ended => break (EndCause::Finished, None),
                status = end_of(child) => break (EndCause::Finished, status.ok()),
                event = self.event() => match event {
                    Event::Signal(signal) => break (interrupted(signal != libc::SIGTERM), None),
                    Event::Stop => break (interrupted(false), None),
                    Event::Over => break (EndCause::Failed, None),
                    Event::Found(reason) if self.options.ends_with_trigger => {
                        self.ended_by = Some(reason);
                        break (EndCause::Duration, None);
                    }
                    Event::Found(reason) => {
                        self.collecting.tell(Instruction::Snapshot { reason, answer: None });
                    }
                }
            }
        };
        self.line = None;
        cause
    }

    /// Does what there is to do in every phase, until something comes that depends on it.
    async fn event(&mut self) -> Event {
        loop {
            tokio::select! {
                signal = self.signals.next() => return Event::Signal(signal),
                _ = &mut self.collecting.over, if self.collected.is_none() => {
                    self.collected = self.collecting.thread.take().map(threads::finish);
                    // First the paths: who finds no socket goes on at once.
                    self.sockets = None;
                    self.server = None;
                    return Event::Over;
                }
                Some(asked) = next(&mut self.control) => {
                    if self.obey(asked) {
                        return Event::Stop;
                    }
                }
                Some(reason) = self.triggers.recv() => return Event::Found(reason),
                Some(notice) = self.notices.next() => {
                    self.line.iter_mut().for_each(Line::clear);
                    (self.report)(&notice);
                }
                () = tick(&mut self.line) => {
                    self.line.iter_mut().for_each(|line| line.draw(&self.counters));
                }
            }
        }
    }

    /// Waits for the end of some work.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = self.event() => {}
            }
        }
    }

    /// Does what somebody has asked; true if the recording is to end.
    fn obey(&mut self, (request, reply): Asked) -> bool {
        let answer = match request {
            Request::Status => Answer::Status(self.status()),
            Request::Stop => Answer::Stopping,
            _ if self.collected.is_some() => Answer::Error(match self.failure() {
                Some(reason) => format!("the recording has failed: {reason}"),
                None => ENDED.into(),
            }),
            Request::Snapshot if !self.options.snapshots => Answer::Error(
                "this recording keeps everything and takes no snapshots; `ft-agent stop` ends it, and \
                 `ft-agent record --flight-recorder 10s` is one that takes them"
                    .into(),
            ),
            Request::Snapshot => {
                let (reason, answer) = ("asked for".into(), Some(reply));
                self.collecting.tell(Instruction::Snapshot { reason, answer });
                return false;
            }
            // A process that registers is told all of them in one message.
            Request::Enable { globs } if registration::reply(&globs).is_none() => {
                Answer::Error(RecordError::TooManyGlobs.to_string())
            }
            Request::Enable { globs } => {
                self.collecting.tell(Instruction::Enable { globs, answer: reply });
                return false;
            }
        };
        let stops = answer == Answer::Stopping;
        // Whoever has gone away is told nothing.
        let _ = reply.send(answer);
        stops
    }

    /// Why the collecting thread has ended, if not by our order.
    fn failure(&self) -> Option<String> {
        self.collected.as_ref()?.as_ref().err().map(ToString::to_string)
    }

    fn status(&self) -> Status {
        let counters = &self.counters;
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        Status {
            pid: std::process::id(),
            command: self.options.words(),
            flight_recorder: self.options.snapshots,
            seconds: self.began.elapsed().as_secs_f64(),
            events: get(&counters.slots),
            kernel_records: get(&counters.kernel_records),
            lost: counters.lost(),
            bytes: get(&counters.bytes),
            bytes_to_convert: get(&counters.unconverted),
            processes: get(&counters.processes),
            threads: get(&counters.threads),
            failed: self.failure(),
        }
    }

    /// Waits for a command that outlived its recording, as far as it is to be waited for; its status if it did end.
    async fn end_of_command(&mut self, child: &mut Child, cause: EndCause) -> Option<ExitStatus> {
        match cause {
            EndCause::Failed => {
                let reason = self.failure().unwrap_or_default();
                (self.report)(&Notice::Untraced { pid: child.pid, reason });
                self.wait_for(child).await
            }
            // Its last events still belong to the recording.
            EndCause::Interrupted { reaches_command: true } => {
                timeout(GRACE, self.wait_for(child)).await.unwrap_or(None)
            }
            EndCause::Interrupted { .. } | EndCause::Finished | EndCause::Duration => None,
        }
    }

    /// Ends what lives of the command and of all that it has started; the command's status if it has ended.
    async fn end(
        &mut self,
        child: &mut Child,
        tree: &Tree,
        cause: EndCause,
        mut status: Option<ExitStatus>,
    ) -> Option<ExitStatus> {
        if status.is_some() {
            // Ctrl-C has reached them, too; and what reads the command's last words is just about to end.
            let is_interrupted = matches!(cause, EndCause::Interrupted { .. });
            let time = if is_interrupted { GRACE } else { LINGER };
            let who = self.wait_for_tree(tree, child, &mut status, None, time).await;
            if !who.is_empty() {
                (self.report)(&Notice::Outlived { who });
            }
        }
        let who = self.wait_for_tree(tree, child, &mut status, Some(Signal::TERM), GRACE).await;
        if !who.is_empty() {
            (self.report)(&Notice::Killed { who, seconds: GRACE.as_secs() });
            let who = self.wait_for_tree(tree, child, &mut status, Some(Signal::KILL), GRACE).await;
            if !who.is_empty() {
                (self.report)(&Notice::Survivors { who });
            }
        }
        status
    }

    /// Waits until nobody of the tree lives, the time is over, or a signal comes; returns who lives then, and sets the status of the command
    /// when that ends. All of them are sent the signal that is said, also those that come meanwhile.
    async fn wait_for_tree(
        &mut self,
        tree: &Tree,
        child: &mut Child,
        status: &mut Option<ExitStatus>,
        signal: Option<Signal>,
        time: Duration,
    ) -> Vec<(i32, String)> {
        let (over, mut told, mut pause) = (Instant::now() + time, HashSet::new(), PAUSES[0]);
        let mut is_hastened = false;
        loop {
            let look = tree.look(signal, status.is_none(), &mut told).await;
            if look.is_over || is_hastened || Instant::now() >= over {
                let mut who: Vec<_> = look.alive.into_iter().map(|m| (m.pid, m.comm)).collect();
                if status.is_none() && who.iter().all(|&(pid, _)| pid != child.pid) {
                    who.push((child.pid, self.options.words().remove(0)));
                }
                return who;
            }
            pause = if look.is_new { PAUSES[0] } else { (2 * pause).min(PAUSES[1]) };
            let waited = sleep(pause);
            tokio::pin!(waited);
            loop {
                tokio::select! {
                    () = &mut waited => break,
                    ended = child.wait(), if status.is_none() => *status = ended.ok(),
                    event = self.event() => is_hastened |= matches!(event, Event::Signal(_)),
                }
            }
        }
    }

    /// Waits for the end of the command, or until it is not to be waited for any longer.
    async fn wait_for(&mut self, child: &mut Child) -> Option<ExitStatus> {
        loop {
            tokio::select! {
                status = child.wait() => return status.ok(),
                event = self.event() => {
                    if matches!(event, Event::Signal(_) | Event::Stop) {
                        return None;
                    }
                }
            }
        }
    }

    /// Stops the collection and reports what only the end shows.
    async fn stop(
        mut self,
        cause: EndCause,
        exit_code: Option<i32>,
    ) -> Result<Collected, RecordError> {
        let reason = self.ended_by.take().unwrap_or_else(|| cause.reason().into());
        let asleep = std::mem::take(&mut self.asleep);
        let look = timeout(LOOK, spawn_blocking(|| asleep.end()));
        let sleepers = self.meanwhile(look).await.map(Result::unwrap_or_default);
        let sleepers = sleepers.unwrap_or_default();
        if let Some(server) = self.server.take() {
            self.meanwhile(server.finish()).await;
        }
        self.collecting.tell(Instruction::Stop { reason, exit_code });
        let finished = loop {
            match self.collected.take() {
                Some(finished) => break finished,
                None => drop(self.event().await),
            }
        };
        if let Some(control) = self.control.take() {
            control.finish().await;
        }
        let Session { options, notices, report, .. } = self;
        let (notices, left_out) = notices.rest();
        notices.iter().for_each(&mut *report);
        if left_out > 0 {
            report(&Notice::LeftOut { count: left_out });
        }
        let finished = finished?;
        if !sleepers.is_empty() {
            report(&Notice::Asleep { sleepers });
        }
        if finished.unanswered > 0 {
            report(&Notice::Unanswered { programs: finished.unanswered });
        }
        if finished.strangers.count > 0 {
            let names = finished.strangers.names.iter().cloned().collect();
            let (count, recorded) = (finished.strangers.count, options.any);
            report(&Notice::Strangers { count, names, recorded });
        }
        // Processes that were attached and have no rings were reported at the start; whoever probes a program, or counts at its
        // switches, need not expect that it has sites; nor who records what the kernel knows of any program, and asks for none.
        let Options { command, probes, switch_counters, .. } = options;
        let asks_for_them = options.preload || options.events != ["*"];
        let expects_sites = !command.is_empty()
            && probes.is_empty()
            && switch_counters.is_empty()
            && (options.kernel.is_empty() || asks_for_them);
        if finished.sources > 0 || expects_sites {
            for glob in unmatched(&options.events, &finished.sites) {
                let sites = finished.sites.iter().cloned().collect();
                report(&Notice::NoMatch { glob, sites, preload: options.preload });
            }
        }
        Ok(finished)
    }
}

async fn end_of(child: &mut Option<Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => pending().await,
    }
}

async fn tick(line: &mut Option<Line>) {
    match line {
        Some(line) => line.tick().await,
        None => pending().await,
    }
}

async fn next(control: &mut Option<Control>) -> Option<Asked> {
    control.as_mut()?.next().await
}

/// Waits until the last of these processes has ended.
async fn all_ended(processes: Vec<Identity>) {
    for process in processes {
        let pidfd = process.pidfd.as_ref().and_then(|pidfd| pidfd.try_clone().ok());
        let watched = pidfd.and_then(|pidfd| watched(pidfd).ok());
        while !process.has_ended() {
            match &watched {
                // Ready once, it stays so: the process has ended.
                Some(pidfd) => drop(pidfd.readable().await),
                None => tokio::time::sleep(TICK).await,
            }
        }
    }
}

fn unmatched(globs: &[String], sites: &BTreeSet<String>) -> Vec<String> {
    let matches = |glob: &&String| sites.iter().any(|site| glob::matches(glob, site));
    globs.iter().filter(|glob| !matches(glob)).cloned().collect()
}
