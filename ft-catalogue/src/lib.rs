//! Traces of many hosts in one place.
//!
//! ```text
//! ROOT/host=H/date=D/trace=ID/<table>/part-….parquet   a trace, as it is on its host
//! ROOT/traces/ID.parquet                               that it exists, and what it is: one row of the table `traces`
//! ```
//!
//! A trace exists when its row does, which is written last; what lies there without one is not a trace yet. Everything
//! appears under its name whole: in a directory by a rename, of a trace's directory, too; in an object store by one request for each
//! object. So a writer can be killed at any instruction, and the next one that brings the same trace goes on; two that bring it at
//! once do no harm; and bringing it again changes nothing. It goes in the other order: its row first.
//!
//! [`Catalogue`] puts traces there and removes them, in a directory that nobody else can write to, or with the feature `s3` in an
//! object store; [`list()`] reads the rows of one that anybody may have written. What a trace is called follows from the trace
//! ([`Key`]): the same recording has the same name, wherever it is brought from. A [`Task`] is a trace there that somebody reads, or
//! whose results somebody computes. This crate knows nothing of how traces are recorded, or of what they mean.
//!
//! What a place must be able to do is one trait (`place.rs`), so that there is one way for all: `directory.rs` and `objects/`.

mod directory;
mod entry;
mod error;
mod key;
mod label;
mod list;
#[cfg(feature = "s3")]
mod objects;
mod place;
mod put;
mod remove;
mod scratch;
mod task;

pub use entry::Entry;
pub use error::CatalogueError;
pub use key::Key;
pub use label::{Label, Labels};
pub use list::{Listing, list};
pub use put::{Catalogue, Put};
pub use task::{Copy, Readable, Task, Tasks, trace_of};

/// What this crate returns.
pub type Result<T> = std::result::Result<T, CatalogueError>;

/// The directory of the rows.
const TRACES: &str = "traces";

/// What begins the name of something that is not whole.
const INCOMING: &str = ".incoming-";
