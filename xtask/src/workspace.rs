//! Where files lie, and how commands are run.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// Root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a member of a workspace").to_owned()
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Whether a program of this name is on the `PATH`.
pub(crate) fn in_path(program: &str) -> bool {
    find_in_path(program).is_some()
}

/// Where a program of this name is on the `PATH`, or among those that cargo installed.
pub(crate) fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(cargo_bin())
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Where `cargo install` puts programs.
fn cargo_bin() -> Option<PathBuf> {
    Some(cargo_home()?.join("bin"))
}

/// Where cargo keeps what it has downloaded.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let home = |name| std::env::var_os(name).map(PathBuf::from);
    home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")))
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Says what it runs, and runs it to its end: at the root, unless the command names a directory of its own.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn step(command: &mut Command) -> Result<()> {
    println!("+ {}", line(command));
    if command.get_current_dir().is_none() {
        command.current_dir(root());
    }
    run(command)
}

/// Runs a command to its end.
///
/// # Errors
///
/// When it cannot be started or fails; the error has the command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// What a command prints.
///
/// # Errors
///
/// When it cannot be started or fails; the error has the command line, and what it said of that.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.output().with_context(|| format!("`{line}` could not be started"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether this runs as root.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    std::iter::once(program.file_name().unwrap_or(program.as_os_str()))
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
