//! Asks a running recording, by its control socket.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::socket::{Answer, MAX_LINE, NAME, Request};
use ft_trace::legible::legible;
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
    #[error("{}", legible(.0))]
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
        let end = Instant::now() + patience;
        self.connection.set_write_timeout(Some(patience))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.connection.write_all(&line)?;
        let (mut answer, mut part) = (Vec::new(), [0; 4096]);
        while !answer.contains(&b'\n') {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || answer.len() as u64 > MAX_LINE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.connection.set_read_timeout(Some(left))?;
            match self.connection.read(&mut part)? {
                0 if answer.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                0 => break,
                bytes => answer.extend(&part[..bytes]),
            }
        }
        match serde_json::from_slice(&answer)? {
            // In the directory that was named: whoever can make a socket there may say that it is any.
            Answer::Snapshot(trace) => {
                let name = trace.file_name().ok_or(io::ErrorKind::InvalidData)?;
                Ok(Answer::Snapshot(self.dir.join(name)))
            }
            answer => Ok(answer),
        }
    }
}

/// Somebody records into the trace directory `dir`, and may be asked.
pub fn is_recorded(dir: &Path) -> bool {
    connect(dir).is_ok()
}

/// By a short path, whatever that of the directory is: a socket's has 107 bytes (unix(7)).
fn connect(dir: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(CWD, dir, flags, Mode::empty())?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{NAME}", dir.as_raw_fd()))?;
    // Who lets others wait for a place in its queue is not waited for.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    let connection = UnixStream::from(socket);
    connection.set_nonblocking(false)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever listens there: its answer is of that directory, it is not waited for without end, and what it says is shown as text.
    #[test]
    fn who_answers_need_not_be_a_recording() {
        let dir = tempfile::tempdir().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(dir.path().join(NAME)).unwrap();
        let answers = |answer: &'static str| {
            let recorder = Recorder::of_directory(dir.path()).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut client, _) = listener.accept().unwrap();
                    let _ = client.write_all(answer.as_bytes());
                    // Byte by byte, as long as somebody reads.
                    while !answer.ends_with('\n') && client.write_all(b" ").is_ok() {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                });
                recorder.ask(&Request::Snapshot, Duration::from_millis(300))
            })
        };
        let theirs = answers("{\"snapshot\":\"/root/other/snapshot-0001\"}\n").unwrap();
        assert_eq!(theirs, Answer::Snapshot(dir.path().join("snapshot-0001")));
        answers("{\"snapshot\":").unwrap_err();
        let said = answers("{\"error\":\"\\u001b[31mred\"}\n").unwrap_err().to_string();
        assert!(said.contains("red") && !said.contains('\u{1b}'), "{said}");
    }

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
