//! Programs of this workspace that tests record.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds something as the agent was; returns the folder of what is built. `FT_BUILT` says that all is built already, on a
/// machine where there is no time for a compiler.
pub(crate) fn build(what: &[&str]) -> &'static Path {
    let folder = Path::new(env!("CARGO_BIN_EXE_ft-agent")).parent().expect("a target folder");
    if std::env::var_os("FT_BUILT").is_some() {
        return folder;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet"]).args(what);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// Builds an example of a package, which `cargo test --test` alone would not; returns its binary.
///
/// `FT_WORKSPACE` says that the tests are those of all packages. Their crates have the features that any of them asks for, and
/// the debug information that a binary wants: with those of one package alone most would be built a second time.
pub(crate) fn example(package: &str, name: &str) -> PathBuf {
    let packages = match std::env::var_os("FT_WORKSPACE") {
        Some(_) => ["--workspace", "--bins"],
        None => ["--package", package],
    };
    build(&[&packages[..], &["--example", name]].concat()).join("examples").join(name)
}
