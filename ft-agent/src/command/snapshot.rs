//! `ft-agent snapshot`.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::flight::Recorder;
use serde::Serialize;

use super::to::ToArgs;
use super::{Result, output};

/// How long the conversion may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks a flight recorder for a snapshot of its last window, and waits until it can be read.
///
/// The same as SIGUSR1 to the agent.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the recorder.
    #[arg(value_name = "DIR", default_value = "trace")]
    recorder: PathBuf,
    /// Process id of the recorder's agent, instead of its directory.
    #[arg(short, long, value_name = "PID", conflicts_with = "recorder")]
    pid: Option<i32>,
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
        writeln!(f, "{} (`ft-agent report {0}`)", self.trace.display())
    }
}

pub(crate) fn run(args: Args) -> Result {
    let to = args.to.open_later()?;
    let recorder = match args.pid {
        Some(pid) => Recorder::of_process(pid)?,
        None => Recorder::of_directory(&args.recorder)?,
    };
    let trace = recorder.snapshot(PATIENCE)?;
    to.map(|to| to.put(&trace)).transpose()?;
    output::print(args.json, &Snapshot { trace })?;
    Ok(ExitCode::SUCCESS)
}
