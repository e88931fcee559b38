//! What can go wrong with a stored trace.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use super::parts::{Fault, told};
use super::schema::SCHEMA_VERSION;
use crate::dir::Refused;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}; check {} there", what_it_takes(action))]
    Io {
        /// What was tried: `write`, `read`, `rename`, …
        action: &'static str,
        /// File or directory concerned.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The trace lies where others decide what a name means.
    #[error("{0}; run this as that user, or on a copy in a directory of your own")]
    Refused(Refused),
    /// A part could not be written.
    #[error("cannot write {path}: {source}; check the free space there")]
    Write {
        /// Part concerned.
        path: PathBuf,
        /// What the Parquet writer said.
        source: ParquetError,
    },
    /// The directory has neither `meta.json` nor a spool.
    #[error(
        "{0} is not a trace: it holds no meta.json; name the directory that `ft-agent record` made"
    )]
    NotATrace(PathBuf),
    /// There is still something to convert.
    #[error("the trace {0} is not finished; run `ft-agent convert {0}`")]
    Unfinished(PathBuf),
    /// The trace has another schema.
    #[error(
        "{path} has schema version {found}, this agent reads version {SCHEMA_VERSION}; \
         use the agent that wrote it"
    )]
    Version {
        /// The trace.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// `meta.json` is not what it should be.
    #[error("{path} is damaged: {reason}; restore it, or convert the recording again")]
    Meta {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A table has no part.
    #[error(
        "the trace {trace} has no table `{table}`; `ft-agent analyze {trace}` makes tables of results, and what was recorded comes \
         only from where it was converted or copied from"
    )]
    NoTable {
        /// The trace.
        trace: PathBuf,
        /// The table.
        table: &'static str,
    },
    /// An analysis was ended before its end.
    #[error(
        "interrupted; the results of before, if there are any, are unchanged; run `ft-agent analyze {0}`"
    )]
    Interrupted(PathBuf),
    /// Parts are not those that were written.
    #[error("the trace {} is not whole: {what}; {remedy}, or read the rest of it with `ft-agent report --incomplete`", trace.display())]
    NotWhole {
        /// The trace.
        trace: PathBuf,
        /// The first of them, and how many there are.
        what: String,
        /// What makes it whole.
        remedy: String,
    },
    /// A part cannot be read.
    #[error(
        "{path} is damaged: {reason}; restore this file, or move it away to read the rest of the table"
    )]
    Part {
        /// The part.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl StoreError {
    /// What these parts, which were recorded or are results, make of a trace.
    pub(super) fn not_whole(trace: &Path, recorded: bool, faults: &[Fault]) -> StoreError {
        let remedy = match recorded {
            true => "bring the trace again from where it was recorded".into(),
            false => {
                format!("run `ft-agent analyze {}`, which makes its results anew", trace.display())
            }
        };
        StoreError::NotWhole { trace: trace.to_owned(), what: told(faults), remedy }
    }
}

/// What an action on a file can lack.
fn what_it_takes(action: &str) -> &'static str {
    match action {
        "read" | "open" => "the permissions",
        _ => "the free space and the permissions",
    }
}

/// Result of the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Makes an error of an action on a path.
pub fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| match Refused::of(source) {
        Ok(refused) => StoreError::Refused(refused),
        Err(source) => StoreError::Io { action, path, source },
    }
}
