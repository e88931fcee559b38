//! A snapshot: the segments of the window and the registry, as a spool of its own, then a trace.
//!
//! Closed segments are never written again, so a second name for each ([`std::fs::hard_link`]) is a copy
//! that costs nothing, and that stays when the recorder deletes its own.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::FlightError;
use ft_report::analyze;
use ft_trace::convert;
use ft_trace::dir::Dir;
use ft_trace::spool::frame::{End, Frame, Start};
use ft_trace::spool::{REGISTRY, Reader, Spool, segment_name};
use ft_trace::store::Trace;

/// What is to be in a snapshot.
#[derive(Debug)]
pub(super) struct Plan {
    /// Directory of the new trace.
    pub(super) dir: PathBuf,
    /// Segments of the recorder.
    pub(super) segments: Vec<u32>,
    /// Begin of the window, CLOCK_MONOTONIC ns.
    pub(super) from_ns: i64,
    /// Its end.
    pub(super) to_ns: i64,
    /// Why it is taken.
    pub(super) reason: String,
}

impl Plan {
    /// Makes the spool of the snapshot.
    pub(super) fn take(&self, recorder: &Spool) -> Result<(), FlightError> {
        let registry = self.registry(&recorder.registry())?;
        self.make(recorder, &registry)
            .map_err(|source| FlightError::Write { path: self.dir.clone(), source })
    }

    fn make(&self, recorder: &Spool, registry: &[u8]) -> io::Result<()> {
        let (from, name) = (recorder.hold()?, self.dir.file_name().and_then(|name| name.to_str()));
        let recorder = Dir::open(self.dir.parent().unwrap_or(Path::new("/")))?;
        let trace = recorder.make_dir(name.unwrap_or_default())?;
        let spool = Spool::create_in(&trace)?.hold()?;
        for &number in &self.segments {
            from.link(&segment_name(number), &spool)?;
        }
        spool.create_file(REGISTRY)?.write_all(registry)
    }

    /// The registry as it is now, with the window in its start and an end of its own.
    fn registry(&self, path: &Path) -> Result<Vec<u8>, FlightError> {
        let mut out = Vec::new();
        let mut end =
            End { ts: self.to_ns, reason: format!("snapshot: {}", self.reason), ..End::default() };
        let mut reader = Reader::open(path)?;
        while let Some(frame) = reader.next()? {
            match frame {
                Frame::Start(start) => {
                    let window_from_ns = Some(self.from_ns);
                    let start_ns = self.from_ns;
                    Frame::Start(Start { start_ns, window_from_ns, ..start }).encode(&mut out);
                }
                Frame::End(last) => end.exit_code = last.exit_code,
                other => other.encode(&mut out),
            }
        }
        Frame::End(end).encode(&mut out);
        Ok(out)
    }
}

/// Makes a trace of the spool of a snapshot, and analyses it.
pub(super) fn finish(dir: &Path) -> Result<(), FlightError> {
    convert::convert(dir, |_, _| {})?;
    analyze::analyze(&Trace::open_recorded(dir)?)?;
    Ok(())
}

/// The snapshots of a recorder that are complete, in the order in which they were taken.
///
/// # Errors
///
/// When the directory cannot be read.
pub fn complete(recorder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = taken(recorder)?;
    found.retain(|dir| is_complete(dir));
    Ok(found)
}

/// All snapshots, those too of which no trace has been made yet.
pub(super) fn taken(recorder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(recorder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if name.starts_with(PREFIX) {
            found.push(path);
        }
    }
    // Numbers of four digits or more.
    found.sort_unstable_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}

/// The snapshot is a trace that is analysed.
pub(super) fn is_complete(snapshot: &Path) -> bool {
    snapshot.join(analyze::ANALYSIS_FILE).exists()
}

/// First part of the name of a snapshot's directory.
const PREFIX: &str = "snapshot-";

/// Directory of snapshot `number`.
pub(super) fn dir(recorder: &Path, number: u32) -> PathBuf {
    recorder.join(format!("{PREFIX}{number:04}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_found_in_their_order() {
        let recorder = tempfile::tempdir().unwrap();
        let dir = |number| dir(recorder.path(), number);
        for number in [10_000, 2, 9999, 1] {
            fs::create_dir(dir(number)).unwrap();
        }
        for number in [10_000, 1, 9999] {
            fs::write(dir(number).join(analyze::ANALYSIS_FILE), "").unwrap();
        }
        assert_eq!(taken(recorder.path()).unwrap(), [1, 2, 9999, 10_000].map(dir));
        assert_eq!(complete(recorder.path()).unwrap(), [1, 9999, 10_000].map(dir));
    }
}
