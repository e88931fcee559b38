//! Appends frames to the spool.
//!
//! Rule: whole frames only. Frames collect in memory and go out with `write` at the end of each
//! collection round ([`Writer::flush`]) and whenever [`BUFFER_BYTES`] have come together, the registry
//! before the segment that refers to it. What `write` has taken belongs to the kernel: an agent killed
//! at any instruction loses at most the round in hand, and a cut last frame is recognised by its
//! reader. When the disk is full, the half frame is cut off again and the recording ends readable.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::anchor::{self, Amounts, Anchor, BETWEEN_ANCHORS, Token};
use super::frame::{ClockSample, End, Frame, Start};
use super::{REGISTRY, Reader, Spool, segment_name};
use crate::dir::Dir;

/// Frames are handed to the kernel when so many bytes have come together: a system call's price divided by
/// many pages, and still in the second-level cache.
const BUFFER_BYTES: usize = 1 << 18;

/// A registry that is smaller is left as it is.
const COMPACT_BYTES: u64 = 64 << 10;

/// When a segment is closed, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size, bytes; a segment exceeds it by less than one collection round.
    pub bytes: u64,
    /// Age.
    pub age: Duration,
}

/// The spool cannot be written any more; what was written before stays readable.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// File concerned, in `DIR/spool`.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: io::Error,
}

impl WriteError {
    /// What helps before anything is written again.
    pub fn remedy(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull => "make room",
            io::ErrorKind::QuotaExceeded => "make room or raise the quota",
            io::ErrorKind::FileTooLarge => "raise the limit of file sizes (`ulimit -f`)",
            _ if self.source.raw_os_error() == Some(libc::EMFILE) => {
                "raise the limit of open files (`ulimit -n`)"
            }
            _ => "check the disk",
        }
    }

    /// Directory of the trace, `DIR`.
    pub fn trace(&self) -> &Path {
        self.path.parent().and_then(Path::parent).unwrap_or(&self.path)
    }
}

/// One file and the frames that are not yet handed to the kernel.
struct Appender {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes handed over: the file ends here, at the end of a frame.
    written: u64,
    token: Token,
    /// What was pushed, and how many bytes of the file were there at the last anchor.
    pushed: Amounts,
    anchored: u64,
}

impl Appender {
    /// A file of the recording with this token, which begins with an anchor.
    fn create(dir: &Dir, name: &str, token: Token) -> Result<Appender, WriteError> {
        let path = dir.path().join(name);
        match dir.create_file(name) {
            Ok(file) => {
                let (buffer, written, pushed, anchored) = (Vec::new(), 0, Amounts::default(), 0);
                let mut new = Appender { file, path, buffer, written, token, pushed, anchored };
                new.anchor();
                Ok(new)
            }
            Err(source) => Err(WriteError { path, source }),
        }
    }

    /// Held as long as the file is open: by it a conversion knows that the recording goes on.
    fn lock(&self) -> Result<(), WriteError> {
        let locked = flock(&self.file, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|e| WriteError { path: self.path.clone(), source: e.into() })
    }

    fn push(&mut self, frame: &Frame<'_>) {
        if self.bytes() - self.anchored >= BETWEEN_ANCHORS as u64 {
            self.anchor();
        }
        frame.encode(&mut self.buffer);
        self.pushed.add(frame);
    }

    /// Begins a chunk.
    fn anchor(&mut self) {
        Frame::Anchor(Anchor { token: self.token, before: self.pushed }).encode(&mut self.buffer);
        self.anchored = self.bytes();
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(source) = self.file.write_all_at(&self.buffer, self.written) {
            self.keep_whole_frames();
            return Err(WriteError { path: self.path.clone(), source });
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// After a failed write: keeps the whole frames that went out, cuts the rest off.
    fn keep_whole_frames(&mut self) {
        let landed = self.file.metadata().map_or(0, |m| m.len().saturating_sub(self.written));
        let mut whole = 0;
        while let Some(data) = self.buffer.get(whole..)
            && let Ok((_, bytes)) = Frame::decode(data)
            && (whole + bytes) as u64 <= landed
        {
            whole += bytes;
        }
        self.written += whole as u64;
        self.buffer.clear();
        // Should this fail as well, the reader finds the cut frame by its length and checksum.
        let _ = self.file.set_len(self.written);
    }

    /// Size of the file when everything is handed over.
    fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }
}

/// A segment that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u32,
    /// CLOCK_MONOTONIC of its first clock sample, ns.
    pub from_ns: i64,
    /// CLOCK_MONOTONIC of its last clock sample, ns.
    pub to_ns: i64,
    /// Size.
    pub bytes: u64,
}

