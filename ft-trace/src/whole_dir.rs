//! A directory where a user wants it, which appears whole or not at all: as [`whole_file`](crate::whole_file), for
//! formats that are several files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::dir::Dir;

/// A directory under construction. Dropped without [`WholeDir::keep`], it goes away again, with all in it.
#[derive(Debug)]
pub struct WholeDir {
    dir: Dir,
    path: PathBuf,
    kept: bool,
}

impl WholeDir {
    /// Begins the directory of this path.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when something has the name that is no empty directory; and what the kernel says.
    pub fn create(path: &Path) -> io::Result<WholeDir> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let name = path.file_name().ok_or_else(|| wrong("this names no directory"))?;
        match fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
            Ok(found) if found.is_dir() && fs::read_dir(path)?.next().is_none() => {}
            Ok(_) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already"));
            }
        }
        // A name has 255 bytes at most.
        let like: String = name.to_string_lossy().chars().take(50).collect();
        let aside = path.with_file_name(format!(".{like}.{}.tmp", std::process::id()));
        let (dir, made) = Dir::create(&aside)?;
        if !made {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, aside.display().to_string()));
        }
        Ok(WholeDir { dir, path: path.to_owned(), kept: false })
    }

    /// Where its files go.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// It is complete, and its files are synced: it appears under its name.
    ///
    /// # Errors
    ///
    /// What the kernel says: also when something has taken the name meanwhile.
    pub fn keep(mut self) -> io::Result<()> {
        match rustix::fs::rename(self.dir.path(), &self.path) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
                Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already"))
            }
            done => {
                self.kept = done.is_ok();
                Ok(done?)
            }
        }
    }
}

impl Drop for WholeDir {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(self.dir.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
