//! A file where a user wants it, which appears whole or not at all.
//!
//! It is written in the same directory under a name of its own, synced, and then renamed. Other users may be able to
//! make names in that directory (`/tmp`): what is opened is always new (`O_EXCL`), and a symbolic link that stands
//! where the file shall be is replaced, never followed. Files of a trace are written by [`crate::dir`], which asks
//! more of the directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::dir;

/// Names that are tried before somebody is in the way on purpose.
const ATTEMPTS: u32 = 16;

/// A file under construction. Dropped without [`WholeFile::keep`], it goes away again.
#[derive(Debug)]
pub struct WholeFile {
    dir: OwnedFd,
    file: File,
    aside: OsString,
    name: OsString,
    written: u64,
    kept: bool,
}

impl WholeFile {
    /// Begins the file of this path. What has the name stays until [`WholeFile::keep`].
    ///
    /// # Errors
    ///
    /// When the directory does not exist or cannot be written, a symbolic link of another user leads there, or something has the name that is neither a regular
    /// file nor a symbolic link.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let name = path.file_name().ok_or_else(|| wrong("this names no file"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = dir::walk(parent.unwrap_or(Path::new(".")), false)?;
        let dir = rustix::fs::openat(held, c".", flags, Mode::empty())?;
        match rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            found => match FileType::from_raw_mode(found?.st_mode) {
                FileType::RegularFile | FileType::Symlink => {}
                _ => return Err(wrong("what is there is no regular file")),
            },
        }
        let (file, aside) = new_file(&dir, &name)?;
        Ok(WholeFile { dir, file, aside, name, written: 0, kept: false })
    }

    /// It is complete: it appears under its name, durably. Returns its size in bytes.
    ///
    /// # Errors
    ///
    /// What the kernel says; what had the name is then as it was.
    pub fn keep(mut self) -> io::Result<u64> {
        self.file.sync_all()?;
        rustix::fs::renameat(&self.dir, &self.aside, &self.dir, &self.name)?;
        self.kept = true;
        rustix::fs::fsync(&self.dir)?;
        Ok(self.written)
    }
}

/// A file that did not exist, and its name: hidden, and like the one that it will have.
fn new_file(dir: &OwnedFd, like: &OsStr) -> io::Result<(File, OsString)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    // A name has 255 bytes at most.
    let like: String = like.to_string_lossy().chars().take(50).collect();
    for attempt in 0..ATTEMPTS {
        let aside = OsString::from(format!(".{like}.{}-{attempt}.tmp", std::process::id()));
        match rustix::fs::openat(dir, &aside, flags, dir::new_file()) {
            Err(Errno::EXIST) => {}
            file => return Ok((file?.into(), aside)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = rustix::fs::unlinkat(&self.dir, &self.aside, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn names(dir: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(|e| name(e).unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn it_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "before").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(dir.path())),
            ("before".into(), vec!["a".into()])
        );
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(file.keep().unwrap(), 5);
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(dir.path())),
            ("whole".into(), vec!["a".into()])
        );
    }

    #[test]
    fn no_link_is_followed_and_no_device_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        let aside = dir.path().join(format!(".link.{}-0.tmp", std::process::id()));
        symlink(&victim, &aside).unwrap();
        let mut file = WholeFile::create(&link).unwrap();
        file.write_all(b"page").unwrap();
        file.keep().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&link).unwrap(), "page");
        assert!(!link.is_symlink());
        for wrong in ["/dev/null", "/", "..", "", "/no/such/directory/a"] {
            WholeFile::create(Path::new(wrong)).unwrap_err();
        }
    }
}
