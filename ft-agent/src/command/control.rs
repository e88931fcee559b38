//! `ft-agent status` and `ft-agent stop`: asks a recording that runs, by its control socket.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::control::Recorder;
use ft_agent::control::socket::{Answer, Request, Status};
use ft_report::units;
use ft_trace::number::{count, quantity};
use serde::Serialize;

use super::error::CommandError;
use super::{Result, numbered, output};

/// How long a recording may take to answer: one that has a machine to itself does at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Which recording.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    /// Directory of the recording [default: the newest of trace, trace-2, …].
    #[arg(value_name = "DIR")]
    recording: Option<PathBuf>,
    /// Process id of the recording's agent, instead of its directory.
    #[arg(short, long, value_name = "PID", conflicts_with = "recording")]
    pid: Option<i32>,
}

impl RecordingArgs {
    /// Asks it.
    pub(super) fn ask(&self, request: &Request, patience: Duration) -> Result<Answer> {
        let recorder = match self.pid {
            Some(pid) => Recorder::of_process(pid)?,
            None => {
                let recording = self.recording.clone().map_or_else(numbered::newest, Ok)?;
                Recorder::of_directory(&recording)?
            }
        };
        Ok(recorder.ask(request, patience)?)
    }
}

/// Says how far a running recording is.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Ends a running recording, and its command.
#[derive(Debug, clap::Args)]
#[command(after_help = STOP_EXAMPLES)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  ft-agent status trace               of `ft-agent record -o trace`
  ft-agent status --json trace        the same for programs";

const STOP_EXAMPLES: &str = "\
The recording converts what it has and prints its summary where it was started; the recorded command gets SIGTERM.

Examples:
  ft-agent stop trace                 of `ft-agent record -o trace`
  ft-agent stop -p 4711               of the agent that is process 4711";

/// A status in words.
#[derive(Serialize)]
#[serde(transparent)]
struct Told(Status);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = &self.0;
        let what = match status.command.as_slice() {
            [] => String::new(),
            command => format!(", of `{}`", command.join(" ").escape_debug()),
        };
        let kind = if status.flight_recorder { "flight recorder" } else { "recording" };
        writeln!(f, "{kind} of process {}{what}, for {:.1} s", status.pid, status.seconds)?;
        writeln!(
            f,
            "{}, {}, {} lost; {} in {}",
            quantity(status.events, "event"),
            quantity(status.kernel_records, "kernel record"),
            count(status.lost),
            quantity(status.threads, "thread"),
            quantity(status.processes, "process")
        )?;
        let (bytes, left) = (status.bytes, status.bytes_to_convert);
        writeln!(f, "{}, {} to convert", units::short_bytes(bytes), units::short_bytes(left))?;
        match &status.failed {
            Some(reason) => writeln!(f, "nothing more is recorded: {}", reason.escape_debug()),
            None => Ok(()),
        }
    }
}

/// What `stop` says.
#[derive(Serialize)]
struct Stopping {
    stopping: bool,
}

impl fmt::Display for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the recording ends")
    }
}

pub(crate) fn status(args: &StatusArgs) -> Result {
    match args.recording.ask(&Request::Status, PATIENCE)? {
        Answer::Status(status) => output::print(args.json, &Told(status))?,
        other => return Err(CommandError::unexpected(&other)),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn stop(args: &StopArgs) -> Result {
    match args.recording.ask(&Request::Stop, PATIENCE)? {
        Answer::Stopping => output::print(args.json, &Stopping { stopping: true })?,
        other => return Err(CommandError::unexpected(&other)),
    }
    Ok(ExitCode::SUCCESS)
}
