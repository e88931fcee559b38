//! Files that are there whole or not at all.
//!
//! Rule: everything is written under a name ending in `.tmp`, synced, and then renamed; the directory
//! is synced after the rename. A crash leaves a `.tmp`, which nobody reads and the next attempt
//! overwrites.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::Result;
pub(crate) use super::error::io_error as error;

/// The name under which `path` is written.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Gives the synced file (or directory) `from` its final name.
///
/// # Errors
///
/// An I/O error; `from` is then still there.
pub(crate) fn publish(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(error("rename", to))?;
    match to.parent() {
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

/// Removes a file that may not exist, durably.
///
/// # Errors
///
/// An I/O error.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match (fs::remove_file(path), path.parent()) {
        (Err(e), _) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        (Err(e), _) => Err(error("remove", path)(e)),
        (Ok(()), Some(parent)) => sync_dir(parent),
        (Ok(()), None) => Ok(()),
    }
}

/// Makes the entries of a directory durable.
///
/// # Errors
///
/// An I/O error.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(error("sync", dir))
}

/// Writes a value as indented JSON.
///
/// # Errors
///
/// An I/O error; the file that was there before is then still there.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let tmp = temporary(path);
    let mut text = serde_json::to_vec_pretty(value).expect("plain structs serialise into memory");
    text.push(b'\n');
    File::create(&tmp)
        .and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        })
        .map_err(error("write", &tmp))?;
    publish(&tmp, path)
}
