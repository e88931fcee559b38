//! Follows the segments of a running recording, frame by frame, and skips what is too much.
//!
//! Whoever watches a recording has less time than the recording takes. So of what is new the newest is read, as much as
//! is asked for; of all before it only the headers, which chain the frames, and the few frames that say what the rest
//! means: clock samples, and losses.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{self, ClockSample, Frame, HEADER_BYTES};
use super::reader::Piece;
use super::{ReadError, Spool};
use crate::dir;

/// Read at a time while frames are skipped: several headers where frames are small, and no more than a page of one that is
/// large.
const BLOCK_BYTES: usize = 4 << 10;

/// Headers from look to look whether there is time left.
const HEADERS: usize = 256;

/// Where it is.
#[derive(Debug)]
struct At {
    number: u32,
    file: File,
    offset: u64,
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
    /// New bytes, read or skipped.
    pub bytes: u64,
    /// Of these, in `pieces`.
    pub kept_bytes: u64,
    /// What was lost, by all frames that tell it.
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

    /// What came since the last time: the newest `most` bytes of it in pieces, and what is told of the rest, while there
    /// is `time`.
    ///
    /// # Errors
    ///
    /// A [`ReadError`]. A segment that was deleted is none.
    pub fn read(&mut self, most: u64, mut time: impl FnMut() -> bool) -> Result<News, ReadError> {
        let mut news = News::default();
        let error = |source| ReadError { path: self.spool.dir().to_owned(), source };
        let mut numbers = self.spool.segments().map_err(error)?;
        match &self.at {
            Some(at) => {
                news.skipped = !numbers.contains(&at.number);
                numbers.retain(|number| *number >= at.number);
            }
            None => drop(numbers.drain(..numbers.len().saturating_sub(1))),
        }
        let mut files = Vec::new();
        for number in numbers {
            if let Some(at) = self.open(number)? {
                let size = at.file.metadata().map_err(|source| self.error(number, source))?.len();
                news.bytes += size.saturating_sub(at.offset);
                files.push((at, size));
            }
        }
        let mut skip = news.bytes.saturating_sub(most);
        let count = files.len();
        for (i, (mut at, size)) in files.into_iter().enumerate() {
            let is_last = i + 1 == count;
            if !is_last && skip > 0 && !time() {
                // The next begins with a frame.
                news.is_unread = true;
                news.skipped = true;
                skip = skip.saturating_sub(size - at.offset);
                continue;
            }
            let walked = walk(&mut at, size, &mut skip, &mut news, &mut time);
            let from = walked.map_err(|source| self.error(at.number, source))?;
            if from < at.offset {
                let file = at.file.try_clone().map_err(|source| self.error(at.number, source))?;
                let path = self.spool.segment(at.number);
                news.kept_bytes += at.offset - from;
                news.pieces.push(Piece { file, path, from, to: at.offset });
            }
            if is_last {
                self.at = Some(at);
            }
        }
        Ok(news)
    }

    /// A segment where it was left, or at its begin.
    fn open(&mut self, number: u32) -> Result<Option<At>, ReadError> {
        if let Some(at) = self.at.take_if(|at| at.number == number) {
            return Ok(Some(at));
        }
        match dir::open_regular(&self.spool.segment(number)) {
            Ok(file) => Ok(Some(At { number, file, offset: 0 })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.error(number, e)),
        }
    }

    fn error(&self, number: u32, source: io::Error) -> ReadError {
        ReadError { path: self.spool.segment(number), source }
    }
}

