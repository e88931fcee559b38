//! A Python that keeps frame pointers, as by itself from 3.15 on: that of Debian's unstable, with the C library that it
//! needs, in the target folder. Nothing of it is installed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{suite::Suite, workspace::target_dir};

const SUITE: &str = "sid";

/// What it consists of, and what that is linked with.
const PACKAGES: [&str; 7] = [
    "python3.15-minimal",
    "libpython3.15-minimal",
    "libpython3.15-stdlib",
    "libc6",
    "libgcc-s1",
    "libexpat1",
    "zlib1g",
];

fn folder() -> PathBuf {
    target_dir().join("framed-python")
}

/// What runs it, once it is there.
pub(crate) fn program() -> PathBuf {
    folder().join("python")
}

/// Downloads it when it is missing; returns what runs it, or `None` with a message when it cannot be had.
pub(crate) fn ensure() -> Option<PathBuf> {
    let python = program();
    if python.exists() {
        return Some(python);
    }
    let folder = folder();
    println!("Downloading a Python with frame pointers into {}", folder.display());
    match make(&folder) {
        Ok(()) => Some(python),
        Err(error) => {
            println!("The test of the call chains of Python will be skipped: {error:#}.");
            None
        }
    }
}

fn make(folder: &Path) -> Result<()> {
    let new = folder.with_extension("new");
    for old in [folder, &new] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    let suite = Suite::open(&new.join("apt"), SUITE)?;
    suite.unpack(&PACKAGES, &new.join("root"))?;
    suite.clear()?;
    let python = new.join("python");
    fs::write(&python, script(&folder.join("root/usr")))
        .with_context(|| format!("cannot write {}", python.display()))?;
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755))?;
    Ok(fs::rename(&new, folder)?)
}

/// Runs it with its own C library, which is newer than this machine's.
fn script(usr: &Path) -> String {
    format!(
        "#!/bin/sh\n\
         usr='{}'\n\
         libraries=$usr/lib/x86_64-linux-gnu\n\
         exec \"$libraries/ld-linux-x86-64.so.2\" --library-path \"$libraries\" \"$usr/bin/python3.15\" \"$@\"\n",
        usr.display()
    )
}
