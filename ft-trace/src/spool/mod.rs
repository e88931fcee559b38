//! The spool: what a recording writes and a conversion reads.
//!
//! `DIR/spool/registry.ft` holds what all segments refer to (start, processes, directories, threads,
//! end) and stays until the last segment is converted. `DIR/spool/segment-NNNNNN.ft` holds the rest;
//! each begins and ends with a clock sample, so that it can be converted by itself. Both are plain
//! sequences of [`frame::Frame`]s. Segment N becomes part N of every table.
//!
//! Damage hides the chunk that it hits ([`Anchor`]), and is told ([`Gap`]).
//!
//! The last segment of a recording that was killed lacks its closing clock sample, and its last frame
//! may be cut; everything before it is whole.
//!
//! Why it exists: copying is an order of magnitude faster than encoding Parquet. What has been copied survives the agent's death,
//! and encoding may be late without losing anything.

mod anchor;
pub mod frame;
pub mod mapping;
mod reader;
mod tail;
mod writer;

pub use anchor::{Amounts, Anchor, Gap, Token};
pub use reader::{Damage, Piece, ReadError, Reader};
pub use tail::{News, Tail, Wanted};
pub use writer::{Limits, Segment, WriteError, Writer};

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::dir::Dir;

/// No thread loses an event faster than this, ns: it adds to four counters each time (`ft-user`, `ring.rs` and
/// `shared_ring.rs`). In a loop that does nothing else it takes about eight cycles. A program that claims to have lost more
/// is not believed.
///
/// Limit: what is claimed beyond that is not in `loss`; the record is counted as damaged.
/// Shown by: `losses_of_the_fastest_loop_are_believed`, `losses_that_no_counter_holds_are_the_most_that_it_holds`.
pub const FASTEST_LOSS_NS: u64 = 1;

/// Where the files of a spool are.
#[derive(Clone, Debug)]
pub struct Spool {
    trace: PathBuf,
    dir: PathBuf,
    /// By whoever records.
    held: Option<Dir>,
}

/// Name of its directory in the trace.
pub const DIRECTORY: &str = "spool";

/// Name of the registry.
pub const REGISTRY: &str = "registry.ft";

/// Name of a segment.
pub fn segment_name(number: u32) -> String {
    format!("segment-{number:06}.ft")
}

impl Spool {
    /// The spool of the trace directory `trace`, whether it exists or not.
    pub fn of(trace: &Path) -> Spool {
        Spool { trace: trace.to_owned(), dir: trace.join(DIRECTORY), held: None }
    }

    /// Makes the directory of the spool, and holds it.
    ///
    /// # Errors
    ///
    /// As [`fs::create_dir`], also when it exists; [`Refused`](crate::Refused) when others can write to the trace.
    pub fn create(trace: &Path) -> io::Result<Spool> {
        Spool::create_in(&Dir::open(trace)?)
    }

    /// The same in a trace that is held.
    pub fn create_in(trace: &Dir) -> io::Result<Spool> {
        let held = Some(trace.make_closed_dir(DIRECTORY)?);
        Ok(Spool { held, ..Spool::of(trace.path()) })
    }

    /// Its directory, to write to it.
    ///
    /// # Errors
    ///
    /// When there is none; [`Refused`](crate::Refused) when others can write to it.
    pub fn hold(&self) -> io::Result<Dir> {
        match &self.held {
            Some(held) => Ok(held.clone()),
            None => Dir::open(&self.trace)?.dir(DIRECTORY),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The registry.
    pub fn registry(&self) -> PathBuf {
        self.dir.join(REGISTRY)
    }

    /// The segment with this number.
    pub fn segment(&self, number: u32) -> PathBuf {
        self.dir.join(segment_name(number))
    }

    /// Numbers of the segments that are there, ascending; empty when there is no spool.
    ///
    /// # Errors
    ///
    /// As [`fs::read_dir`], except that a directory that does not exist is no error.
    pub fn segments(&self) -> io::Result<Vec<u32>> {
        let entries = match fs::read_dir(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let number: Option<u32> = name
                .to_str()
                .and_then(|n| n.strip_prefix("segment-")?.strip_suffix(".ft")?.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests;
