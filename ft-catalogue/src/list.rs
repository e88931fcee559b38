//! What a catalogue holds, whoever has written it.

use std::path::{Path, PathBuf};

use ft_trace::dir;
use ft_trace::store::rows_of;

use crate::error::io_error;
use crate::{CatalogueError, Entry, Result, TRACES, place};

/// Bytes of a row's file; ours have some 11,000.
const MAX_ROW_BYTES: u64 = 1 << 20;

/// Rows that are read.
const MAX_TRACES: usize = 1 << 20;

/// The traces of a catalogue.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that exist, the oldest first.
    pub entries: Vec<Entry>,
    /// Files that are no rows, and why.
    pub wrong: Vec<(PathBuf, String)>,
    /// There are more than are read.
    pub is_cut: bool,
}

/// Reads the rows of a catalogue.
///
/// # Errors
///
/// When there is none, or it cannot be read.
pub fn list(url: &str) -> Result<Listing> {
    let traces = place::directory(url)?.join(TRACES);
    let entries = std::fs::read_dir(&traces).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => CatalogueError::NoCatalogue(url.into()),
        _ => io_error("read", &traces)(source),
    })?;
    let mut listing = Listing::default();
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(io_error("read", &traces))?.path();
        if path.extension().is_some_and(|e| e == "parquet") {
            listing.is_cut = paths.len() == MAX_TRACES;
            if listing.is_cut {
                break;
            }
            paths.push(path);
        }
    }
    paths.sort_unstable();
    for path in paths {
        match read(&path) {
            Ok(entry) => listing.entries.push(entry),
            Err(why) => listing.wrong.push((path, why)),
        }
    }
    listing.entries.sort_by(|a, b| (a.start_ns, &a.trace).cmp(&(b.start_ns, &b.trace)));
    Ok(listing)
}

/// The one row of a file, if it is of the trace of that name.
fn read(path: &Path) -> std::result::Result<Entry, String> {
    let file = dir::open_regular(path).map_err(|error| error.to_string())?;
    let bytes = file.metadata().map_err(|error| error.to_string())?.len();
    if bytes > MAX_ROW_BYTES {
        return Err(format!("it has {bytes} bytes, which no row has"));
    }
    let mut rows = rows_of::<Entry>(path);
    let entry = rows.next().ok_or("it has no row")?.map_err(|error| error.to_string())?;
    if rows.next().is_some() {
        return Err("it has several rows".into());
    }
    match entry.key() {
        Some(key) if path.file_name().is_some_and(|name| *name == *key.row()) => Ok(entry),
        _ => Err("its row is of another trace".into()),
    }
}
