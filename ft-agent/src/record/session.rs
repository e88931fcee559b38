//! Waits for the end of a recording: when it comes, and what is shown meanwhile.
//!
//! It ends when the command ends, when all processes given by `-p` have ended, after the duration, on
//! SIGINT, SIGTERM or SIGHUP (but for one that was ignored when the agent was started), or when the spool cannot be
//! written. Ctrl-C reaches the command too, which shares our process group: its last events are waited for, [`GRACE`]
//! at most or until a second Ctrl-C. A command that still runs when the recording is over gets SIGTERM, as
//! `perf record` does it; but not when the recording has failed: then it goes on untraced, and is waited for.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ft_user::glob;

use super::child::Child;
use super::collector::{Collected, Instruction};
use super::happening::{Happening, Happenings};
use super::notice::Notice;
use super::progress::{Counters, Line};
use super::{Options, Outcome, RecordError};
use crate::collect::discover::Identity;
use crate::collect::server::Server;
use crate::threads;
use ft_trace::spool::WriteError;

/// How long the command may take to end after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// From progress line to progress line, and from look to look whether everything has ended.
const TICK: Duration = Duration::from_millis(500);

/// A recording that runs.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    /// From when on the duration counts; `None`: from now on.
    pub(super) from: Option<Instant>,
    pub(super) commands: Sender<Instruction>,
    pub(super) thread: JoinHandle<Result<Collected, WriteError>>,
    pub(super) server: Server,
    pub(super) counters: Arc<Counters>,
    pub(super) happenings: Happenings,
    pub(super) report: &'a mut dyn FnMut(&Notice),
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// The command, or everything that was asked for, has ended.
    Finished,
    /// A signal.
    Interrupted,
    /// The duration is over.
    Duration,
    /// The collection thread has ended by itself: the spool cannot be written.
    Failed,
}

impl EndCause {
    /// As in [`ft_trace::spool::frame::End::reason`].
    fn reason(self) -> &'static str {
        match self {
            EndCause::Finished => "finished",
            EndCause::Interrupted => "interrupted",
            EndCause::Duration => "duration",
            EndCause::Failed => "failed",
        }
    }
}

/// How waiting for the command has ended.
enum Waited {
    /// It has ended.
    Ended(Option<ExitStatus>),
    /// It was not waited for any longer.
    Over,
}

