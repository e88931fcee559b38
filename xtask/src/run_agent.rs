//! `cargo xtask run-agent [-- ARGS of ft-agent record]`: sets up, builds, records.
//!
//! Without arguments it records the demo into `trace/demo`, replacing the trace of the run before.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{
    build, setup,
    workspace::{cargo, line, root, run as run_command, target_dir},
};

/// Sets up what is missing, builds, and hands over to the agent.
///
/// Runs as whoever calls it: without the rights for BPF the agent says what to do.
///
/// # Errors
///
/// When something cannot be built. What the agent itself reports is in the exit code.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    setup::run(&[]);
    build::bpf();
    let mut record = Command::new(build::agent()?);
    record.arg("record");
    if args.is_empty() {
        let demo = build_demo()?;
        let trace = root().join("trace/demo");
        clear(&trace)?;
        record.arg("-o").arg(&trace).arg("--").arg(demo);
    } else {
        record.args(args);
    }
    println!("+ {}", line(&record));
    let status = record.status().context("the agent could not be started")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

fn build_demo() -> Result<PathBuf> {
    run_command(cargo().current_dir(root()).args([
        "build",
        "--release",
        "--package",
        "ft-user",
        "--example",
        "demo",
    ]))?;
    Ok(target_dir().join("release/examples/demo"))
}

/// Removes the trace of the run before, and nothing that is not a trace.
fn clear(trace: &Path) -> Result<()> {
    if !trace.exists() {
        return Ok(());
    }
    let is_trace = ["meta.json", "spool"].iter().any(|name| trace.join(name).exists());
    let is_empty = fs::read_dir(trace).is_ok_and(|mut entries| entries.next().is_none());
    if !is_trace && !is_empty {
        bail!("{} is not a trace, and would be overwritten; move it away", trace.display());
    }
    fs::remove_dir_all(trace).with_context(|| format!("cannot remove {}", trace.display()))
}
