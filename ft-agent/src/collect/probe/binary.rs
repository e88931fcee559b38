//! Which file a name means.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ft_trace::foreign_file::{self, ForeignFile};
use ft_trace::mounts::Mounts;
use ft_trace::{look, reach};

use crate::collect::maps;

/// Directories in which the loader looks in any case (ld.so(8)).
const ALWAYS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Where other directories are named (ldconfig(8)).
const LISTS: [&str; 2] = ["/etc/ld.so.conf", "/etc/ld.so.conf.d"];

/// A file that is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// What it is called: for messages, and for the trace.
    pub path: PathBuf,
    /// The file itself, where a process has named it: under its path we may find another one.
    held: Option<Arc<ForeignFile>>,
}

impl Binary {
    /// The file at a path that whoever runs us has named.
    pub fn at(path: PathBuf) -> Binary {
        Binary { path, held: None }
    }

    /// Opened for reading; `None` when it is no regular file.
    pub fn open(&self) -> Option<File> {
        match &self.held {
            Some(held) => held.open(),
            None => foreign_file::regular(&self.path),
        }
    }

    /// Under which path the kernel finds it, asked by this process.
    pub fn anchored(&self) -> PathBuf {
        self.held.as_ref().map_or_else(|| self.path.clone(), |held| held.anchored())
    }
}

/// The file of this name: a path; the command's own, or one that a process has mapped; a program on the PATH; a library where
/// the loader looks for it. A link's file, for that is what the kernel probes.
pub(super) fn find(name: &str, command: Option<&OsStr>, pids: &[i32]) -> Option<Binary> {
    if name.contains('/') {
        return is_file(name.into()).map(Binary::at);
    }
    let same = |path: &Path| path.file_name() == Some(OsStr::new(name));
    let own = command.map(PathBuf::from).filter(|path| path.components().count() > 1 && same(path));
    let on_path = || reach::find(name).and_then(is_file);
    let library = || {
        let first = std::env::var_os("LD_LIBRARY_PATH");
        let first: Vec<_> = first.iter().flat_map(std::env::split_paths).collect();
        find_in(first.into_iter().chain(listed()).chain(ALWAYS.map(PathBuf::from)), name)
    };
    own.and_then(is_file)
        .map(Binary::at)
        .or_else(|| pids.iter().find_map(|&pid| mapped(pid, same)))
        .or_else(|| on_path().or_else(library).map(Binary::at))
}

/// A file that a process has mapped: it need not be what we find under its path.
fn mapped(pid: i32, is: impl Fn(&Path) -> bool) -> Option<Binary> {
    let text = look::at(pid, move || maps::read(pid))?.ok()?;
    let mapping = maps::parse(&text).find(|m| !m.is_gone && is(Path::new(&m.path)))?;
    let path = mapping.path.clone().into();
    let held = look::at(pid, move || ForeignFile::mapped(pid, &mapping, &Mounts::of(pid)))??;
    Some(Binary { path, held: Some(Arc::new(held)) })
}

fn find_in(directories: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    directories.into_iter().find_map(|directory| is_file(directory.join(name)))
}

fn is_file(path: PathBuf) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Directories that the loader's cache is made of.
fn listed() -> Vec<PathBuf> {
    let files = LISTS.iter().flat_map(|place| match fs::read_dir(place) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![PathBuf::from(place)],
    });
    let lines = files.filter_map(|file| fs::read_to_string(file).ok());
    let directories =
        lines.flat_map(|text| text.lines().map(str::trim).map(PathBuf::from).collect::<Vec<_>>());
    directories.filter(|path| path.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_name_is_a_path_a_program_or_a_library() {
        let own = std::env::current_exe().expect("a file");
        let name = own.file_name().and_then(OsStr::to_str).expect("UTF-8");
        let path = own.to_str().expect("UTF-8");
        let find = |name, command, pids: &[i32]| Some(super::find(name, command, pids)?.path);
        let canonical = fs::canonicalize(&own).ok();
        assert_eq!(find(path, None, &[]), canonical);
        assert_eq!(find(name, Some(path.as_ref()), &[]), canonical);
        assert_eq!(find("no-such-program", Some(path.as_ref()), &[]), None);
        assert_eq!(find("sh", None, &[]), fs::canonicalize("/bin/sh").ok());
        let pid = i32::try_from(std::process::id()).expect("a number");
        let mapped = super::find(name, None, &[pid]).expect("its own file");
        assert!(mapped.path.ends_with(name), "{mapped:?}");
        let inode = |path: &Path| fs::metadata(path).expect("a file").ino();
        assert_eq!(inode(&mapped.anchored()), inode(&own));
        let libc = find("libc.so.6", None, &[]).expect("a library");
        assert!(libc.is_absolute(), "{libc:?}");
    }
}
