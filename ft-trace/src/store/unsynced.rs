//! What was written and may not be on disk yet.
//!
//! To sync a file may mean to wait for everything that anybody writes to the file system: its journal commits all
//! changes together (kernel, Documentation/filesystems/ext4/journal.rst). A trace has a hundred files, and where other
//! programs keep the disk busy, a hundred such waits were minutes. So the kernel begins to write a file when it is whole
//! (sync_file_range(2)), and all of them are waited for at once: the first commit is then that of all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use super::error::{Result, io_error};
use crate::dir::Dir;

/// Files that are kept open to be synced together, at most: a process may have 1,024 open by default, and each of the some
/// thirty tables that analyses write at a time keeps its own, which are more than one only of large traces.
const FILES: usize = 16;

/// What was written before is on disk.
#[derive(Clone, Copy, Debug)]
pub struct Synced(());

/// Files and directories that are to be synced together, at most so many at a time. Dropped without
/// [`Unsynced::sync_all`], they reach the disk when the kernel wants it.
#[derive(Debug, Default)]
pub struct Unsynced {
    files: Vec<(File, PathBuf)>,
    /// By what tells them apart, whatever their names are now.
    dirs: BTreeMap<(u64, u64), Dir>,
}

impl Unsynced {
    /// Adds a file, which is written, and the directory that has its name.
    ///
    /// # Errors
    ///
    /// As [`Unsynced::sync_all`], which it does when there are too many.
    pub(super) fn add(&mut self, file: File, path: PathBuf, dir: &Dir) -> Result<()> {
        begin_to_write(&file).map_err(io_error("write", &path))?;
        self.files.push((file, path));
        self.add_dir(dir)?;
        if self.files.len() < FILES { Ok(()) } else { self.sync() }
    }

    /// Adds a directory, whose names have changed.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub(super) fn add_dir(&mut self, dir: &Dir) -> Result<()> {
        let id = dir.id().map_err(io_error("sync", dir.path()))?;
        self.dirs.entry(id).or_insert_with(|| dir.clone());
        Ok(())
    }

    /// Adds all of another one.
    ///
    /// # Errors
    ///
    /// As [`Unsynced::sync_all`], which it does when there are too many.
    pub(super) fn append(&mut self, other: Unsynced) -> Result<()> {
        self.files.extend(other.files);
        self.dirs.extend(other.dirs);
        if self.files.len() < FILES { Ok(()) } else { self.sync() }
    }

    /// All of it is durable, which is to be shown where something is written that names it.
    ///
    /// # Errors
    ///
    /// What the kernel says of the first that cannot be written.
    pub fn sync_all(mut self) -> Result<Synced> {
        self.sync()?;
        Ok(Synced(()))
    }

    fn sync(&mut self) -> Result<()> {
        for (file, path) in self.files.drain(..) {
            file.sync_all().map_err(io_error("sync", &path))?;
        }
        for dir in std::mem::take(&mut self.dirs).into_values() {
            dir.sync().map_err(io_error("sync", dir.path()))?;
        }
        Ok(())
    }
}

/// The kernel begins to write what of the file is not on disk; where it cannot be asked to, syncing does it all. Its errors count:
/// a file system may tell one only once (ext4).
fn begin_to_write(file: &File) -> io::Result<()> {
    // SAFETY: takes no pointer.
    let result =
        unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL | libc::EPERM | libc::ESPIPE | libc::EOPNOTSUPP) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_files_are_open_than_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let add = |unsynced: &mut Unsynced, i: usize| {
            let name = format!("{i}");
            let file = dir.create_file(&name).unwrap();
            unsynced.add(file, dir.path().join(&name), &dir).unwrap();
            (unsynced.files.len(), unsynced.dirs.len())
        };
        let mut all = Unsynced::default();
        for i in 1..FILES {
            assert_eq!(add(&mut all, i), (i, 1));
        }
        assert_eq!(add(&mut all, FILES), (0, 0));

        let mut other = Unsynced::default();
        for i in 1..FILES {
            add(&mut other, FILES + i);
        }
        add(&mut all, 3 * FILES);
        all.append(other).unwrap();
        assert_eq!((all.files.len(), all.dirs.len()), (0, 0));
    }

    #[test]
    fn a_directory_is_known_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let (first, mut all) = (dir.make_dir("table.tmp").unwrap(), Unsynced::default());
        all.add_dir(&first).unwrap();
        dir.rename("table.tmp", "table").unwrap();
        all.add_dir(&dir.dir("table").unwrap()).unwrap();
        assert_eq!(all.dirs.len(), 1);
        // Another one has the name now.
        all.add_dir(&dir.make_dir("table.tmp").unwrap()).unwrap();
        assert_eq!(all.dirs.len(), 2);
        all.sync().unwrap();
        assert!(all.dirs.is_empty());
    }
}
