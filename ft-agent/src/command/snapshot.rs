//! `ft-agent snapshot`.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::control::socket::{Answer, Request};
use ft_trace::legible::legible;
use serde::Serialize;

use super::control::RecordingArgs;
use super::error::CommandError;
use super::to::ToArgs;
use super::{Result, output};

/// How long the conversion may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks a flight recorder for a snapshot of its last window, and waits until it can be read.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    to: ToArgs,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent snapshot trace             of `ft-agent record --flight-recorder 10s -o trace`
  ft-agent snapshot -p 4711           of the agent that is process 4711";

#[derive(Serialize)]
struct Snapshot {
    trace: PathBuf,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.trace.to_string_lossy();
        writeln!(f, "{} (`ft-agent report {0}`)", legible(&trace))
    }
}

pub(crate) fn run(args: Args) -> Result {
    let to = args.to.open_later()?;
    let trace = match args.recording.ask(&Request::Snapshot, PATIENCE)? {
        Answer::Snapshot(trace) => trace,
        other => return Err(CommandError::unexpected(&other)),
    };
    to.map(|to| to.put(&trace)).transpose()?;
    output::print(args.json, &Snapshot { trace })?;
    Ok(ExitCode::SUCCESS)
}
