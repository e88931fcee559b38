//! From the spool to the store.
//!
//! Segment N of the spool becomes part N of every table that it has rows for: read, put on one clock,
//! sorted as a whole (see [`crate::stream`] for the release rule), written. The order of steps makes a
//! conversion repeatable at any point:
//!
//! 1. every part is written as `.tmp` and renamed; all of them are synced;
//! 2. the ledger of the segment is written as `.tmp`, synced, renamed;
//! 3. the segment is deleted;
//! 4. when no segment is left, the tables of the whole trace (threads, sites, names, symbols), empty parts for
//!    tables without rows, which are synced, `views.sql`, and `meta.json`;
//! 5. the spool is renamed and deleted.
//!
//! A crash before 2 repeats the segment and overwrites the same parts with the same rows; a crash
//! after it goes on with what is left. Memory: about three times one segment, however long the recording is.

mod chains;
mod enough;
mod fair;
mod follow;
mod frames;
mod kernel;
mod kernel_locks;
mod kernel_symbols;
mod ledger;
mod names;
mod registry;
mod segment;
mod summary;
mod symbols;
mod threads;
mod unnumbered;
mod untraced;
mod unwind;
mod user;
mod violations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dir::Dir;
use crate::spool::{self, REGISTRY, ReadError, Spool, segment_name};
use crate::store::error::io_error;
use crate::store::{Meta, StoreError, file};
pub(crate) use chains::{Chains, Found};
pub use follow::{Followed, Follower};
#[cfg(test)]
pub(crate) use kernel::test_bytes;
pub use kernel::{kernel_record_bytes, kernel_record_len};
pub(crate) use kernel_locks::KernelLocks;
use ledger::Ledger;
#[cfg(feature = "synthetic")]
pub use names::Addresses;
#[cfg(fuzzing)]
pub use names::ask_for_everything;
pub use names::{READS_NAMES, serve as serve_names};
use registry::Registry;
pub(crate) use threads::Threads;
use unwind::Rules;

/// Why a conversion stopped. What is converted stays, and so does the rest of the spool.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A table or `meta.json`.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the spool.
    #[error(transparent)]
    Spool(#[from] ReadError),
    /// There is neither a spool nor a finished trace.
    #[error("{0} holds no recording; name the directory that `ft-agent record` made")]
    NotARecording(PathBuf),
    /// The recording goes on.
    #[error("{0} is still being recorded; end the recording first, it converts by itself")]
    Recording(PathBuf),
}

/// Result of a conversion.
pub type Result<T> = std::result::Result<T, ConvertError>;

/// What became of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its number.
    pub segment: u32,
    /// Rows of `user_events`.
    pub user_events: u64,
    /// Rows of all tables of the kernel stream.
    pub kernel_rows: u64,
    /// Slots and records that were left out because they were not valid.
    pub rejected: u64,
}

/// Converts what is left of a recording, and finishes the trace; `progress` is called after each
/// segment with the number of those that remain. A finished trace is left as it is.
///
/// # Errors
///
/// A [`ConvertError`]; calling it again goes on where it ended.
pub fn convert(dir: &Path, mut progress: impl FnMut(&SegmentReport, usize)) -> Result<Meta> {
    let spool = Spool::of(dir);
    if !spool.dir().exists() {
        return Meta::read(dir)?.ok_or_else(|| ConvertError::NotARecording(dir.to_owned()));
    }
    // A recording holds this lock as long as it writes.
    let held = spool.hold().map_err(io_error("open", spool.dir()))?;
    let lock = held.open_file(REGISTRY).map_err(io_error("open", &spool.registry()))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| ConvertError::Recording(dir.to_owned()))?;

    let mut converter = Converter::new(dir)?;
    let segments = spool.segments().map_err(io_error("read", spool.dir()))?;
    for (done, &number) in segments.iter().enumerate() {
        let report = converter.segment(number)?;
        progress(&report, segments.len() - done - 1);
    }
    converter.finish()
}

/// Converts segment by segment, behind a running recording or after it.
pub struct Converter {
    dir: PathBuf,
    spool: Spool,
    held: Dir,
    registry: Registry,
    ledgers: BTreeMap<u32, Ledger>,
    rules: Rules,
}

impl Converter {
    /// Opens the spool of a trace directory.
    ///
    /// # Errors
    ///
    /// When the registry or a ledger cannot be read.
    pub fn new(dir: &Path) -> Result<Converter> {
        let spool = Spool::of(dir);
        Ok(Converter {
            dir: dir.to_owned(),
            registry: Registry::open(&spool)?,
            ledgers: Ledger::read_all(&spool)?,
            rules: Rules::default(),
            held: spool.hold().map_err(io_error("write", spool.dir()))?,
            spool,
        })
    }

    /// Converts a closed segment and deletes it. Segments come in ascending order.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`]; the segment is then still there.
    pub fn segment(&mut self, number: u32) -> Result<SegmentReport> {
        self.registry.update()?;
        if !self.ledgers.contains_key(&number) {
            let Converter { dir, spool, registry, ledgers, rules, .. } = self;
            let (ledger, parts) = segment::convert(dir, spool, number, registry, ledgers, rules)?;
            ledger.write(&self.held, parts)?;
            self.ledgers.insert(number, ledger);
        }
        file::remove(&self.held, &segment_name(number))?;
        let ledger = &self.ledgers[&number];
        let rows = |table: &str| ledger.tables.get(table).map_or(0, |part| part.rows);
        Ok(SegmentReport {
            segment: number,
            user_events: rows("user_events"),
            kernel_rows: kernel::TABLES.iter().map(|table| rows(table)).sum(),
            rejected: ledger.rejected,
        })
    }

    /// Writes what concerns the whole trace, and removes the spool. Call it when the recording has
    /// ended and every segment is converted.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`]; the spool is then still there.
    pub fn finish(mut self) -> Result<Meta> {
        self.registry.update()?;
        let meta = {
            let Converter { dir, spool, registry, ledgers, rules, .. } = &mut self;
            summary::write(dir, spool, registry, ledgers, std::mem::take(&mut rules.spent))?
        };
        // Under another name first: half a spool would look like an unfinished recording.
        const DONE: &str = "spool.done";
        let trace = file::open(&self.dir)?;
        file::remove(&trace, DONE)?;
        trace.publish(spool::DIRECTORY, DONE).map_err(io_error("rename", self.spool.dir()))?;
        file::remove(&trace, DONE)?;
        Ok(meta)
    }
}

#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
#[cfg(test)]
mod tests;
