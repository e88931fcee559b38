//! `ft-agent study`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ft_agent::record::Options;
use ft_report::units;

use super::report::Args as ReportArgs;
use super::{Result, numbered, record, report};

/// Prints how deep a program nests its locks and how long it holds them, beside the figures of the paper of 2007.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of a trace; without it, a command is recorded.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    trace: Option<PathBuf>,

    /// Directory of the trace that is recorded; must be empty or not exist [default: trace, then trace-2, trace-3, …].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Stop after this time (500ms, 10s, 2m, 1h).
    #[arg(short, long, value_name = "TIME", conflicts_with = "trace", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Print JSON.
    #[arg(long, conflicts_with = "command")]
    json: bool,

    /// Command to record with the preload library and without the kernel, after `--`.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent study -o packed -- pigz -kc -p4 /usr/bin/gdb
  ft-agent study -d 20s -- memcached -t 4 -p 7711
  ft-agent study packed               of an existing trace; any trace with locks will do";

/// Rings in which a program fits that does nothing but take locks.
const RING_BYTES: u64 = 32 << 20;

pub(crate) fn run(args: Args) -> Result {
    let (dir, code) = match args.trace {
        Some(dir) => (dir, ExitCode::SUCCESS),
        None => {
            let recording = record::converted(&Options {
                output: args.output.unwrap_or_else(numbered::next),
                duration: args.duration,
                kernel: Vec::new(),
                ring_bytes: Some(RING_BYTES),
                command: args.command,
                preload: true,
                ..Options::default()
            })?;
            recording.show(&mut io::stdout(), false, None, Vec::new())?;
            (recording.trace, record::exit_code(&recording.outcome))
        }
    };
    report::run(ReportArgs::study(dir, args.json).request()?)?;
    Ok(code)
}
