//! Follows the segments of a running recording, frame by frame, and skips what is too much.
//!
//! Whoever watches a recording has less time than the recording takes. So of what is new the newest is read, as much as
//! is asked for; of all before it only the headers, which chain the frames, and the few frames that say what the rest
//! means: clock samples, and losses. Where there is no time even for the headers, what comes next is read instead of the
//! newest, so that something is, and it goes on from there; a new segment begins with a frame, so there it has caught up.
//! Frames are not searched for by their first bytes: a program can write these.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{self, ANCHOR_BYTES, ClockSample, Frame, HEADER_BYTES};
use super::reader::Piece;
use super::{ReadError, Spool};
use crate::dir;

/// Read at a time while small frames are skipped: several headers.
const BLOCK_BYTES: usize = 4 << 10;

/// Headers from look to look whether there is time left.
const HEADERS: usize = 256;

/// Where it is.
#[derive(Debug)]
struct At {
    number: u32,
    file: File,
    offset: u64,
    /// Up to there bytes were counted as new.
    counted: u64,
}

/// How much is to be read.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The newest so many bytes, in whole frames; 0 for nothing at all.
    pub bytes: u64,
    /// So many, if the frame in which these begin would else be left out: frames may be longer than `bytes`.
    pub at_most: u64,
}

/// What came since the last time.
#[derive(Debug, Default)]
pub struct News {
    /// What is to be read, in the order in which it was written.
    pub pieces: Vec<Piece>,
    /// Frames before `pieces` are in none.
    pub skipped: bool,
    /// Clock samples among these.
    pub samples: Vec<ClockSample>,
    /// Bytes that were written since the last time; 0 the first time.
    pub bytes: u64,
    /// Bytes in `pieces`.
    pub kept_bytes: u64,
    /// Bytes behind `pieces`, which are there and wait for the next time.
    pub left_bytes: u64,
    /// What was lost, by all frames that report it; 0 the first time.
    pub lost: u64,
    /// Not even all headers were read: there may be more in what is skipped.
    pub is_unread: bool,
}

/// Follows one recording.
#[derive(Debug)]
pub struct Tail {
    spool: Spool,
    at: Option<At>,
}

impl Tail {
    /// Of the recording with this spool, from the segment on that is being written.
    pub fn new(spool: Spool) -> Tail {
        Tail { spool, at: None }
    }

    /// What came since the last time: the newest of it in pieces, as much as is `wanted`, and what is known of the rest.
    /// Where there is no `time` for the rest, not the newest but what comes next is in pieces.
    ///
    /// # Errors
    ///
    /// A [`ReadError`]. A segment that was deleted is none.
    pub fn read(
        &mut self,
        wanted: Wanted,
        mut time: impl FnMut() -> bool,
    ) -> Result<News, ReadError> {
        let mut news = News::default();
        let error = |source| ReadError { path: self.spool.dir().to_owned(), source };
        let mut numbers = self.spool.segments().map_err(error)?;
        let is_first = self.at.is_none();
        match &self.at {
            Some(at) => {
                news.skipped = !numbers.contains(&at.number);
                numbers.retain(|number| *number >= at.number);
            }
            None => drop(numbers.drain(..numbers.len().saturating_sub(1))),
        }
        let (mut files, mut there) = (Vec::new(), 0);
        for number in numbers {
            if let Some(mut at) = self.open(number)? {
                let size = at.file.metadata().map_err(|source| self.error(number, source))?.len();
                there += size.saturating_sub(at.offset);
                news.bytes += size.saturating_sub(at.counted);
                at.counted = at.counted.max(size);
                files.push((at, size));
            }
        }
        let mut walk = Walk {
            skip: there.saturating_sub(wanted.bytes),
            wanted,
            time: &mut time,
            news: &mut news,
        };
        let count = files.len();
        for (i, (mut at, size)) in files.into_iter().enumerate() {
            let is_last = i + 1 == count;
            let walked = walk.segment(&mut at, size, is_last);
            let from = walked.map_err(|source| self.error(at.number, source))?;
            if from < at.offset {
                let file = at.file.try_clone().map_err(|source| self.error(at.number, source))?;
                let path = self.spool.segment(at.number);
                walk.news.kept_bytes += at.offset - from;
                walk.news.pieces.push(Piece { file, path, from, to: at.offset });
            }
            if is_last {
                self.at = Some(at);
            }
        }
        if is_first {
            // It was there before.
            (news.bytes, news.lost) = (0, 0);
        }
        Ok(news)
    }

