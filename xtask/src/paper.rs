//! `cargo xtask paper [--scale X] [ID]…`: the papers' experiments, done again.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    build::{self, Profile},
    setup,
    steps::Steps,
    workspace::{cargo, root, run as run_command, step},
};

/// Sets up what is missing, builds the experiments and what they run, and runs all or the named ones: `papers/README.md`
/// collects them.
///
/// # Errors
///
/// When something does not build, an experiment is not known, or one could not be run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut build = cargo();
    build.current_dir(root()).args(["build", "--quiet", "--release"]);
    run_command(build.args(["--package", "ft-papers", "--package", "ft-load"]))?;
    let papers = || Command::new(Profile::Release.dir().join("ft-papers"));
    if arguments.iter().any(|argument| ["--list", "-h", "--help"].contains(&argument.as_str())) {
        return run_command(papers().args(arguments));
    }
    // The agent takes minutes to build, and most experiments do without.
    let wants = papers().arg("--wants-agent").args(arguments).output();
    let wants = wants.context("ft-papers could not be started")?;
    setup::run(setup::EXPERIMENTS);
    if wants.stdout.starts_with(b"true") {
        let mut steps = Steps::new(2);
        build::bpf(&mut steps);
        build::agent(&mut steps, Profile::Release, false)?;
    }
    step(papers().args(arguments))
}
