//! Finds a running flight recorder, and asks it for a snapshot.
//!
//! A recording holds a lock on its registry as long as it writes, and `/proc/locks` names the holder: no
//! file with a number in it that could belong to another process by now. SIGUSR1 ends a process that does
//! not expect it, so it is sent only to one that catches it (`SigCgt` of proc_pid_status(5)), through a
//! pidfd that was opened before that was read.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::snapshot::{is_complete, taken};
use crate::collect::discover::Identity;
use ft_trace::spool::Spool;

/// From look to look for the new snapshot.
const LOOK: Duration = Duration::from_millis(20);

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Nobody records into the directory.
    #[error(
        "no flight recorder writes to {0}; start one with `ft-agent record --flight-recorder 10s -o DIR`"
    )]
    NotRecording(PathBuf),
    /// The process is no flight recorder.
    #[error(
        "process {0} is no flight recorder; name the process of `ft-agent record --flight-recorder`, or \
         its directory"
    )]
    NotAFlightRecorder(i32),
    /// The process may not be looked at or signalled.
    #[error("cannot ask process {pid} for a snapshot: {source}; run as its user or as root")]
    Refused {
        /// Process.
        pid: i32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The directory cannot be read.
    #[error("cannot read {path}: {source}; run as the user of the recorder or as root")]
    Unreadable {
        /// Directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It takes too long.
    #[error(
        "no snapshot is complete after {} s; the recorder converts it behind the recording, look again \
         in {dir}", .after.as_secs()
    )]
    Late {
        /// Directory of the recorder.
        dir: PathBuf,
        /// How long it was waited for.
        after: Duration,
    },
}

/// A running flight recorder.
#[derive(Debug)]
pub struct Recorder {
    identity: Identity,
    dir: PathBuf,
}

impl Recorder {
    /// The recorder that writes into the trace directory `dir`.
    ///
    /// # Errors
    ///
    /// When there is none, or the directory may not be looked into.
    pub fn of_directory(dir: &Path) -> Result<Recorder, SnapshotError> {
        let registry = fs::metadata(Spool::of(dir).registry()).map_err(|e| unseen(dir, e))?;
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        let none = || SnapshotError::NotRecording(dir.to_owned());
        let pid = holder(&locks, registry.dev(), registry.ino()).ok_or_else(none)?;
        Recorder::checked(pid, dir.to_owned())
    }

    /// The recorder that is the process `pid`.
    ///
    /// # Errors
    ///
    /// When it is none, or may not be looked at.
    pub fn of_process(pid: i32) -> Result<Recorder, SnapshotError> {
        let entries = fs::read_dir(format!("/proc/{pid}/fd"));
        let entries = entries.map_err(|source| SnapshotError::Refused { pid, source })?;
        let dir = entries
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .find_map(|file| {
                let dir = file.parent()?.parent()?;
                (file == Spool::of(dir).registry()).then(|| dir.to_owned())
            })
            .ok_or(SnapshotError::NotAFlightRecorder(pid))?;
        Recorder::checked(pid, dir)
    }

    fn checked(pid: i32, dir: PathBuf) -> Result<Recorder, SnapshotError> {
        let identity =
            Identity::of(pid).map_err(|source| SnapshotError::Refused { pid, source })?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if !catches(&status, Signal::USR1) {
            return Err(SnapshotError::NotAFlightRecorder(pid));
        }
        Ok(Recorder { identity, dir })
    }

    /// Asks for a snapshot and waits until it can be read; returns its directory.
    ///
    /// # Errors
    ///
    /// When the recorder may not be signalled or has ended, or after `patience`.
    pub fn snapshot(&self, patience: Duration) -> Result<PathBuf, SnapshotError> {
        let pid = self.identity.pid;
        let look = || {
            let found = taken(&self.dir);
            found.map_err(|source| SnapshotError::Unreadable { path: self.dir.clone(), source })
        };
        // Also those that become complete meanwhile: they end before now.
        let before = look()?;
        let pidfd = self.identity.pidfd.as_ref().ok_or(Errno::SRCH);
        pidfd
            .and_then(|pidfd| pidfd_send_signal(pidfd, Signal::USR1))
            .map_err(|e| SnapshotError::Refused { pid, source: e.into() })?;
        let began = Instant::now();
        loop {
            let mut new = look()?.into_iter().filter(|dir| !before.contains(dir));
            if let Some(new) = new.find(|dir| is_complete(dir)) {
                return Ok(new);
            }
            if began.elapsed() >= patience {
                return Err(SnapshotError::Late { dir: self.dir.clone(), after: patience });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Why a directory shows no recorder: who may not look does not know that there is none.
fn unseen(dir: &Path, source: io::Error) -> SnapshotError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            SnapshotError::Unreadable { path: dir.to_owned(), source }
        }
        _ => SnapshotError::NotRecording(dir.to_owned()),
    }
}

/// Somebody records into the trace directory `dir`.
pub(crate) fn is_recorded(dir: &Path) -> bool {
    let Ok(registry) = fs::metadata(Spool::of(dir).registry()) else { return false };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    holder(&locks, registry.dev(), registry.ino()).is_some()
}

/// Who holds a lock of flock(2) on this file, in the form of `/proc/locks` (proc_locks(5)).
fn holder(locks: &str, device: u64, inode: u64) -> Option<i32> {
    let file =
        format!("{:02x}:{:02x}:{inode}", rustix::fs::major(device), rustix::fs::minor(device));
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            // A line with `->` waits for the lock.
            [_, "FLOCK", _, _, pid, at, ..] if at == file => pid.parse().ok().filter(|&p| p > 0),
            _ => None,
        }
    })
}

/// The process has a handler for this signal, by its `/proc/PID/status`.
fn catches(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let device = rustix::fs::makedev(0xfe, 1);
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 0 fe:01:99 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 4711 fe:01:77 0 EOF\n";
        assert_eq!(holder(locks, device, 77), Some(4711));
        assert_eq!(holder(locks, device, 78), None);
        assert_eq!(holder(locks, rustix::fs::makedev(0xfe, 2), 77), None);
        assert_eq!(holder(locks, device, 99), None, "held in a PID namespace that is not ours");
        assert_eq!(holder("nonsense\n\n", device, 77), None);
    }

    #[test]
    fn who_may_not_look_is_not_told_that_there_is_no_recorder() {
        let said = |kind: io::ErrorKind| unseen(Path::new("t"), kind.into()).to_string();
        let denied = said(io::ErrorKind::PermissionDenied);
        assert_eq!(
            denied,
            "cannot read t: permission denied; run as the user of the recorder or as root"
        );
        assert!(said(io::ErrorKind::NotFound).starts_with("no flight recorder writes to t;"));
    }

    #[test]
    fn signals_that_are_caught() {
        let status = "Name:\tx\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000200\n";
        assert!(catches(status, Signal::USR1));
        assert!(!catches(status, Signal::USR2));
        assert!(!catches("", Signal::USR1));
        assert!(!catches("SigCgt:\tzz\n", Signal::USR1));
    }

    #[test]
    fn what_is_no_recorder_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let error = Recorder::of_directory(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with("no flight recorder writes to"), "{error}");
        let error = Recorder::of_process(std::process::id() as i32).unwrap_err().to_string();
        assert!(error.contains("is no flight recorder"), "{error}");
        assert!(matches!(Recorder::of_process(-1), Err(SnapshotError::Refused { .. })));
    }
}
