//! Features: each crate alone checks without features, with each of them, and with each two; and `ft-user` without sites.
//!
//! All packages of the workspace take part, and each target that cargo checks by default. What is not in the workspace has no
//! features that matter here: the fuzz targets and the programs of the kernel none, the benchmarks' `lttng`, which asks for
//! LTTng. Nothing is compiled to machine code but build scripts and macros, and the artifacts lie in the common target folder, so
//! crates from elsewhere are those of the lints.

use std::{path::PathBuf, process::Command, thread, time::Duration};

use anyhow::{Context, Result};

use crate::workspace::{cargo, run, step, target_dir};

/// The version of `cargo-hack`.
const VERSION: &str = "0.6.46";

/// How often the installation is tried.
const TRIES: u32 = 3;

/// How long after a try that failed the next one begins.
const PAUSE: Duration = Duration::from_secs(20);

/// Checks each combination. Installs `cargo-hack` into the target folder where it is missing, and says so first.
///
/// # Errors
///
/// When it cannot be installed, or a combination does not check.
pub(crate) fn check() -> Result<()> {
    let hack = installed()?;
    step(Command::new(hack).args([
        "hack",
        "check",
        "--workspace",
        "--feature-powerset",
        "--depth",
        "2",
        "--quiet",
    ]))
}

/// Lints `ft-user` without sites. All targets: most tests are for what has sites, and those that are left must compile.
///
/// # Errors
///
/// When the lints find something.
pub(crate) fn without_sites() -> Result<()> {
    let mut off = cargo();
    off.args(["clippy", "--package", "ft-user", "--all-targets", "--all-features"]);
    // By an argument of the lints, which crates from elsewhere do not get: they are those of the other checks.
    step(off.args(["--", "-D", "warnings", "--cfg", "ft_off"]))
}

/// Where `cargo-hack` lies: in the target folder, in a directory of its version.
fn installed() -> Result<PathBuf> {
    let folder = target_dir().join(format!("cargo-hack-{VERSION}"));
    let program = folder.join("bin/cargo-hack");
    if !program.is_file() {
        println!(
            "installing cargo-hack {VERSION} from crates.io into {} (about a minute)",
            folder.display()
        );
        let mut install = cargo();
        install.args([
            "install",
            "--quiet",
            "--locked",
            "--debug",
            "cargo-hack",
            "--version",
            VERSION,
            "--root",
        ]);
        install.arg(&folder).env_remove("CARGO_TARGET_DIR");
        let mut tried = run(&mut install);
        for _ in 1..TRIES {
            if tried.is_ok() {
                break;
            }
            thread::sleep(PAUSE);
            tried = run(&mut install);
        }
        tried.context("the features cannot be checked without cargo-hack")?;
    }
    Ok(program)
}
