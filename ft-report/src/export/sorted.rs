//! Pieces of text in the order of a number, however many there are.
//!
//! What is known late may belong early: an interval is known at its end and written at its begin, and formats of columns
//! want all begins before the first end. So pieces are collected, sorted, and kept in a nameless file (in `TMPDIR`, as
//! sort(1) does), and the sorted runs are merged at the end. Pieces of one number stay in the order in which they came.
//! Memory is that of one run, while they come and while they are merged, and a piece for each run.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;

/// Bytes that are sorted in memory.
const RUN_BYTES: usize = 1 << 25;

/// Bytes of one run that are read or written at a time.
const READ_BYTES: usize = 1 << 16;

/// Bytes before a piece in the file: its number and its length.
const HEAD_BYTES: usize = 8 + 4;

/// Bytes of each of so many runs that are read at a time: what is read ahead of all together is never more than what was
/// sorted in memory.
fn read_bytes(runs: usize) -> usize {
    (RUN_BYTES / runs.max(1)).clamp(HEAD_BYTES, READ_BYTES)
}

/// Pieces that come in any order.
pub(super) struct Sorted {
    bytes: Vec<u8>,
    /// Number of each piece, and where it is.
    pieces: Vec<(u64, usize, usize)>,
    file: Option<File>,
    /// Ends of the runs in the file.
    runs: Vec<u64>,
    run_bytes: usize,
}

impl Sorted {
    pub(super) fn new() -> Sorted {
        let (bytes, pieces, runs) = (Vec::new(), Vec::new(), Vec::new());
        Sorted { bytes, pieces, file: None, runs, run_bytes: RUN_BYTES }
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, number: u64, piece: &[u8]) -> io::Result<()> {
        if self.bytes.len() + size_of_val(&self.pieces[..]) >= self.run_bytes {
            self.end_run()?;
        }
        let from = self.bytes.len();
        self.bytes.extend_from_slice(piece);
        self.pieces.push((number, from, self.bytes.len()));
        Ok(())
    }

    /// Moves what is in memory to the file.
    fn end_run(&mut self) -> io::Result<()> {
        self.pieces.sort_by_key(|&(number, ..)| number);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let mut out = io::BufWriter::with_capacity(READ_BYTES, file);
        for &(number, from, to) in &self.pieces {
            let piece = &self.bytes[from..to];
            let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
            out.write_all(&number.to_le_bytes())?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(piece)?;
        }
        out.flush()?;
        drop(out);
        let size: usize = self.pieces.iter().map(|(_, from, to)| HEAD_BYTES + to - from).sum();
        self.runs.push(self.runs.last().unwrap_or(&0) + size as u64);
        self.bytes.clear();
        self.pieces.clear();
        Ok(())
    }

    /// Gives all pieces to `take`, in order.
    pub(super) fn each(
        mut self,
        mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.end_run()?;
        let Sorted { bytes, pieces, file: Some(file), runs, .. } = self else { return Ok(()) };
        drop((bytes, pieces));
        let ahead = read_bytes(runs.len());
        let begins = std::iter::once(0).chain(runs.iter().copied());
        let mut open = Vec::new();
        let mut due = BinaryHeap::new();
        for (at, end) in begins.zip(runs.iter().copied()) {
            let slice = Slice { file: &file, at, end };
            let mut run = Run { rest: BufReader::with_capacity(ahead, slice), piece: Vec::new() };
            if let Some(number) = run.advance()? {
                due.push(std::cmp::Reverse((number, open.len())));
            }
            open.push(run);
        }
        // What is equal comes from the earlier run first.
        while let Some(std::cmp::Reverse((number, i))) = due.pop() {
            take(number, &open[i].piece)?;
            if let Some(number) = open[i].advance()? {
                due.push(std::cmp::Reverse((number, i)));
            }
        }
        Ok(())
    }
}

/// A part of a file.
struct Slice<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Slice<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..left], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A run that is read, and its next piece.
struct Run<'a> {
    rest: BufReader<Slice<'a>>,
    piece: Vec<u8>,
}

impl Run<'_> {
    /// Reads the next piece and returns its number.
    fn advance(&mut self) -> io::Result<Option<u64>> {
        if self.rest.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let (mut number, mut length) = ([0; 8], [0; 4]);
        self.rest.read_exact(&mut number)?;
        self.rest.read_exact(&mut length)?;
        self.piece.resize(u32::from_le_bytes(length) as usize, 0);
        self.rest.read_exact(&mut self.piece)?;
        Ok(Some(u64::from_le_bytes(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(run_bytes: usize, pieces: &[(u64, &str)]) -> Vec<(u64, String)> {
        let mut sorted = Sorted { run_bytes, ..Sorted::new() };
        for (number, piece) in pieces {
            sorted.push(*number, piece.as_bytes()).unwrap();
        }
        let mut found = Vec::new();
        let text = |piece: &[u8]| String::from_utf8(piece.to_vec()).unwrap();
        let take = |number, piece: &[u8]| {
            found.push((number, text(piece)));
            Ok(())
        };
        sorted.each(take).unwrap();
        found
    }

    #[test]
    fn of_more_runs_less_is_read_ahead() {
        for runs in [1, 2, 511, 512, 513, 100_000, 1 << 21] {
            let ahead = read_bytes(runs);
            assert!((HEAD_BYTES..=READ_BYTES).contains(&ahead), "{runs}");
            assert!(ahead * runs <= RUN_BYTES, "{runs}");
        }
    }

    #[test]
    fn pieces_come_by_number_and_then_as_they_came() {
        let pieces: Vec<(u64, String)> = (0..1000)
            .map(|i| (i * 7919 % 13, "x".repeat(i as usize % 5) + &i.to_string()))
            .collect();
        let borrowed: Vec<(u64, &str)> = pieces.iter().map(|(n, text)| (*n, &**text)).collect();
        let mut expected = pieces.clone();
        expected.sort_by_key(|(number, _)| *number);
        // All in memory, a few runs, a run for each piece.
        for run_bytes in [usize::MAX, 5000, 1] {
            assert_eq!(sorted(run_bytes, &borrowed), expected, "{run_bytes}");
        }
        assert_eq!(sorted(1, &[]), []);
        assert_eq!(sorted(1, &[(u64::MAX, ""), (0, "")]), [(0, "".into()), (u64::MAX, "".into())]);
    }
}
