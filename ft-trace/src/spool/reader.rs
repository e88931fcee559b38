//! Reads the frames of one spool file.
//!
//! Rule: frames are taken from the start of the file until the first that is cut short or damaged;
//! nothing behind it can be trusted, since lengths chain the frames. A file that is still being
//! written can be read too: [`Reader::next`] returns `None` at its present end and goes on when
//! there is more. Memory: one frame.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::frame::{self, Frame, FrameError};
use crate::dir;

/// Bytes asked of the kernel at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// A spool file could not be read at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {source}; check that the trace directory is complete and readable")]
pub struct ReadError {
    /// File concerned.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: io::Error,
}

/// What stands behind the last good frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File concerned.
    pub path: PathBuf,
    /// End of the last good frame.
    pub offset: u64,
    /// Bytes from there to the end of the file, not read.
    pub bytes: u64,
    /// Why the next frame was refused.
    pub reason: FrameError,
}

/// Iterates over the frames of a file.
pub struct Reader {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// First byte of `buffer` that is not yet returned in a frame.
    start: usize,
    /// Offset in the file of that byte.
    offset: u64,
    /// What lies behind it is not read.
    end: u64,
    reason: FrameError,
}

/// Some whole frames of a file that may still be written.
#[derive(Debug)]
pub struct Piece {
    pub(super) file: File,
    /// The file, for messages.
    pub path: PathBuf,
    /// Where they begin.
    pub from: u64,
    /// Where they end.
    pub to: u64,
}

impl Piece {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] when there is no descriptor to be had.
    pub fn reader(&self) -> Result<Reader, ReadError> {
        let file = self.file.try_clone();
        let file = file.map_err(|source| ReadError { path: self.path.clone(), source })?;
        let reader = Reader::of(file, self.path.clone());
        Ok(Reader { offset: self.from, end: self.to, ..reader })
    }
}

impl Reader {
    /// Opens a file of a spool.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] when it cannot be opened.
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        match dir::open_regular(path) {
            Ok(file) => Ok(Reader::of(file, path.to_owned())),
            Err(source) => Err(ReadError { path: path.to_owned(), source }),
        }
    }

    /// Reads an open file of a spool.
    pub fn of(file: File, path: PathBuf) -> Reader {
        let reason = FrameError::Truncated;
        Reader { file, path, buffer: Vec::new(), start: 0, offset: 0, end: u64::MAX, reason }
    }

    /// The next frame; `None` at the end of what can be read (see [`Reader::damage`]).
    ///
    /// # Errors
    ///
    /// A [`ReadError`] when the kernel refuses to read; damage is no error.
    #[expect(clippy::should_implement_trait, reason = "a frame borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        if self.reason != FrameError::Truncated {
            return Ok(None);
        }
        self.fill(frame::HEADER_BYTES)?;
        if let Some(bytes) = frame::declared_bytes(&self.buffer[self.start..]) {
            self.fill(bytes)?;
        }
        match Frame::decode(&self.buffer[self.start..]) {
            Ok((frame, bytes)) => {
                self.start += bytes;
                self.offset += bytes as u64;
                Ok(Some(frame))
            }
            Err(reason) => {
                self.reason = reason;
                Ok(None)
            }
        }
    }

    /// What [`Reader::next`] left unread: `None` when the file ended with its last frame.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] when the size of the file cannot be read.
    pub fn damage(&self) -> Result<Option<Damage>, ReadError> {
        let size = self.file.metadata().map_err(|e| self.error(e))?.len();
        let bytes = size.saturating_sub(self.offset);
        Ok((bytes > 0).then(|| Damage {
            path: self.path.clone(),
            offset: self.offset,
            bytes,
            reason: self.reason.clone(),
        }))
    }

    /// Another file has come into the place of this one, which does not grow any more.
    pub fn is_replaced(&self) -> bool {
        let inode = |file: io::Result<fs::Metadata>| file.ok().map(|file| file.ino());
        inode(self.file.metadata()) != inode(fs::metadata(&self.path))
    }

    /// Reads until `wanted` bytes stand in the buffer, or the file ends.
    fn fill(&mut self, wanted: usize) -> Result<(), ReadError> {
        if self.buffer.len() - self.start >= wanted {
            return Ok(());
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        while self.buffer.len() < wanted {
            let have = self.buffer.len();
            let at = self.offset + have as u64;
            let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
            self.buffer.resize(have + CHUNK_BYTES.max(wanted - have).min(left), 0);
            let got = self.file.read_at(&mut self.buffer[have..], at);
            self.buffer.truncate(have + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error(e)),
            }
        }
        Ok(())
    }

    fn error(&self, source: io::Error) -> ReadError {
        ReadError { path: self.path.clone(), source }
    }
}
