//! The Python readers that the tests open the Parquet with, in virtual environments of the target
//! folder.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::workspace::{root, step, target_dir};

/// A virtual environment, and what is in it.
pub(crate) struct Environment {
    /// What its packages are for, in a message.
    pub(crate) what: &'static str,
    /// Its directory in the target folder.
    directory: &'static str,
    /// The file that names its packages and their versions.
    requirements: &'static str,
}

/// What most tests need.
pub(crate) const READERS: Environment = Environment {
    what: "Python readers",
    directory: "venv",
    requirements: "tests/python/requirements.txt",
};

/// Spark is larger than all the others together: where it cannot be had, they can.
pub(crate) const SPARK: Environment = Environment {
    what: "Spark (450 MB)",
    directory: "venv-spark",
    requirements: "tests/spark/requirements.txt",
};

/// An object store of Amazon's protocol, for catalogues of traces.
pub(crate) const STORE: Environment = Environment {
    what: "an object store (moto)",
    directory: "venv-store",
    requirements: "tests/store/requirements.txt",
};

/// Sail has Spark's interface, by a client of another version.
pub(crate) const SAIL: Environment = Environment {
    what: "Sail (600 MB)",
    directory: "venv-sail",
    requirements: "tests/sail/requirements.txt",
};

impl Environment {
    fn folder(&self) -> PathBuf {
        target_dir().join(self.directory)
    }

    /// What was installed.
    fn stamp(&self) -> PathBuf {
        self.folder().join("requirements.txt")
    }

    fn has(&self, wanted: &str) -> bool {
        let stamped = fs::read_to_string(self.stamp()).is_ok_and(|have| have == wanted);
        stamped && self.folder().join("bin/python").exists()
    }

    /// Whether it is there, with what its requirements name.
    pub(crate) fn is_there(&self) -> bool {
        fs::read_to_string(root().join(self.requirements)).is_ok_and(|wanted| self.has(&wanted))
    }

    /// Makes the environment when it is missing or its requirements have changed; returns its
    /// interpreter, or `None` with a message when it cannot be had (no network, no `venv`).
    ///
    /// # Errors
    ///
    /// When the workspace cannot be read.
    pub(crate) fn ensure(&self) -> Result<Option<PathBuf>> {
        let wanted_path = root().join(self.requirements);
        let wanted = fs::read_to_string(&wanted_path)
            .with_context(|| format!("cannot read {}", wanted_path.display()))?;
        let venv = self.folder();
        let python = venv.join("bin/python");
        if self.has(&wanted) {
            return Ok(Some(python));
        }
        let packages = wanted.replace('\n', " ");
        println!("Installing {} into {}: {packages}", self.what, venv.display());
        let made = step(Command::new("python3").args(["-m", "venv"]).arg(&venv)).and_then(|()| {
            step(
                Command::new(&python)
                    .args(["-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r"])
                    .arg(&wanted_path),
            )
        });
        match made {
            Ok(()) => {
                let stamp = self.stamp();
                fs::write(&stamp, wanted)
                    .with_context(|| format!("cannot write {}", stamp.display()))?;
                Ok(Some(python))
            }
            Err(error) => {
                println!("The tests of {} will be skipped: {error:#}.", self.what);
                Ok(None)
            }
        }
    }
}
