//! Asks a running recording, by its control socket.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::socket::{Answer, MAX_LINE, NAME, Request};
use ft_trace::spool::Spool;

/// Why a recording cannot be asked, or does not do it.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody records into the directory.
    #[error("nothing is recorded into {0}; name the directory of a running `ft-agent record`")]
    NotRecording(PathBuf),
    /// The process is no recording.
    #[error("process {0} is no recording; name the process of `ft-agent record`, or its directory")]
    NotARecording(i32),
    /// The recording is somebody else's.
    #[error("cannot ask the recording in {path}: {source}; run as its user or as root")]
    Refused {
        /// Directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It has ended, or does not answer in time.
    #[error("the recording in {path} gave no answer: {source}; look at what it has printed")]
    Silent {
        /// Directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It says why it does not do it.
    #[error("{0}")]
    Declined(String),
}

/// A running recording.
#[derive(Debug)]
pub struct Recorder {
    dir: PathBuf,
    connection: UnixStream,
}

impl Recorder {
    /// The one that writes into the trace directory `dir`.
    ///
    /// # Errors
    ///
    /// When there is none, or it is somebody else's.
    pub fn of_directory(dir: &Path) -> Result<Recorder, ControlError> {
        match connect(dir) {
            Ok(connection) => Ok(Recorder { dir: dir.to_owned(), connection }),
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                Err(ControlError::Refused { path: dir.to_owned(), source })
            }
            Err(_) => Err(ControlError::NotRecording(dir.to_owned())),
        }
    }

    /// The one that is the process `pid`.
    ///
    /// # Errors
    ///
    /// When it is none, or may not be looked at.
    pub fn of_process(pid: i32) -> Result<Recorder, ControlError> {
        let proc = PathBuf::from(format!("/proc/{pid}/fd"));
        let entries = match fs::read_dir(&proc) {
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                return Err(ControlError::Refused { path: proc, source });
            }
            entries => entries.map_err(|_| ControlError::NotARecording(pid))?,
        };
        let dir = entries.flatten().find_map(|entry| {
            let file = fs::read_link(entry.path()).ok()?;
            let dir = file.parent()?.parent()?;
            (file == Spool::of(dir).registry()).then(|| dir.to_owned())
        });
        Recorder::of_directory(&dir.ok_or(ControlError::NotARecording(pid))?)
    }

    /// Asks, and waits for the answer as long as `patience`.
    ///
    /// # Errors
    ///
    /// When it ends before it answers, the time is over, or it declines.
    pub fn ask(mut self, request: &Request, patience: Duration) -> Result<Answer, ControlError> {
        match self.exchange(request, patience) {
            Ok(Answer::Error(reason)) => Err(ControlError::Declined(reason)),
            Ok(answer) => Ok(answer),
            Err(source) => Err(ControlError::Silent { path: self.dir, source }),
        }
    }

    fn exchange(&mut self, request: &Request, patience: Duration) -> io::Result<Answer> {
        self.connection.set_read_timeout(Some(patience))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.connection.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new((&self.connection).take(MAX_LINE)).read_line(&mut answer)?;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }
}

/// Somebody records into the trace directory `dir`, and may be asked.
pub fn is_recorded(dir: &Path) -> bool {
    connect(dir).is_ok()
}

/// By a short path, whatever that of the directory is: a socket's has 107 bytes (unix(7)).
fn connect(dir: &Path) -> io::Result<UnixStream> {
    let dir = File::open(dir)?;
    UnixStream::connect(format!("/proc/self/fd/{}/{NAME}", dir.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let error = Recorder::of_directory(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with("nothing is recorded into"), "{error}");
        let error = Recorder::of_process(std::process::id() as i32).unwrap_err().to_string();
        assert!(error.contains("is no recording"), "{error}");
        assert!(matches!(Recorder::of_process(-1), Err(ControlError::NotARecording(-1))));
    }
}
