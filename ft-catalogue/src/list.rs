//! What a catalogue holds, whoever has written it.

use std::path::Path;

use ft_trace::store::{rows_of, sizes_of};

use crate::{Entry, Result, TRACES, place};

/// Rows that are read.
///
/// Limit: a warning says that there are more; DuckDB reads them all.
/// Shown by: not shown: it takes as many rows.
const MAX_TRACES: usize = 1 << 20;

/// Bytes of a row when it is unpacked, as its file's footer says; ours have some 5,000.
///
/// Limit: as `MAX_ROW_BYTES` of `place.rs`.
const MAX_UNPACKED_BYTES: u64 = 1 << 20;

/// The traces of a catalogue.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that exist, the oldest first.
    pub entries: Vec<Entry>,
    /// Files that are no rows, by their path in the catalogue, and why.
    pub wrong: Vec<(String, String)>,
    /// There are more than are read.
    pub is_cut: bool,
}

/// Reads the rows of a catalogue.
///
/// # Errors
///
/// When there is none, or it cannot be read.
pub fn list(url: &str) -> Result<Listing> {
    let mut listing = Listing::default();
    let mut look = |name: &str, file: std::result::Result<&Path, String>| match file
        .and_then(|path| read(name, path))
    {
        Ok(entry) => listing.entries.push(entry),
        Err(why) => listing.wrong.push((format!("{TRACES}/{name}"), why)),
    };
    listing.is_cut = place::open(url)?.rows(MAX_TRACES, &mut look)?;
    listing.entries.sort_by(|a, b| (a.start_ns, &a.trace).cmp(&(b.start_ns, &b.trace)));
    Ok(listing)
}

/// The one row of a file, if it is of the trace of that name.
fn read(name: &str, path: &Path) -> std::result::Result<Entry, String> {
    // A small file can be a large table.
    let (rows, bytes) = sizes_of(path).map_err(|error| error.to_string())?;
    if rows != 1 || bytes > MAX_UNPACKED_BYTES {
        return Err(format!("it has {rows} rows of {bytes} bytes, and not one of a trace"));
    }
    let mut rows = rows_of::<Entry>(path);
    let entry = rows.next().ok_or("it has no row")?.map_err(|error| error.to_string())?;
    match entry.key() {
        Some(key) if name == key.row() => Ok(entry),
        _ => Err("its row is of another trace".into()),
    }
}
