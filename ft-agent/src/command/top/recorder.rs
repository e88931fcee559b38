//! What is watched: a recording that runs elsewhere, or a flight recorder of our own.
//!
//! Our own is another process of the agent, `ft-agent record --flight-recorder`: what it costs and what watching costs stay
//! apart, and a terminal that hangs holds up no recording. It ends with us, also when we are killed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use ft_agent::control::socket::{Answer, Request};
use ft_agent::control::{ControlError, Recorder, is_recorded};
use ft_agent::flight::complete;
use ft_agent::top::{Top, TopError};

use super::{Args, CommandError, Result};

/// From look to look whether a recorder has begun.
const LOOK: Duration = Duration::from_millis(20);

/// How long a recorder that has failed may take to say why.
const SAYING_WHY: Duration = Duration::from_millis(200);

/// How long a snapshot may take, and a recorder its end: its last snapshot.
const PATIENCE: Duration = Duration::from_secs(120);

/// Lines of the recorder that are kept.
const SAID: usize = 100;

/// A recording.
pub(super) struct Recording {
    pub(super) dir: PathBuf,
    /// In a few words.
    pub(super) subject: String,
    own: Option<Own>,
    told: UnboundedReceiver<String>,
    tell: UnboundedSender<String>,
    /// Snapshots that were asked for.
    snapshots: u32,
}

/// A flight recorder that was started here.
struct Own {
    child: Child,
    /// Its directory was made for it, and nobody wants it if there are no snapshots.
    is_temporary: bool,
    /// It was seen to record.
    has_begun: bool,
    /// What it has said.
    said: Vec<String>,
}

