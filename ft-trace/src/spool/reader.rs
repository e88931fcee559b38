//! Reads the frames of one spool file.
//!
//! Rule: frames are taken from the start of the file. Behind one that is cut short or damaged nothing can be trusted up to the
//! next anchor ([`super::anchor`]), since lengths chain the frames: there reading goes on, and what lies between is a [`Gap`]. Where no
//! anchor follows, or none is known, the rest is not read. A file that is still being
//! written can be read too: [`Reader::next`] returns `None` at its present end and goes on when
//! there is more. Memory: one frame.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::anchor::{self, Amounts, Gap, Token};
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
    /// What anchors have, once it is known.
    token: Option<Token>,
    /// What was returned, and what was lost.
    counted: Amounts,
    gaps: Vec<Gap>,
    /// The newest gap has no count yet.
    is_uncounted: bool,
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
        Reader {
            file,
            path,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            end: u64::MAX,
            reason,
            token: None,
            counted: Amounts::default(),
            gaps: Vec::new(),
            is_uncounted: false,
        }
    }

    /// Tells what anchors have, as [`Start::token`](frame::Start::token) does: for a file whose first anchor may be damaged.
    #[must_use]
    pub fn with_token(self, told: &str) -> Reader {
        Reader { token: anchor::parse(told).or(self.token), ..self }
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
        let mut is_again = false;
        let (kind, bytes) = loop {
            self.fill(frame::HEADER_BYTES)?;
            if let Some(bytes) = frame::declared_bytes(&self.buffer[self.start..]) {
                self.fill(bytes)?;
            }
            match frame::whole(&self.buffer[self.start..]) {
                Ok((kind, bytes)) if kind == frame::ANCHOR => self.anchor(bytes),
                Ok(whole) => break whole,
                Err(reason) => match self.next_anchor()? {
                    // A frame that was being written is whole once an anchor stands behind it: it is read again.
                    Some(_) if reason == FrameError::Truncated && !is_again => is_again = true,
                    Some(anchor) => self.go_on(anchor, reason),
                    None => {
                        self.reason = reason;
                        return Ok(None);
                    }
                },
            }
        };
        let payload = &self.buffer[self.start + frame::HEADER_BYTES..self.start + bytes];
        match Frame::of(kind, payload) {
            Some(frame) => {
                self.counted.add(&frame);
                self.start += bytes;
                self.offset += bytes as u64;
                Ok(Some(frame))
            }
            None => {
                self.reason = FrameError::Malformed(kind);
                Ok(None)
            }
        }
    }

    /// Passes an anchor.
    fn anchor(&mut self, bytes: usize) {
        let payload = &self.buffer[self.start + frame::HEADER_BYTES..self.start + bytes];
        if let Some(Frame::Anchor(anchor)) = Frame::of(frame::ANCHOR, payload) {
            // A file's own first anchor is as good as its start.
            let known = *self.token.get_or_insert(anchor.token);
            if std::mem::take(&mut self.is_uncounted)
                && let Some(gap) = self.gaps.last_mut()
                && known == anchor.token
            {
                gap.lost = anchor.before.without(&self.counted);
                self.counted = anchor.before;
            }
        }
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Goes to this anchor, which is the next one.
    fn go_on(&mut self, anchor: u64, reason: FrameError) {
        let (offset, bytes) = (self.offset, anchor - self.offset);
        self.gaps.push(Gap { offset, bytes, reason, lost: Amounts::default() });
        self.is_uncounted = true;
        self.buffer.clear();
        (self.start, self.offset) = (0, anchor);
    }

    /// Where the next anchor is, if there is one.
    fn next_anchor(&self) -> Result<Option<u64>, ReadError> {
        let Some(token) = self.token else { return Ok(None) };
        let mut at = self.offset + 1;
        let mut window = vec![0; CHUNK_BYTES];
        loop {
            let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
            let wanted = window.len().min(left);
            let got = match self.file.read_at(&mut window[..wanted], at) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                got => got.map_err(|e| self.error(e))?,
            };
            let places = window[..got].windows(token.len()).enumerate();
            for (place, _) in places.filter(|(_, bytes)| *bytes == token) {
                // Its header stands before it.
                let Some(start) = (at + place as u64).checked_sub(frame::HEADER_BYTES as u64)
                else {
                    continue;
                };
                if start > self.offset && self.is_anchor(start, &token)? {
                    return Ok(Some(start));
                }
            }
            if got <= token.len() {
                return Ok(None);
            }
            // One that lies across the windows is in the next.
            at += (got - token.len() + 1) as u64;
        }
    }

    fn is_anchor(&self, at: u64, token: &Token) -> Result<bool, ReadError> {
        let mut bytes = [0; frame::ANCHOR_BYTES];
        match self.file.read_exact_at(&mut bytes, at) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read.map_err(|e| self.error(e))?,
        }
        let frame = Frame::decode(&bytes);
        Ok(matches!(frame, Ok((Frame::Anchor(anchor), _)) if anchor.token == *token))
    }

    /// What could not be read so far, and lies before what could.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// What the file has up to the last anchor or frame, read or lost.
    pub fn counted(&self) -> Amounts {
        self.counted
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