/// Writes a spool.
pub struct Writer {
    dir: Dir,
    limits: Limits,
    registry: Appender,
    /// Size of the registry when it was compacted last.
    compacted: u64,
    segment: Appender,
    number: u32,
    opened: Instant,
    opened_ns: i64,
    /// Bytes of the segments that are closed.
    closed_bytes: u64,
}

impl Writer {
    /// Creates the registry with `start`, and segment 0 with `clock`.
    ///
    /// # Errors
    ///
    /// A [`WriteError`].
    pub fn create(
        spool: Spool,
        limits: Limits,
        start: Start,
        clock: ClockSample,
    ) -> Result<Writer, WriteError> {
        let dir = spool.hold().map_err(|source| WriteError { path: spool.registry(), source })?;
        let token =
            anchor::token().map_err(|source| WriteError { path: spool.registry(), source })?;
        let mut registry = Appender::create(&dir, REGISTRY, token)?;
        registry.lock()?;
        registry.push(&Frame::Start(Start { token: anchor::told(&token), ..start }));
        let mut segment = Appender::create(&dir, &segment_name(0), token)?;
        segment.push(&Frame::Clock(clock));
        let mut writer = Writer {
            dir,
            limits,
            registry,
            compacted: 0,
            segment,
            number: 0,
            opened: Instant::now(),
            opened_ns: clock.mono_ns,
            closed_bytes: 0,
        };
        writer.flush()?;
        Ok(writer)
    }

    /// Appends a frame: to the registry when its kind belongs there, else to the open segment.
    ///
    /// # Errors
    ///
    /// A [`WriteError`], when the buffer was full and could not be handed over.
    pub fn push(&mut self, frame: &Frame<'_>) -> Result<(), WriteError> {
        match frame {
            Frame::Start(_)
            | Frame::Process(_)
            | Frame::Directory(_)
            | Frame::Thread(_)
            | Frame::Mappings(_)
            | Frame::Refused(_)
            | Frame::End(_) => self.registry.push(frame),
            Frame::Clock(_)
            | Frame::Slots(_)
            | Frame::Shared(_)
            | Frame::Kernel(_)
            | Frame::Loss(_)
            | Frame::Anchor(_) => self.segment.push(frame),
        }
        let pending = self.registry.buffer.len() + self.segment.buffer.len();
        if pending >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Hands everything to the kernel: what was pushed survives the agent from here on.
    ///
    /// # Errors
    ///
    /// A [`WriteError`]; whole frames that went out stay.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.registry.flush()?;
        self.segment.flush()
    }

    /// Number of the open segment.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The open segment has reached a limit.
    pub fn is_due(&self) -> bool {
        self.segment.bytes() >= self.limits.bytes || self.opened.elapsed() >= self.limits.age
    }

    /// Closes the open segment with `clock` and begins the next with the same sample. Returns the closed
    /// one.
    ///
    /// # Errors
    ///
    /// A [`WriteError`].
    pub fn rotate(&mut self, clock: ClockSample) -> Result<Segment, WriteError> {
        // Damage before it leaves the sample.
        self.segment.anchor();
        self.push(&Frame::Clock(clock))?;
        self.flush()?;
        let closed = self.closed(clock);
        let name = segment_name(closed.number + 1);
        let mut next = Appender::create(&self.dir, &name, self.segment.token)?;
        next.push(&Frame::Clock(clock));
        self.closed_bytes += self.segment.bytes();
        self.segment = next;
        self.number += 1;
        (self.opened, self.opened_ns) = (Instant::now(), clock.mono_ns);
        Ok(closed)
    }