    /// A segment where it was left, or at its begin.
    fn open(&mut self, number: u32) -> Result<Option<At>, ReadError> {
        if let Some(at) = self.at.take_if(|at| at.number == number) {
            return Ok(Some(at));
        }
        match dir::open_regular(&self.spool.segment(number)) {
            Ok(file) => Ok(Some(At { number, file, offset: 0, counted: 0 })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.error(number, e)),
        }
    }

    fn error(&self, number: u32, source: io::Error) -> ReadError {
        ReadError { path: self.spool.segment(number), source }
    }
}

/// From frame to frame, over what is skipped and on to the end.
struct Walk<'a, T> {
    /// Bytes that are still to be skipped.
    skip: u64,
    wanted: Wanted,
    time: &'a mut T,
    news: &'a mut News,
}

impl<T: FnMut() -> bool> Walk<'_, T> {
    /// Goes through a segment, the last one or not; returns where the frames begin that are to be read.
    fn segment(&mut self, at: &mut At, size: u64, is_last: bool) -> io::Result<u64> {
        let (mut block, mut block_at, mut block_bytes) = (Vec::new(), 0, BLOCK_BYTES);
        let mut from = at.offset;
        // There was no time to come to the newest.
        let mut is_late = false;
        for n in 1.. {
            let asks = n % HEADERS == 0 || n == 1 && !is_last;
            if asks && self.skip > 0 && !(self.time)() {
                self.news.is_unread = true;
                if !is_last {
                    // The next begins with a frame.
                    self.news.skipped = true;
                    self.skip = self.skip.saturating_sub(size - at.offset);
                    return Ok(at.offset);
                }
                (self.skip, is_late) = (0, true);
            }
            let have = at.offset.checked_sub(block_at).and_then(|o| block.get(o as usize..));
            let mut header: &[u8] = have.unwrap_or_default();
            if header.len() < HEADER_BYTES {
                block.resize(block_bytes, 0);
                let got = at.file.read_at(&mut block, at.offset)?;
                block.truncate(got);
                block_at = at.offset;
                header = &block;
            }
            let Some(bytes) = frame::declared_bytes(header) else { break };
            let next = at.offset + bytes as u64;
            // What is being written.
            if next > size {
                break;
            }
            let (kept, Wanted { bytes: wanted, at_most }) = (at.offset - from, self.wanted);
            let is_too_long = is_late && next - from > at_most;
            if is_late && kept >= wanted || is_too_long && kept > 0 {
                self.news.left_bytes = size - at.offset;
                break;
            }
            if self.skip < bytes as u64 && wanted > 0 && self.skip + wanted <= at_most {
                self.skip = 0;
            }
            if frame::is_told_always(header) {
                let mut whole = vec![0; bytes];
                at.file.read_exact_at(&mut whole, at.offset)?;
                match Frame::decode(&whole) {
                    Ok((Frame::Clock(sample), _)) if self.skip > 0 => {
                        self.news.samples.push(sample);
                    }
                    Ok((Frame::Loss(loss), _)) => {
                        self.news.lost = self.news.lost.saturating_add(loss.count);
                    }
                    _ => {}
                }
            }
            // Of large frames a page would be read for each header; the next may be behind an anchor.
            block_bytes =
                if bytes > BLOCK_BYTES { ANCHOR_BYTES + HEADER_BYTES } else { BLOCK_BYTES };
            at.offset = next;
            if self.skip > 0 || is_too_long {
                self.skip = self.skip.saturating_sub(bytes as u64);
                self.news.skipped = true;
                from = at.offset;
            }
        }
        Ok(if self.skip > 0 { at.offset } else { from })
    }
}

#[cfg(test)]
mod tests;
