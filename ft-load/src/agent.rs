//! Starts `ft-agent record`, for loads that are to be recorded.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::Error;

/// From look to look whether a recording has ended.
const LOOK: Duration = Duration::from_millis(5);

/// What a recording may take beyond its load: the start of the agent, and its end.
const MARGIN: Duration = Duration::from_secs(60);

/// Finds the agent: where it is said to be, beside this program, or on the PATH.
///
/// # Errors
///
/// When it is not there.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(file) = named {
        return match file.is_file() {
            true => Ok(file.to_owned()),
            false => Err(Error::refused(format!(
                "there is no file {}; name ft-agent with --agent",
                file.display()
            ))),
        };
    }
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = beside.into_iter().chain(std::env::split_paths(&path));
    places.map(|place| place.join("ft-agent")).find(|file| file.is_file()).ok_or_else(|| {
        Error::refused(
            "ft-agent is neither beside this program nor on the PATH; build it, or name it with --agent",
        )
    })
}

/// Names of kernel groups; which there are the agent knows.
pub(crate) fn groups(text: &str) -> Result<String, Error> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
    match text.split(',').all(is_name) {
        true => Ok(text.to_owned()),
        false => Err(Error::usage(format!(
            "`{}` names no kernel groups; write them with commas, such as sched,irq, or none",
            text.escape_debug()
        ))),
    }
}

/// This program, to be started by the agent.
pub(crate) fn this_program() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| {
        Error::refused(format!("this program does not find itself ({error}); mount /proc"))
    })
}

/// A directory for one recording after the other, gone when this is dropped.
pub(crate) struct Stage {
    agent: PathBuf,
    load: PathBuf,
    dir: PathBuf,
    _signals: Signals,
}

/// What a recording has told.
pub(crate) struct Told<T> {
    /// What the load has printed as a line of JSON.
    pub(crate) load: T,
    /// Events and records of the kernel that were lost.
    pub(crate) lost: u64,
    /// Bytes that were recorded.
    pub(crate) bytes: u64,
}

/// The last line of `ft-agent record --json`, as far as it matters here.
#[derive(serde::Deserialize)]
struct Answer {
    lost: u64,
    spool_bytes: u64,
}

impl Stage {
    /// Makes the directory inside `dir`. From now on SIGINT, SIGTERM and SIGHUP end a recording, and nothing else.
    ///
    /// # Errors
    ///
    /// When nothing can be made there.
    pub(crate) fn new(agent: PathBuf, dir: &Path) -> Result<Self, Error> {
        let load = this_program()?;
        let own = dir.join(format!("ft-load-{}", std::process::id()));
        // Who could write to it could choose what the agent records into.
        DirBuilder::new().mode(0o700).create(&own).map_err(|error| {
            Error::refused(format!(
                "{} cannot be made ({error}); choose another --dir",
                own.display()
            ))
        })?;
        Ok(Stage { agent, load, dir: own, _signals: Signals::catch() })
    }

    /// A path inside the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Records this program with these words, for about `time`, and removes the recording.
    ///
    /// # Errors
    ///
    /// What the agent or the load says when it fails, and when a signal has ended it: nothing runs any more then.
    pub(crate) fn record<T: DeserializeOwned>(
        &self,
        options: &[&str],
        load: &[&str],
        time: Duration,
    ) -> Result<Told<T>, Error> {
        let trace = self.path("trace");
        let mut command = Command::new(&self.agent);
        command.args(["record", "--no-convert", "--json", "-o"]).arg(&trace).args(options);
        command.arg("--").arg(&self.load).args(load);
        let told = self.run(command, time);
        let _ = fs::remove_dir_all(&trace);
        let text = told?;
        let unknown = || {
            Error::refused(format!(
                "{} does not say what it has lost; use the ft-agent that was built with this program",
                self.agent.display()
            ))
        };
        let mut objects = text.lines().filter(|line| line.starts_with('{')).rev();
        let answer: Answer =
            objects.find_map(|line| serde_json::from_str(line).ok()).ok_or_else(unknown)?;
        let load = objects.find_map(|line| serde_json::from_str(line).ok()).ok_or_else(unknown)?;
        Ok(Told { load, lost: answer.lost, bytes: answer.spool_bytes })
    }