    /// The registry has at least doubled since it was compacted.
    pub fn is_registry_large(&self) -> bool {
        self.registry.bytes() >= COMPACT_BYTES.max(2 * self.compacted)
    }

    /// Leaves out of the registry what `keep` refuses: writes it anew and puts it in the place of the old,
    /// which whoever has it open can read on, but which does not grow any more.
    ///
    /// # Errors
    ///
    /// A [`WriteError`]; the registry is then as it was.
    pub fn compact(&mut self, keep: impl Fn(&Frame<'_>) -> bool) -> Result<(), WriteError> {
        self.registry.flush()?;
        const ASIDE: &str = "registry.new";
        let mut next = Appender::create(&self.dir, ASIDE, self.registry.token)?;
        let (dir, path, aside) = (&self.dir, self.registry.path.clone(), next.path.clone());
        let fail = |source| WriteError { path: aside.clone(), source };
        let mut fill = || {
            next.lock()?;
            let mut reader = Reader::of(dir.open_file(REGISTRY).map_err(fail)?, path.clone());
            while let Some(frame) = reader.next().map_err(|e| fail(e.source))? {
                if keep(&frame) {
                    next.push(&frame);
                }
            }
            next.flush()?;
            dir.publish(ASIDE, REGISTRY).map_err(fail)
        };
        if let Err(error) = fill() {
            let _ = self.dir.remove(ASIDE);
            return Err(error);
        }
        next.path = path;
        self.compacted = next.bytes();
        self.registry = next;
        Ok(())
    }

    fn closed(&self, clock: ClockSample) -> Segment {
        let (number, bytes) = (self.number, self.segment.bytes());
        Segment { number, from_ns: self.opened_ns, to_ns: clock.mono_ns, bytes }
    }

    /// Closes the spool: the last clock sample and `end`, in which `bytes` is filled in. Returns the
    /// last segment.
    ///
    /// # Errors
    ///
    /// A [`WriteError`].
    pub fn finish(mut self, clock: ClockSample, end: End) -> Result<Segment, WriteError> {
        // The two files are independent: one that cannot be closed must not keep the other open.
        self.segment.anchor();
        self.segment.push(&Frame::Clock(clock));
        let segment = self.segment.flush();
        let end = End { bytes: self.bytes(), ..end };
        self.registry.anchor();
        self.registry.push(&Frame::End(end));
        let registry = self.registry.flush();
        segment.and(registry)?;
        Ok(self.closed(clock))
    }

    /// Bytes of the whole spool, with those of segments that are converted and gone.
    pub fn bytes(&self) -> u64 {
        self.closed_bytes + self.registry.bytes() + self.segment.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write that failed after some bytes, at every possible place.
    #[test]
    fn a_full_disk_leaves_whole_frames() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = Dir::open(temporary.path()).unwrap();
        let mut frames = Vec::new();
        let ends = [3, 100, 0].map(|n| {
            Frame::Kernel(&vec![n as u8; n]).encode(&mut frames);
            frames.len()
        });
        for landed in 0..=frames.len() {
            let mut out = Appender::create(&dir, &landed.to_string(), [0; 16]).unwrap();
            out.buffer = frames.clone();
            out.file.write_all_at(&frames[..landed], 0).unwrap();
            out.keep_whole_frames();
            let whole = ends.iter().rev().find(|&&end| end <= landed).map_or(0, |&end| end);
            assert_eq!(out.bytes(), whole as u64);
            assert_eq!(std::fs::read(&out.path).unwrap(), frames[..whole]);
        }
    }

    #[test]
    fn a_full_disk_is_told_from_other_errors() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let path = PathBuf::from("/traces/mine/spool/segment-000000.ft");
        let (pushed, token) = (Amounts::default(), [0; 16]);
        let mut out =
            Appender { file, path, buffer: vec![0], written: 0, token, pushed, anchored: 0 };
        let error = out.flush().unwrap_err();
        assert_eq!(error.remedy(), "make room");
        assert_eq!(error.trace(), Path::new("/traces/mine"));
    }
}
