//! The Python readers that the tests open the Parquet with, in a virtual environment of the target
//! folder.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::workspace::{root, step, target_dir};

/// Makes the environment when it is missing or its requirements have changed; returns its
/// interpreter, or `None` with a message when it cannot be had (no network, no `venv`).
///
/// # Errors
///
/// When the workspace cannot be read.
pub(crate) fn ensure() -> Result<Option<PathBuf>> {
    let wanted_path = root().join("ft-agent/tests/python/requirements.txt");
    let wanted = fs::read_to_string(&wanted_path)
        .with_context(|| format!("cannot read {}", wanted_path.display()))?;
    let venv = target_dir().join("venv");
    let python = venv.join("bin/python");
    let stamp = venv.join("requirements.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(Some(python));
    }
    println!("Installing Python readers into {}: {}", venv.display(), wanted.replace('\n', " "));
    let made = step(Command::new("python3").args(["-m", "venv"]).arg(&venv)).and_then(|()| {
        step(
            Command::new(&python)
                .args(["-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r"])
                .arg(&wanted_path),
        )
    });
    match made {
        Ok(()) => {
            fs::write(&stamp, wanted)
                .with_context(|| format!("cannot write {}", stamp.display()))?;
            Ok(Some(python))
        }
        Err(error) => {
            println!("The tests of the Python readers will be skipped: {error:#}.");
            Ok(None)
        }
    }
}