/// Goes from frame to frame, over `skip` bytes and on to the end; returns where the frames behind these begin.
fn walk(
    at: &mut At,
    size: u64,
    skip: &mut u64,
    news: &mut News,
    time: &mut impl FnMut() -> bool,
) -> io::Result<u64> {
    let (mut block, mut block_at) = (Vec::new(), 0);
    let mut from = at.offset;
    for n in 1.. {
        if n % HEADERS == 0 && *skip > 0 && !time() {
            news.is_unread = true;
            break;
        }
        let have = at.offset.checked_sub(block_at).and_then(|o| block.get(o as usize..));
        let mut header: &[u8] = have.unwrap_or_default();
        if header.len() < HEADER_BYTES {
            block.resize(BLOCK_BYTES, 0);
            let got = at.file.read_at(&mut block, at.offset)?;
            block.truncate(got);
            block_at = at.offset;
            header = &block;
        }
        let Some(bytes) = frame::declared_bytes(header) else { break };
        // What is being written.
        if at.offset + bytes as u64 > size {
            break;
        }
        if frame::is_told_always(header) {
            let mut whole = vec![0; bytes];
            at.file.read_exact_at(&mut whole, at.offset)?;
            match Frame::decode(&whole) {
                Ok((Frame::Clock(sample), _)) if *skip > 0 => news.samples.push(sample),
                Ok((Frame::Loss(loss), _)) => news.lost = news.lost.saturating_add(loss.count),
                _ => {}
            }
        }
        at.offset += bytes as u64;
        if *skip > 0 {
            *skip = skip.saturating_sub(bytes as u64);
            news.skipped = true;
            from = at.offset;
        }
    }
    Ok(if *skip > 0 { at.offset } else { from })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::convert::synthetic::sample;
    use crate::spool::frame::Loss;

    fn frames(spool: &Spool, number: u32, frames: &[Frame<'_>]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let mut file =
            File::options().create(true).append(true).open(spool.segment(number)).unwrap();
        file.write_all(&bytes).unwrap();
    }

    fn read(news: &News) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for piece in &news.pieces {
            let mut reader = piece.reader().unwrap();
            while let Some(frame) = reader.next().unwrap() {
                if let Frame::Kernel(bytes) = frame {
                    found.push(bytes.to_vec());
                }
            }
            assert_eq!(
                reader.damage().unwrap().is_some(),
                piece.to < piece.file.metadata().unwrap().len()
            );
        }
        found
    }

    fn spool() -> (tempfile::TempDir, Spool) {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::of(dir.path());
        std::fs::create_dir(spool.dir()).unwrap();
        (dir, spool)
    }

    #[test]
    fn what_is_new_is_read_once() {
        let (_dir, spool) = spool();
        let mut tail = Tail::new(spool.clone());
        assert_eq!(tail.read(1 << 20, || true).unwrap().bytes, 0);
        frames(&spool, 3, &[Frame::Clock(sample(1)), Frame::Kernel(&[1; 8])]);
        let news = tail.read(1 << 20, || true).unwrap();
        assert_eq!((read(&news), news.skipped), (vec![vec![1; 8]], false));
        frames(&spool, 3, &[Frame::Kernel(&[2; 8])]);
        frames(&spool, 4, &[Frame::Kernel(&[3; 8]), Frame::Kernel(&[4; 8])]);
        let news = tail.read(1 << 20, || true).unwrap();
        assert_eq!(read(&news), [[2; 8], [3; 8], [4; 8]]);
        assert!(!news.skipped);
        assert_eq!(tail.read(1 << 20, || true).unwrap().pieces.len(), 0);
    }

    #[test]
    fn of_too_much_the_newest_is_read_and_losses_are_told_of_all() {
        let (_dir, spool) = spool();
        let mut tail = Tail::new(spool.clone());
        let loss = Loss { count: 7, ..Loss::default() };
        let old = [
            Frame::Kernel(&[1; 5000]),
            Frame::Clock(sample(5)),
            Frame::Loss(loss),
            Frame::Kernel(&[2; 90]),
        ];
        frames(&spool, 0, &old);
        frames(&spool, 0, &[Frame::Kernel(&[3; 100])]);
        let news = tail.read(120, || true).unwrap();
        assert_eq!((read(&news), news.skipped, news.lost), (vec![vec![3; 100]], true, 7));
        assert_eq!((news.samples.len(), news.kept_bytes), (1, 116));
        // Nothing at all is asked for.
        frames(&spool, 0, &[Frame::Kernel(&[4; 100])]);
        let news = tail.read(0, || true).unwrap();
        assert_eq!((news.pieces.len(), news.skipped, news.bytes), (0, true, 116));
    }

    #[test]
    fn a_frame_that_is_being_written_waits() {
        let (_dir, spool) = spool();
        let mut tail = Tail::new(spool.clone());
        let mut bytes = Vec::new();
        Frame::Kernel(&[1; 100]).encode(&mut bytes);
        std::fs::write(spool.segment(0), &bytes[..60]).unwrap();
        assert_eq!(tail.read(1000, || true).unwrap().pieces.len(), 0);
        std::fs::write(spool.segment(0), &bytes).unwrap();
        assert_eq!(read(&tail.read(1000, || true).unwrap()), [[1; 100]]);
    }

    #[test]
    fn without_time_it_goes_on_with_the_newest_segment() {
        let (_dir, spool) = spool();
        let mut tail = Tail::new(spool.clone());
        frames(&spool, 0, &[Frame::Kernel(&[0; 8])]);
        tail.read(1 << 20, || true).unwrap();
        let many: Vec<_> = (0..1000).map(|_| Frame::Kernel(&[1; 8])).collect();
        frames(&spool, 0, &many);
        frames(&spool, 1, &[Frame::Kernel(&[2; 8]), Frame::Kernel(&[3; 8])]);
        let news = tail.read(24, || false).unwrap();
        assert_eq!(read(&news), [[3; 8]]);
        assert!(news.skipped && news.is_unread);
    }

    #[test]
    fn segments_that_are_gone_are_skipped() {
        let (_dir, spool) = spool();
        let mut tail = Tail::new(spool.clone());
        frames(&spool, 0, &[Frame::Kernel(&[1; 8])]);
        tail.read(1 << 20, || true).unwrap();
        std::fs::remove_file(spool.segment(0)).unwrap();
        frames(&spool, 5, &[Frame::Kernel(&[5; 8])]);
        let news = tail.read(1 << 20, || true).unwrap();
        assert_eq!((read(&news), news.skipped), (vec![vec![5; 8]], true));
    }
}
