//! Node, with what the tests of the report's page drive a browser by, and the reader of an export.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::workspace::{find_in_path, root, step};

/// Where the scripts lie that drive it.
fn scripts() -> PathBuf {
    root().join("tests/page")
}

fn lock() -> PathBuf {
    scripts().join("package-lock.json")
}

fn stamp() -> PathBuf {
    scripts().join("node_modules/installed.json")
}

/// Whether all is there that the lock file names.
pub(crate) fn is_there() -> bool {
    let [wanted, have] = [lock(), stamp()].map(|path| fs::read_to_string(path).ok());
    have.is_some() && have == wanted
}

/// Installs what the lock file names when it is missing or the file has changed; returns Node, or `None` with a message
/// when something cannot be had (no Node, no browser, no network).
///
/// # Errors
///
/// When the workspace cannot be read.
pub(crate) fn ensure() -> Result<Option<PathBuf>> {
    let (scripts, lock, stamp) = (scripts(), lock(), stamp());
    let wanted =
        fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let have = || -> Result<PathBuf> {
        let [Some(node), Some(npm), Some(_)] = ["node", "npm", "chromium"].map(find_in_path) else {
            bail!("node, npm and chromium are not all there")
        };
        if !fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
            println!("Installing what drives a browser into {}", scripts.display());
            let mut install = Command::new(npm);
            install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
            step(install.current_dir(&scripts))?;
            fs::write(&stamp, &wanted)
                .with_context(|| format!("cannot write {}", stamp.display()))?;
        }
        Ok(node)
    };
    match have() {
        Ok(node) => Ok(Some(node)),
        Err(error) => {
            println!(
                "The tests of the report's page and of one export will be skipped: {error:#}."
            );
            Ok(None)
        }
    }
}