    /// Runs a command to its end; what it has printed.
    fn run(&self, mut command: Command, time: Duration) -> Result<String, Error> {
        // Files, because nobody reads a pipe meanwhile.
        let (output, messages) = (self.path("output"), self.path("messages"));
        let file = |path: &Path| {
            File::create(path).map_err(|error| {
                let path = path.display();
                Error::refused(format!("{path} cannot be written ({error}); choose another --dir"))
            })
        };
        command.stdin(Stdio::null()).stdout(file(&output)?).stderr(file(&messages)?);
        end_with_this(&mut command);
        let mut child = command.spawn().map_err(|error| {
            let agent = self.agent.display();
            Error::refused(format!("{agent} does not start ({error}); name another with --agent"))
        })?;
        let end = Instant::now() + time + MARGIN;
        let status = loop {
            let ended = child.try_wait();
            match ended {
                Ok(Some(status)) => break status,
                Ok(None) if SIGNALLED.load(Relaxed) || Instant::now() >= end => {
                    stop(&mut child);
                    let why = if SIGNALLED.load(Relaxed) { "a signal" } else { "a time limit" };
                    return Err(Error::refused(format!(
                        "{why} has ended the recording before it was whole; run it again"
                    )));
                }
                Ok(None) => thread::sleep(LOOK),
                Err(error) => {
                    stop(&mut child);
                    return Err(Error::refused(format!(
                        "ft-agent was not waited for ({error}); run it again"
                    )));
                }
            }
        };
        let read =
            |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        if status.success() {
            return Ok(read(&output));
        }
        let said = read(&messages);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        // Its own sentence ends in the remedy.
        Err(Error::refused(match last {
            Some(line) => {
                line.trim_start_matches("ft-load: ").trim_start_matches("ft-agent: ").to_owned()
            }
            None => format!("ft-agent has ended with {status}; run it by itself to see why"),
        }))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Has the command end when this program does, however that ends.
fn end_with_this(command: &mut Command) {
    let set = || {
        // SAFETY: a number alone.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec it makes one system call.
    unsafe { command.pre_exec(set) };
}

/// Has the agent end its recording, and what it records; waits for both.
fn stop(child: &mut Child) {
    // SAFETY: takes no pointer; the child was not waited for, so the number is its own.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    let end = Instant::now() + MARGIN;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= end {
            let _ = child.kill();
        }
        thread::sleep(LOOK);
    }
}

/// A signal has asked this program to end.
static SIGNALLED: AtomicBool = AtomicBool::new(false);

const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Takes notice of signals that end a program, until dropped.
struct Signals([libc::sigaction; 3]);

impl Signals {
    fn catch() -> Self {
        extern "C" fn notice(_: libc::c_int) {
            SIGNALLED.store(true, Relaxed);
        }
        Signals(ENDING.map(|signal| {
            // SAFETY: zeroes are a value of both; the handler stores to an atomic, which a handler may.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                let mut before: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = notice as extern "C" fn(libc::c_int) as libc::sighandler_t;
                libc::sigaction(signal, &raw const action, &raw mut before);
                // Who was told to ignore one goes on doing so.
                if before.sa_sigaction == libc::SIG_IGN {
                    libc::sigaction(signal, &raw const before, std::ptr::null_mut());
                }
                before
            }
        }))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in ENDING.into_iter().zip(&self.0) {
            // SAFETY: what the kernel has handed out before.
            unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_not_there_is_refused() {
        let error = find(Some(Path::new("/nonexistent/ft-agent"))).unwrap_err().to_string();
        assert!(error.ends_with("name ft-agent with --agent"), "{error}");
    }

    #[test]
    fn an_agent_that_says_nothing_or_fails_is_told_and_leaves_nothing() {
        let dir = std::env::temp_dir();
        let record = |program: &str| {
            let stage = Stage::new(program.into(), &dir).unwrap();
            let own = stage.dir.clone();
            let told = stage.record::<u64>(&[], &["events"], Duration::ZERO);
            drop(stage);
            assert!(!own.exists());
            told.err().expect("no agent").to_string()
        };
        assert!(record("/bin/true").contains("use the ft-agent that was built with"));
        assert!(record("/bin/false").contains("run it by itself"));
        assert!(record("/nonexistent/agent").contains("name another with --agent"));
        let nowhere = Stage::new("/bin/true".into(), Path::new("/nonexistent")).err();
        assert!(nowhere.expect("no directory").to_string().contains("choose another --dir"));
    }
}
