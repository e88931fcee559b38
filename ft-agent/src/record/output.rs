//! The directory of a new trace.

use std::fs;
use std::path::Path;

use super::RecordError;
use ft_trace::dir::{Dir, Refused};
use ft_trace::spool::{self, Spool};

/// A new trace directory with an empty spool. Dropped without [`Output::keep`], it goes away again.
pub(super) struct Output {
    dir: Dir,
    spool: Spool,
    /// We made the directory itself, too.
    made: bool,
    keep: bool,
}

impl Output {
    /// Makes the directory if need be, and the spool in it.
    ///
    /// # Errors
    ///
    /// When it holds anything, is no directory, cannot be written, or is not ours alone: whoever else can make
    /// names in it decides where they lead.
    pub(super) fn prepare(path: &Path) -> Result<Output, RecordError> {
        let fail = |source| match Refused::of(source) {
            Ok(refused) => RecordError::OutputRefused(refused),
            Err(source) => RecordError::Output { path: path.to_owned(), source },
        };
        let (dir, made) = Dir::create(path).map_err(fail)?;
        if !dir.is_empty().map_err(fail)? {
            return Err(RecordError::OutputNotEmpty(path.to_owned()));
        }
        let spool = Spool::create_in(&dir).map_err(fail)?;
        Ok(Output { dir, spool, made, keep: false })
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The spool.
    pub(super) fn spool(&self) -> Spool {
        self.spool.clone()
    }

    /// The recording has begun: what is there stays.
    pub(super) fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.keep {
            // The reason why nothing was recorded is the error to tell, not this.
            let _ = self.dir.remove(spool::DIRECTORY);
            if self.made {
                let _ = fs::remove_dir(self.dir.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_directory_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Output::prepare(path).map(Output::keep).unwrap_err();
        Output::prepare(dir.path()).unwrap().keep();
        assert!(matches!(refused(dir.path()), RecordError::OutputNotEmpty(_)));
        Output::prepare(&dir.path().join("a/b")).unwrap().keep();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(refused(&file), RecordError::Output { .. }));
        assert!(matches!(refused(&file.join("x")), RecordError::Output { .. }));
        assert!(matches!(refused(Path::new("/proc/trace")), RecordError::Output { .. }));
    }

    #[test]
    fn nothing_stays_of_a_recording_that_did_not_begin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        drop(Output::prepare(&path).unwrap());
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        drop(Output::prepare(&path).unwrap());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
