//! Bringing a trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ft_trace::store::{PartWriter, Trace, part_path};

use crate::error::io_error;
use crate::place::{self, FILES, LocalFile, Place};
use crate::scratch::Scratch;
use crate::{Entry, Key, Labels, Result, TRACES};

/// A catalogue: in a directory that nobody else can write to, or in an object store.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) place: Box<dyn Place>,
}

/// What has become of a trace that was brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its name.
    pub key: Key,
    /// It was not there before.
    pub is_new: bool,
}

impl Catalogue {
    /// Opens a catalogue, a directory made if it does not exist.
    ///
    /// # Errors
    ///
    /// When the URL names no place, or a directory in which others can make names; [`crate::CatalogueError::Away`] when
    /// its store cannot be reached.
    pub fn open(url: &str) -> Result<Catalogue> {
        let place = place::open(url)?;
        place.prepare()?;
        Ok(Catalogue { place })
    }

    /// Brings a finished trace: whole, or not at all. One that is there stays as it is. Of one that another began to bring, and whose
    /// row it did not publish, the labels are these, on a file system that can exchange two files; on others, as NFS, they may be the
    /// other's, and the trace counts as one that was there.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written. Bringing it again goes on where that ended.
    pub fn put(&self, trace: &Path, labels: &Labels) -> Result<Put> {
        let trace = Trace::open(trace)?;
        let key = Key::of(trace.meta());
        if self.place.has_trace(&key)? {
            return Ok(Put { key, is_new: false });
        }
        let files = local_files(trace.dir())?;
        let entry = Entry::of(&key, &trace, size(&files)?, labels);
        let scratch = Scratch::new()?;
        let row = write_row(&entry, scratch.path())?;
        self.place.bring(&key, &files, &row)?;
        // The trace exists from here on.
        let is_new = self.place.publish(&key, &files, &row)?;
        Ok(Put { key, is_new })
    }
}

/// Bytes of all these files.
fn size(files: &[LocalFile]) -> Result<u64> {
    let size = |file: &LocalFile| {
        let metadata = fs::symlink_metadata(&file.path).map_err(io_error("read", &file.path));
        metadata.map(|metadata| metadata.len())
    };
    files.iter().map(size).sum()
}

/// Writes the file of a row.
fn write_row(entry: &Entry, dir: &Path) -> Result<PathBuf> {
    let mut part = PartWriter::create(dir, 0, Default::default())?;
    part.push(entry)?;
    part.finish()?;
    Ok(part_path(dir, TRACES, 0))
}

/// The files of a trace: its tables, and those beside them. What is not whole has other names.
pub(crate) fn local_files(trace: &Path) -> Result<Vec<LocalFile>> {
    let mut files = Vec::new();
    for path in listed(trace)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if fs::symlink_metadata(&path).map_err(io_error("read", &path))?.is_dir() {
            for part in listed(&path)? {
                let part_name = part.file_name().and_then(|name| name.to_str());
                if let Some(part_name) = part_name.filter(|name| name.ends_with(".parquet")) {
                    files.push(LocalFile { name: format!("{name}/{part_name}"), path: part });
                }
            }
        } else if FILES.contains(&name) {
            files.push(LocalFile { name: name.to_owned(), path });
        }
    }
    Ok(files)
}

fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(io_error("read", dir))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>().map_err(io_error("read", dir))?;
    paths.sort_unstable();
    Ok(paths)
}
