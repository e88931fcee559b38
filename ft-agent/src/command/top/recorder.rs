//! What is watched: a recording that runs elsewhere, or a flight recorder of our own.
//!
//! Our own is another process of the agent, `ft-agent record --flight-recorder`: what it costs and what watching costs stay
//! apart, and a terminal that hangs holds up no recording. It ends with us, also when we are killed.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use ft_agent::flight::{Recorder, complete};
use ft_agent::signals;
use ft_agent::threads;
use ft_agent::top::{Top, TopError};

use super::{Args, CommandError, Result};

/// From look to look whether a recorder has begun.
const LOOK: Duration = Duration::from_millis(20);

/// How long a snapshot may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A recording.
pub(super) struct Recording {
    pub(super) dir: PathBuf,
    /// In a few words.
    pub(super) subject: String,
    own: Option<Own>,
    told: Receiver<String>,
    tell: std::sync::mpsc::Sender<String>,
    /// Snapshots that were asked for.
    snapshots: u32,
}

/// A flight recorder that was started here.
struct Own {
    child: Child,
    /// Its directory was made for it, and nobody wants it if there are no snapshots.
    is_temporary: bool,
    /// What it has said.
    said: Vec<String>,
}

impl Recording {
    /// The one that the arguments name, or a new one.
    pub(super) fn of(args: Args) -> Result<Recording> {
        let (tell, told) = channel();
        if let Some(dir) = args.recording {
            let subject = dir.display().to_string();
            return Ok(Recording { dir, subject, own: None, told, tell, snapshots: 0 });
        }
        let name = format!("ft-top-{}", std::process::id());
        let is_temporary = args.output.is_none();
        let dir = args.output.clone().unwrap_or_else(|| std::env::temp_dir().join(name));
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
            drop(threads::spawn("ft-messages", move || {
                let lines = BufReader::new(stderr).split(b'\n').map_while(io::Result::ok);
                let mut lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
                // Whoever quits hears no more.
                let _ = lines.try_for_each(|line| tell.send(line));
            })?);
        }
        let own = Some(Own { child, is_temporary, said: Vec::new() });
        Ok(Recording { dir, subject, own, told, tell, snapshots: 0 })
    }

    /// Waits until something is recorded; `None` when our recorder has ended before, or a signal came.
    pub(super) fn wait(&mut self, share: f64) -> std::result::Result<Option<Top>, TopError> {
        loop {
            match Top::new(&self.dir, share) {
                Err(TopError::NotRecording(_)) if self.own.is_some() => {}
                top => return top.map(Some),
            }
            if signals::came() != 0 || self.has_ended() {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
    }

    fn has_ended(&mut self) -> bool {
        self.own.as_mut().is_none_or(|own| !matches!(own.child.try_wait(), Ok(None)))
    }

    /// What there is to tell since the last time.
    pub(super) fn messages(&mut self) -> impl Iterator<Item = String> {
        let new: Vec<String> = self.told.try_iter().collect();
        if let Some(own) = &mut self.own {
            own.said.extend(new.iter().cloned());
            let old = own.said.len().saturating_sub(SAID);
            own.said.drain(..old);
        }
        new.into_iter()
    }

    /// A flight recorder records it.
    pub(super) fn has_snapshots(&self) -> bool {
        Recorder::of_directory(&self.dir).is_ok()
    }

    /// Asks for a snapshot; a message tells when it is there.
    pub(super) fn take_snapshot(&mut self) -> io::Result<()> {
        self.snapshots += 1;
        let (dir, tell) = (self.dir.clone(), self.tell.clone());
        let take = move || {
            let taken = Recorder::of_directory(&dir).and_then(|r| r.snapshot(PATIENCE));
            let text = match taken {
                Ok(trace) => format!("snapshot: ft-agent report {}", trace.display()),
                Err(error) => format!("no snapshot: {error}"),
            };
            let _ = tell.send(text);
        };
        threads::spawn("ft-asks", take).map(drop)
    }

    /// Ends what was started here, and says what is left of it. The terminal is as it was before.
    pub(super) fn end(mut self) -> Result {
        let asked = self.snapshots > 0;
        let has_ended = self.has_ended();
        // One that has its last snapshot to finish must not be told twice.
        let records = !has_ended && self.has_snapshots();
        let Some(mut own) = self.own.take() else { return Ok(ExitCode::SUCCESS) };
        if records && let Some(pid) = Pid::from_raw(own.child.id() as i32) {
            let _ = writeln!(io::stderr(), "ft-agent: ending the recording");
            let _ = kill_process(pid, Signal::TERM);
        }
        let status = own.child.wait()?;
        let failed = has_ended && !status.success();
        if failed {
            own.said.extend(self.told.iter_until_quiet());
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

/// Lines of the recorder that are kept.
const SAID: usize = 100;

/// What is in a channel, and what comes within a moment.
trait Rest {
    fn iter_until_quiet(&self) -> Vec<String>;
}

impl Rest for Receiver<String> {
    fn iter_until_quiet(&self) -> Vec<String> {
        std::iter::from_fn(|| self.recv_timeout(LOOK).ok()).collect()
    }
}

/// Starts a flight recorder into this directory.
fn start(args: &Args, dir: &Path) -> Result<Child> {
    let mut record = Command::new(std::env::current_exe()?);
    let mut words: Vec<OsString> = vec!["record".into(), "--flight-recorder".into()];
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
