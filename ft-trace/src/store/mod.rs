//! The store: a trace as a directory of Parquet tables.
//!
//! ```text
//! DIR/meta.json                        what the trace says of itself
//! DIR/<table>/part-00000.parquet …     the tables
//! DIR/views.sql                        the tables under their names, for DuckDB
//! DIR/spool/                           while there is something to convert
//! ```
//!
//! A table is declared in [`crate::tables`]; how fields become columns is in [`column`](mod@column). Every file is there
//! whole or not at all, and is on disk before what names it (`unsynced.rs`).

pub mod about;
pub mod catalogue;
pub mod column;
pub mod error;
pub mod file;
pub mod meta;
pub mod name_column;
mod part;
mod parts;
mod reader;
mod records;
pub mod schema;
mod unsynced;
pub mod views;
mod word_column;
mod writer;

pub use error::{Result, StoreError};
pub use meta::{ClockMeta, HostClockMeta, META_FILE, Meta, TableMeta};
pub use part::{Footer, PartWriter, part_path};
pub(crate) use parts::told;
pub use parts::{ANALYSIS_FILE, Fault, PartMeta, Parts, Results, faults};
pub use reader::{Rows, Trace, rows_of, sizes_of};
pub use records::Record;
pub use schema::{Row, SCHEMA_VERSION};
pub use unsynced::{Synced, Unsynced};
pub use writer::TableWriter;
