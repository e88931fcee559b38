//! Where a catalogue can lie, and what must be possible there.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use ft_trace::store::META_FILE;

use crate::directory::Directory;
use crate::error::io_error;
use crate::{CatalogueError, Key, Result};

/// Bytes of a row's file; ours have some 11,000.
///
/// Limit: it is left out, and named with the reason.
/// Shown by: `a_catalogue_of_somebody_else_can_hold_anything`.
pub(crate) const MAX_ROW_BYTES: u64 = 1 << 20;

/// Traces that are fetched at once from where each answer takes its time.
///
/// Limit: as `PIECE_BYTES` of `transfer.rs`.
pub(crate) const TRACES_AT_ONCE: usize = 8;

/// What is shown the file of each row, or why it cannot be read.
pub(crate) type Look<'a> = &'a mut dyn FnMut(&str, std::result::Result<&Path, String>);

/// Which files are wanted, by their names.
pub(crate) type Wanted<'a> = &'a dyn Fn(&str) -> bool;

/// A file of a trace, on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    /// `meta.json`, or a table and a part of it: `sched_switch/part-00000.parquet`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// A place for traces: files under names, each there whole or not at all. Names are those of [`Key`] and [`is_name`], or ours.
pub(crate) trait Place: Debug {
    /// Traces can be brought here, as far as that can be known before one is.
    fn prepare(&self) -> Result<()>;

    /// Shows each row by the name of its file, at most so many; returns whether there are more.
    fn rows(&self, most: usize, look: Look<'_>) -> Result<bool>;

    fn has_row(&self, key: &Key) -> Result<bool>;

    /// Whether a trace is there: its row, and what it says of itself.
    fn has_trace(&self, key: &Key) -> Result<bool>;

    /// Brings all files of a trace, for which this row is going to be published. Those that are there are not brought again.
    fn bring(&self, key: &Key, files: &[LocalFile], row: &Path) -> Result<()>;

    /// Publishes the row of a trace whose files are these; one that is there stays. Whether it is the one that is there now.
    fn publish(&self, key: &Key, files: &[LocalFile], row: &Path) -> Result<bool>;

    /// Where a trace lies, if on this machine.
    fn local(&self, key: &Key) -> Option<PathBuf>;

    /// Removes a trace, its row first.
    fn remove(&self, key: &Key) -> Result<()>;

    /// Removes what was begun a day ago and not finished; how many there were.
    fn sweep(&self) -> Result<u64>;

    /// The names of a trace's files that [`is_name`] lets through, in their order.
    fn names(&self, key: &Key) -> Result<Vec<String>>;

    /// Copies a file of a trace to this path, where none is.
    fn fetch(&self, key: &Key, name: &str, to: &Path) -> Result<()>;

    /// Copies the files that are wanted, of each of these traces to its directory; what has become of each trace.
    fn fetch_traces(&self, traces: &[(&Key, &Path)], is_wanted: Wanted<'_>) -> Vec<Result<()>> {
        let fetch = |&(key, to): &(&Key, &Path)| {
            if !self.has_row(key)? {
                return Err(CatalogueError::NoTrace(key.path()));
            }
            for name in self.names(key)?.iter().filter(|name| is_wanted(name)) {
                self.fetch(key, name, &made_for(to, name)?)?;
            }
            Ok(())
        };
        traces.iter().map(fetch).collect()
    }

    /// Puts files into a trace, in place of those that are there; in no particular order.
    fn put_within(&self, key: &Key, files: &[&LocalFile]) -> Result<()>;

    /// Removes a file of a trace, if it is there.
    fn remove_within(&self, key: &Key, name: &str) -> Result<()>;
}

/// Where a file of this name goes in a directory for a trace; that of its table is made.
pub(crate) fn made_for(dir: &Path, name: &str) -> Result<PathBuf> {
    if let Some((table, _)) = name.split_once('/') {
        let table = dir.join(table);
        fs::create_dir_all(&table).map_err(io_error("make", &table))?;
    }
    Ok(dir.join(name))
}

/// The place that a URL names. Nothing is looked at yet.
pub(crate) fn open(url: &str) -> Result<Box<dyn Place>> {
    match url.split_once("://") {
        #[cfg(feature = "s3")]
        Some(("s3", rest)) => Ok(Box::new(crate::objects::Objects::open(url, rest)?)),
        #[cfg(not(feature = "s3"))]
        Some(("s3", _)) => Err(CatalogueError::NoObjectStores(url.to_owned())),
        _ => Ok(Box::new(Directory::new(directory(url)?))),
    }
}

/// The directory that a path or a `file:` URL means.
fn directory(url: &str) -> Result<PathBuf> {
    let wrong = || CatalogueError::Place(url.to_owned());
    match url.split_once("://") {
        None if url.is_empty() => Err(wrong()),
        None => Ok(PathBuf::from(url)),
        // A URL writes some characters otherwise than a path does, and may name a host.
        Some(("file", path)) if path.starts_with('/') && !path.contains(['%', '?', '#']) => {
            Ok(PathBuf::from(path))
        }
        Some(_) => Err(wrong()),
    }
}

/// Whether a trace has files of this name: in a catalogue of somebody else there may be any.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        (1..=64).contains(&text.len()) && text.chars().all(plain)
    };
    let is_part = |text: &str| {
        let number = text.strip_prefix("part-").and_then(|text| text.strip_suffix(".parquet"));
        number.is_some_and(|n| (5..=10).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
    };
    match name.split_once('/') {
        Some((table, part)) => is_plain(table) && is_part(part),
        None => FILES.contains(&name),
    }
}

/// The files of a trace beside its tables.
pub(crate) const FILES: [&str; 3] = [META_FILE, "analysis.json", "views.sql"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_a_directory() {
        for (url, path) in
            [("fleet", "fleet"), ("/srv/fleet", "/srv/fleet"), ("file:///srv/a b", "/srv/a b")]
        {
            assert_eq!(directory(url).unwrap(), PathBuf::from(path));
        }
        for url in ["", "gopher://bucket/fleet", "file://host/srv", "file://", "file:///a%20b"] {
            let error = open(url).unwrap_err().to_string();
            assert!(error.ends_with("or s3://BUCKET/PREFIX"), "{error}");
        }
    }

    #[test]
    fn a_trace_has_files_of_certain_names() {
        for name in ["meta.json", "irq/part-00000.parquet", "user_events/part-1234567.parquet"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            "spool",
            "..",
            "../part-00000.parquet",
            "irq/part-0.parquet",
            "irq/part-00000.parquet/x",
            "irq/part-000.1.parquet",
            "/part-00000.parquet",
            "Irq/part-00000.parquet",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
