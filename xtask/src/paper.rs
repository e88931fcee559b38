//! `cargo xtask paper [--scale X] [ID]…`: the papers' experiments, done again.

use anyhow::Result;

use crate::{
    setup,
    workspace::{cargo, step},
};

/// Sets up what is missing, builds the experiments, and runs all or the named ones: `papers/README.md` collects them.
///
/// # Errors
///
/// When something does not build, an experiment is not known, or one could not be run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.iter().any(|argument| ["--list", "-h", "--help"].contains(&argument.as_str())) {
        setup::run(setup::EXPERIMENTS);
    }
    let mut papers = cargo();
    papers.args(["run", "--quiet", "--release", "--package", "ft-papers", "--"]);
    step(papers.args(arguments))
}
