//! A directory where a user wants it, which appears whole or not at all: as [`whole_file`](crate::whole_file), for
//! formats that are several files.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::dir::{self, Dir};

/// A directory under construction. Dropped without [`WholeDir::keep`], it goes away again, with all in it.
#[derive(Debug)]
pub struct WholeDir {
    /// The directory where it is to appear, which others may change.
    parent: OwnedFd,
    dir: Dir,
    aside: OsString,
    name: OsString,
    kept: bool,
}

impl WholeDir {
    /// Begins the directory of this path.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when something has the name that is no empty directory, or a symbolic link of another user leads there; and what
    /// the kernel says.
    pub fn create(path: &Path) -> io::Result<WholeDir> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let name = path.file_name().ok_or_else(|| wrong("this names no directory"))?.to_owned();
        let above = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = dir::walk(above.unwrap_or(Path::new(".")), false)?;
        match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            found => {
                let is_dir = FileType::from_raw_mode(found?.st_mode) == FileType::Directory;
                if !is_dir || !is_empty(&parent, &name)? {
                    return Err(there());
                }
            }
        }
        // A name has 255 bytes at most.
        let like: String = name.to_string_lossy().chars().take(50).collect();
        let aside = OsString::from(format!(".{like}.{}.tmp", std::process::id()));
        let dir = Dir::make_in(&parent, &aside, path.with_file_name(&aside))?;
        Ok(WholeDir { parent, dir, aside, name, kept: false })
    }

    /// Where its files go.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// It is complete, and its files are synced: it appears under its name.
    ///
    /// # Errors
    ///
    /// What the kernel says: also when something has taken the name meanwhile, or another user has put something else in its place.
    pub fn keep(mut self) -> io::Result<()> {
        match rustix::fs::renameat(&self.parent, &self.aside, &self.parent, &self.name) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Err(there()),
            Err(error) => Err(error.into()),
            Ok(()) => {
                self.kept = true;
                let kept = rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
                match (kept.st_dev, kept.st_ino) == self.dir.id()? {
                    true => Ok(()),
                    false => Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "another user has put something else in its place; name a directory that only you can write",
                    )),
                }
            }
        }
    }
}

impl Drop for WholeDir {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.dir.clear();
            let _ = rustix::fs::unlinkat(&self.parent, &self.aside, AtFlags::REMOVEDIR);
        }
    }
}

fn there() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "it is there already")
}

fn is_empty(parent: &OwnedFd, name: &OsString) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let mut entries = rustix::fs::Dir::read_from(dir)?;
    // Besides itself and its parent.
    Ok(entries.by_ref().take(3).count() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn it_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let begin = || {
            let whole = WholeDir::create(&path).unwrap();
            whole.dir().write("stream", b"bytes").unwrap();
            whole
        };
        drop(begin());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        // An empty one may be there already.
        fs::create_dir(&path).unwrap();
        let (first, second) = (begin(), path.join("stream"));
        assert!(!second.exists());
        first.keep().unwrap();
        assert_eq!(fs::read(second).unwrap(), b"bytes");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_that_is_there_is_touched() {
        let place = tempfile::tempdir().unwrap();
        let (full, link) = (place.path().join("full"), place.path().join("link"));
        fs::create_dir(&full).unwrap();
        symlink(&full, &link).unwrap();
        WholeDir::create(&link).unwrap_err();
        fs::write(full.join("precious"), "").unwrap();
        for there in [&full, &link, &full.join("precious"), Path::new("/"), Path::new("..")] {
            WholeDir::create(there).unwrap_err();
        }
        // Taken meanwhile.
        let whole = WholeDir::create(&place.path().join("late")).unwrap();
        fs::create_dir_all(place.path().join("late/inner")).unwrap();
        assert_eq!(whole.keep().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
    }

    #[test]
    fn it_stays_where_it_was_begun_and_what_others_put_there_is_not_taken_for_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        ["parent", "elsewhere"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        let whole = WholeDir::create(&at("parent/out")).unwrap();
        whole.dir().write("stream", b"bytes").unwrap();
        fs::rename(at("parent"), at("moved")).unwrap();
        symlink(at("elsewhere"), at("parent")).unwrap();
        whole.keep().unwrap();
        assert_eq!(fs::read(at("moved/out/stream")).unwrap(), b"bytes");
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        let whole = WholeDir::create(&at("moved/late")).unwrap();
        let aside = at("moved").join(&whole.aside);
        fs::rename(&aside, at("stolen")).unwrap();
        fs::create_dir(&aside).unwrap();
        assert_eq!(whole.keep().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
