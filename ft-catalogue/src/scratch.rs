//! A directory of our own for what is on its way.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Result;
use crate::error::io_error;

/// A directory below that for temporary files (`TMPDIR`) that only this user can read. Dropped, it goes with all in it.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos());
        let (pid, next) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(format!("feather-trace-{pid}-{now}-{next}"));
        // It fails where anything has that name, so nobody can have prepared it.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(io_error("make", &path))?;
        Ok(Scratch { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in a directory whose contents go by themselves.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