impl Recording {
    /// The one that the arguments name, or a new one.
    pub(super) fn of(args: Args) -> Result<Recording> {
        let (tell, told) = unbounded_channel();
        if let Some(dir) = args.recording {
            let subject = dir.display().to_string();
            return Ok(Recording { dir, subject, own: None, told, tell, snapshots: 0 });
        }
        let is_temporary = args.output.is_none();
        let dir = match &args.output {
            Some(dir) => dir.clone(),
            None => ft_trace::dir::temporary(0o700)?,
        };
        let subject = match (&*args.command, &*args.pid, &args.cgroup) {
            ([], [], Some(cgroup)) => cgroup.display().to_string(),
            ([], [], None) if args.all => "the whole system".into(),
            ([], [], None) => "whoever registers".into(),
            ([], pids, _) => pids.iter().map(|pid| format!("-p {pid} ")).collect(),
            (command, ..) => command.join(" "),
        };
        let mut child = start(&args, &dir)?;
        if let Some(stderr) = child.stderr.take() {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut lines = BufReader::new(stderr).split(b'\n');
                while let Ok(Some(line)) = lines.next_segment().await {
                    // Whoever quits hears no more.
                    let _ = tell.send(String::from_utf8_lossy(&line).into_owned());
                }
            });
        }
        let own = Some(Own { child, is_temporary, has_begun: false, said: Vec::new() });
        Ok(Recording { dir, subject, own, told, tell, snapshots: 0 })
    }

    /// Waits until something is recorded; `None` when our recorder has ended before.
    pub(super) async fn wait(&mut self, share: f64) -> std::result::Result<Option<Top>, TopError> {
        loop {
            match Top::new(&self.dir, share) {
                Err(TopError::NotRecording(_)) if self.own.is_some() => {}
                top => {
                    self.own.iter_mut().for_each(|own| own.has_begun = true);
                    return top.map(Some);
                }
            }
            if self.has_ended() {
                return Ok(None);
            }
            sleep(LOOK).await;
        }
    }

    fn has_ended(&mut self) -> bool {
        self.own.as_mut().is_none_or(|own| !matches!(own.child.try_wait(), Ok(None)))
    }

    /// The next thing that there is to tell.
    pub(super) async fn message(&mut self) -> String {
        // Never: `tell` is ours.
        let message = self.told.recv().await.unwrap_or_default();
        if let Some(own) = &mut self.own {
            own.said.push(message.clone());
            let old = own.said.len().saturating_sub(SAID);
            own.said.drain(..old);
        }
        message
    }

    /// A flight recorder records it, as ours is one; `None` if it does not say so in time.
    pub(super) fn has_snapshots(&self) -> Option<bool> {
        if self.own.is_some() {
            return Some(true);
        }
        let recorder = Recorder::of_directory(&self.dir);
        match recorder.and_then(|r| r.ask(&Request::Status, LOOK)) {
            Ok(Answer::Status(status)) => Some(status.flight_recorder),
            Err(ControlError::Silent { .. }) => None,
            _ => Some(false),
        }
    }

    /// Asks for a snapshot; a message tells when it is there.
    pub(super) fn take_snapshot(&mut self) {
        self.snapshots += 1;
        let (dir, tell) = (self.dir.clone(), self.tell.clone());
        spawn_blocking(move || {
            let recorder = Recorder::of_directory(&dir);
            let text = match recorder.and_then(|r| r.ask(&Request::Snapshot, PATIENCE)) {
                Ok(Answer::Snapshot(trace)) => {
                    format!("snapshot: ft-agent report {}", trace.display())
                }
                Ok(other) => format!("no snapshot: the recording answered {other:?}"),
                Err(error) => format!("no snapshot: {error}"),
            };
            let _ = tell.send(text);
        });
    }

    /// Ends what was started here, and says what is left of it. The terminal is as it was before.
    pub(super) async fn end(mut self) -> Result {
        let asked = self.snapshots > 0;
        let has_ended = self.has_ended();
        let Some(mut own) = self.own.take() else { return Ok(ExitCode::SUCCESS) };
        let pid = own.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        // One that has ended its recording finishes its last snapshot, which the signal would end.
        if (is_recorded(&self.dir) || !own.has_begun)
            && let Some(pid) = pid
        {
            let _ = writeln!(io::stderr(), "ft-agent: ending the recording");
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(PATIENCE, own.child.wait()).await.is_err() {
            own.child.start_kill()?;
        }
        let status = own.child.wait().await?;
        let failed = has_ended && !status.success();
        if failed {
            while let Ok(Some(line)) = timeout(SAYING_WHY, self.told.recv()).await {
                own.said.push(line);
            }
            own.said.iter().for_each(|line| drop(writeln!(io::stderr(), "{line}")));
        }
        let snapshots = complete(&self.dir).unwrap_or_default();
        if own.is_temporary && !asked {
            let _ = std::fs::remove_dir_all(&self.dir);
        } else {
            for trace in &snapshots {
                writeln!(io::stdout(), "{} (`ft-agent report {0}`)", trace.display())?;
            }
        }
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Starts a flight recorder into this directory.
fn start(args: &Args, dir: &Path) -> Result<Child> {
    let mut record = Command::new(std::env::current_exe()?);
    let mut words: Vec<OsString> =
        vec!["record".into(), "--json".into(), "--flight-recorder".into()];
    words.push(format!("{}ms", args.window.as_millis()).into());
    words.extend(["-o".into(), dir.into(), "-k".into(), args.kernel.clone().into()]);
    args.event.iter().for_each(|glob| words.extend(["-e".into(), glob.into()]));
    args.pid.iter().for_each(|pid| words.extend(["-p".into(), pid.to_string().into()]));
    args.cgroup.iter().for_each(|path| words.extend(["--cgroup".into(), path.into()]));
    words.extend(args.all.then(|| "-a".into()));
    words.extend(args.preload.then(|| "--preload".into()));
    if !args.command.is_empty() {
        words.push("--".into());
        words.extend(args.command.iter().map(OsString::from));
    }
    record.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // The terminal's signals are for us.
    record.process_group(0);
    let end_with_us = || {
        // SAFETY: takes two numbers, and is allowed between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure does nothing but that one system call.
    unsafe { record.pre_exec(end_with_us) };
    record.spawn().map_err(CommandError::Output)
}
