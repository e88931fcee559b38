//! Files of a trace that are there whole or not at all.
//!
//! Rule: everything is written under a name ending in `.tmp` and then renamed, so whoever is killed leaves a `.tmp`,
//! which nobody reads and the next attempt replaces. Files that are read by themselves (`meta.json`) are synced before
//! they are renamed, and their directory after it; parts of tables are synced, all together ([`Unsynced`](super::Unsynced)),
//! before the file that says that they are there. [`Dir`] sees to it that the names mean what they should.

use std::path::Path;

use serde::Serialize;

use super::error::{Result, io_error};
use crate::dir::Dir;

/// The name under which `name` is written.
pub fn temporary(name: &str) -> String {
    format!("{name}.tmp")
}

/// Opens a trace for writing.
///
/// # Errors
///
/// [`StoreError::Refused`](super::StoreError::Refused), or an I/O error.
pub fn open(trace: &Path) -> Result<Dir> {
    Dir::open(trace).map_err(io_error("write", trace))
}

/// Removes a file of a trace that may not exist.
///
/// # Errors
///
/// As [`open`].
pub fn remove(dir: &Dir, name: &str) -> Result<()> {
    dir.remove(name).map_err(io_error("remove", &dir.path().join(name)))
}

/// Writes a value as indented JSON.
///
/// # Errors
///
/// As [`open`]; the file that was there before is then still there.
pub fn write_json<T: Serialize>(dir: &Dir, name: &str, value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain structs serialise into memory");
    text.push(b'\n');
    dir.write(name, &text).map_err(io_error("write", &dir.path().join(name)))
}
