//! `cargo xtask build`: the BPF object, then the agent that embeds it.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    build_ebpf,
    workspace::{self, cargo},
};

/// Builds the BPF object; without it the agent is built all the same, so this only warns.
pub(crate) fn bpf() {
    if let Err(error) = build_ebpf::run() {
        let object = build_ebpf::object(&workspace::root());
        let rest = if object.exists() {
            "the agent gets the object of an earlier build"
        } else {
            "the agent is built without its kernel side, and records with `-k none` only"
        };
        eprintln!("warning: {error:#}; {rest}");
    }
}

/// Builds the agent and the preload library beside it, optimised; returns where the program lies.
pub(crate) fn agent() -> Result<PathBuf> {
    let root = workspace::root();
    workspace::run(cargo().current_dir(&root).args([
        "build",
        "--release",
        "--package",
        "ft-agent",
        "--package",
        "ft-preload",
    ]))?;
    Ok(workspace::target_dir().join("release/ft-agent"))
}
