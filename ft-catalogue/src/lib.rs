//! Traces of many hosts in one place.
//!
//! ```
//! use ft_catalogue::{Catalogue, Labels, list};
//!
//! # use ft_trace::store::{Meta, SCHEMA_VERSION};
//! # let folder = tempfile::tempdir()?;
//! # let trace = folder.path().join("trace");
//! # std::fs::create_dir(&trace)?;
//! # let mut meta = Meta { schema_version: SCHEMA_VERSION, complete: true, ..Meta::default() };
//! # meta.start.host = "web-1".into();
//! # meta.write(&trace)?;
//! # let fleet = folder.path().join("fleet");
//! # let url = fleet.to_str().unwrap();
//! // On each host, when its recording has been converted:
//! let catalogue = Catalogue::open(url)?;
//! let labels = Labels::from([("build".into(), "1.4.2".into())]);
//! let put = catalogue.put(&trace, &labels)?;
//! assert!(put.is_new && !catalogue.put(&trace, &labels)?.is_new);
//!
//! // Wherever somebody looks at all of them:
//! for entry in list(url)?.entries {
//!     println!("{} recorded {} {}", entry.host, entry.program, entry.labels);
//! #   assert_eq!((&*entry.host, &*entry.labels), ("web-1", r#"{"build":"1.4.2"}"#));
//! }
//! # assert_eq!(list(url)?.entries.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What lies there:
//!
//! ```text
//! ROOT/host=H/date=D/trace=ID/<table>/part-….parquet   a trace, as it is on its host
//! ROOT/traces/ID.parquet                               that it exists, and what it is: one row of the table `traces`
//! ```
//!
//! In a directory, `trace=ID/ID.parquet` is the same file as that row.
//!
//! A trace exists when its row does, which is written last; what lies there without one is not a trace yet. Everything
//! appears under its name as a whole: in a directory by a rename, also of the trace's directory; in an object store by one
//! request for each object. So a writer can be killed at any instruction, and the next one that adds the same trace continues;
//! two that add it at once do no harm; and adding it again changes nothing. It is removed in the other order: its row first.
//!
//! # Where to read on
//!
//! 1. [`Catalogue`] adds traces and removes them, in a directory that nobody else can write to, or with the feature `s3` in an
//!    object store. What a trace is called follows from the trace ([`Key`]): the same recording has the same name, wherever it
//!    comes from.
//! 2. [`list()`] reads the rows of a catalogue that anybody may have written; [`Entry`] is one row.
//! 3. A [`Task`] is a trace in a catalogue that somebody reads, or whose results somebody computes.
//! 4. [`CatalogueError`]: why something failed, each with its remedy.
//!
//! # Where it ends
//!
//! This crate knows neither how traces are recorded nor what they mean. What a place must be able to do is one trait
//! (`place.rs`), with an implementation for directories (`directory.rs`) and one for object stores (`objects/`).

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
