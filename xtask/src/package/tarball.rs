//! The tarball: an agent that needs no library of the system it runs on, and the preload library beside it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::commit_time;
use crate::workspace::{self, cargo, output, run, step, target_dir};

/// The target whose C library is linked in. Naming it keeps the flags from procedural macros, which are loaded.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// All but object stores: they look up names of hosts, for which glibc loads libraries of its own version.
const FEATURES: &str = "top,flamegraph";

/// Builds the tarball; `preload` is the library that belongs to the agent. Returns where it lies.
///
/// # Errors
///
/// When the agent does not build, or is not static.
pub(super) fn build(preload: &Path) -> Result<PathBuf> {
    step(
        cargo()
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .args(["build", "--release", "--package", "ft-agent", "--target", TARGET])
            .args(["--no-default-features", "--features", FEATURES]),
    )?;
    let agent = target_dir().join(TARGET).join("release/ft-agent");
    let headers = output(Command::new("readelf").arg("-l").arg(&agent))?;
    ensure!(!headers.contains("INTERP"), "{} needs libraries of the system", agent.display());

    let directory = target_dir().join("package");
    let name = format!("feather-trace-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    let tree = directory.join(&name);
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).with_context(|| format!("cannot make {}", tree.display()))?;
    let root = workspace::root();
    let documents = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"].map(|file| root.join(file));
    for file in [&agent, preload].into_iter().chain(documents.iter().map(PathBuf::as_path)) {
        let to = tree.join(file.file_name().expect("a file has a name"));
        fs::copy(file, &to).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    let programs = ["ft-agent", "libft_preload.so"];
    run(Command::new("strip").arg("--strip-debug").args(programs).current_dir(&tree))?;
    let tarball = directory.join(format!("{name}.tar.xz"));
    // The same source makes the same tarball.
    run(Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", commit_time()))
        .args(["-C".as_ref(), directory.as_os_str(), "-cJf".as_ref(), tarball.as_os_str()])
        .arg(&name))?;
    Ok(tarball)
}
