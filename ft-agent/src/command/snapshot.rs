//! `ft-agent snapshot`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::flight::Recorder;

/// How long the conversion may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks a flight recorder for a snapshot of its last window, and waits until it can be read.
///
/// The same as SIGUSR1 to the agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of the recorder.
    #[arg(value_name = "DIR", default_value = "trace")]
    recorder: PathBuf,
    /// The recorder by the process of its agent, instead of its directory.
    #[arg(short, long, value_name = "PID", conflicts_with = "recorder")]
    pid: Option<i32>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let recorder = match args.pid {
        Some(pid) => Recorder::of_process(pid)?,
        None => Recorder::of_directory(&args.recorder)?,
    };
    let dir = recorder.snapshot(PATIENCE)?;
    writeln!(io::stdout(), "{} (`ft-agent report {0}`)", dir.display())?;
    Ok(ExitCode::SUCCESS)
}