impl Session<'_> {
    /// Runs until the end, with the command if there is one.
    pub(super) fn run(mut self, child: Option<Child>) -> Result<Outcome, RecordError> {
        let mut status = None;
        let cause = self.watch(child.as_ref(), &mut status);
        if let Some(child) = &child
            && status.is_none()
        {
            status = self.end(child, cause);
        }
        let exit_code = status.as_ref().and_then(ExitStatus::code);
        let counters = self.counters.clone();
        let finished = self.stop(cause, exit_code)?;
        let interrupted = cause != EndCause::Finished;
        let (bytes, processes) = (finished.bytes, finished.sources);
        Ok(Outcome { status, interrupted, bytes, lost: counters.lost(), processes })
    }

    /// Waits for the end of the recording.
    fn watch(&mut self, child: Option<&Child>, status: &mut Option<ExitStatus>) -> EndCause {
        let from = self.from.unwrap_or_else(Instant::now);
        let end = self.options.duration.and_then(|duration| from.checked_add(duration));
        let mut tick = Instant::now();
        let mut line = (self.options.progress && io::stderr().is_terminal()).then(Line::new);
        let pids = self.options.pids.iter().filter_map(|&pid| Identity::of(pid).ok());
        let processes: Vec<Identity> = pids.collect();
        let only_pids =
            child.is_none() && !self.options.pids.is_empty() && !self.options.system_wide;
        let cause = loop {
            let now = Instant::now();
            if end.is_some_and(|end| end <= now) {
                break EndCause::Duration;
            }
            if tick <= now {
                tick = now + TICK;
                if self.thread.is_finished() {
                    break EndCause::Failed;
                }
                line.iter_mut().for_each(|line| line.draw(&self.counters));
                if only_pids && processes.iter().all(Identity::has_ended) {
                    break EndCause::Finished;
                }
            }
            match self.happenings.next(Some(end.map_or(tick, |end| end.min(tick)))) {
                None => {}
                Some(Happening::Ending) => break EndCause::Interrupted,
                Some(Happening::Snapshot) => {
                    let request = Instruction::Snapshot("asked for by a signal".into());
                    // Fails when the collection has ended, which the next tick finds.
                    let _ = self.commands.send(request);
                    self.thread.thread().unpark();
                }
                Some(Happening::Ended(ended)) => {
                    *status = ended.ok();
                    break EndCause::Finished;
                }
                Some(Happening::Notice(notice)) => {
                    line.iter_mut().for_each(Line::clear);
                    (self.report)(&notice);
                }
            }
        };
        line.iter_mut().for_each(Line::clear);
        cause
    }

    /// Ends a command that outlived its recording; its status if it did end.
    fn end(&mut self, child: &Child, cause: EndCause) -> Option<ExitStatus> {
        let grace = || Some(Instant::now() + GRACE);
        let first = match cause {
            EndCause::Failed => {
                (self.report)(&Notice::Untraced { pid: child.pid });
                self.wait_for_command(None, true)
            }
            // Ctrl-C has reached it as well: its last events still belong to the recording.
            EndCause::Interrupted => self.wait_for_command(grace(), true),
            EndCause::Finished | EndCause::Duration => Waited::Over,
        };
        if let Waited::Ended(status) = first {
            return status;
        }
        child.terminate();
        match self.wait_for_command(grace(), false) {
            Waited::Ended(status) => status,
            Waited::Over => {
                (self.report)(&Notice::Survivor { pid: child.pid, seconds: GRACE.as_secs() });
                None
            }
        }
    }

    /// Waits for the end of the command, until then or until a signal that ends the waiting.
    fn wait_for_command(&mut self, until: Option<Instant>, signals: bool) -> Waited {
        loop {
            match self.happenings.next(until) {
                Some(Happening::Ended(status)) => return Waited::Ended(status.ok()),
                Some(Happening::Ending) if signals => return Waited::Over,
                Some(Happening::Ending | Happening::Snapshot) => {}
                Some(Happening::Notice(notice)) => (self.report)(&notice),
                None => return Waited::Over,
            }
        }
    }

    /// Stops the collection and reports what only the end shows.
    fn stop(self, cause: EndCause, exit_code: Option<i32>) -> Result<Collected, RecordError> {
        drop(self.server);
        let reason = cause.reason().to_owned();
        // Fails when it has ended by itself.
        let _ = self.commands.send(Instruction::Stop { reason, exit_code });
        self.thread.thread().unpark();
        let finished = threads::finish(self.thread);
        let (notices, left_out) = self.happenings.rest();
        notices.iter().for_each(|notice| (self.report)(notice));
        if left_out > 0 {
            (self.report)(&Notice::LeftOut { count: left_out });
        }
        let finished = finished?;
        if finished.unanswered > 0 {
            (self.report)(&Notice::Unanswered { programs: finished.unanswered });
        }
        // Processes that were attached and have no rings were reported at the start; whoever probes a program, or counts at its
        // switches, need not expect that it has sites.
        let Options { command, probes, switch_counters, .. } = self.options;
        let expects_sites = !command.is_empty() && probes.is_empty() && switch_counters.is_empty();
        if finished.sources > 0 || expects_sites {
            for glob in unmatched(&self.options.events, &finished.sites) {
                let sites = finished.sites.iter().cloned().collect();
                (self.report)(&Notice::NoMatch { glob, sites, preload: self.options.preload });
            }
        }
        Ok(finished)
    }
}

fn unmatched(globs: &[String], sites: &BTreeSet<String>) -> Vec<String> {
    let matches = |glob: &&String| sites.iter().any(|site| glob::matches(glob, site));
    globs.iter().filter(|glob| !matches(glob)).cloned().collect()
}
