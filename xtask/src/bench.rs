//! `cargo xtask bench [--quick] [ROW]…`: the cost table of `ft-user/benches/README.md`.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{
    build::{self, Profile},
    packages::LTTNG_HEADER,
    setup,
    steps::Steps,
    workspace::{cargo, root, step, target_dir},
};

/// Sets up what is missing, builds everything that is measured, measures all rows or the named ones. A
/// whole run that is not a quick one writes the table.
///
/// # Errors
///
/// When something does not build, a row is not known, or one could not be measured.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut steps = Steps::new(3);
    steps.next("tools, and what the costs are compared with", None);
    setup::run(setup::BENCHMARKS);
    let has_lttng = Path::new("/").join(LTTNG_HEADER).exists();
    build::bpf(&mut steps);
    let agent = build::agent(&mut steps, Profile::Release, false)?;
    step(cargo().args(["build", "--release", "-p", "ft-load"]))?;
    let benches = root().join("ft-user/benches");
    let manifest = benches.join("costs/Cargo.toml");
    let costs = |command: &str, targets: &[&str], last: &[&str]| {
        let mut cargo = cargo();
        cargo.args([command, "--release", "--manifest-path"]).arg(&manifest).args(targets);
        if has_lttng {
            cargo.args(["--features", "lttng"]);
        }
        step(cargo.env("CARGO_TARGET_DIR", target_dir()).args(last))
    };
    // No other command looks at this crate.
    costs("clippy", &["--lib", "--bins"], &["--", "-D", "warnings"])?;
    costs("test", &["--lib", "--bin", "ft-costs"], &[])?;
    costs("build", &["--bins"], &[])?;
    let mut measure = Command::new(target_dir().join("release/ft-costs"));
    measure.arg("--agent").arg(agent).arg("--write").arg(benches.join("README.md"));
    step(measure.args(arguments))
}
