//! `ft-agent convert`.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ft_trace::convert;
use serde::Serialize;

use super::to::ToArgs;
use super::{Result, output};

/// Finishes a recording whose agent was killed, or whose conversion failed: spool to Parquet.
///
/// `record` converts by itself. Converting a finished trace changes nothing; an interrupted conversion
/// goes on where it ended.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the trace.
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    to: ToArgs,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent convert trace              after `ft-agent record --no-convert`, or after a crash
  ft-agent convert trace --to /srv/traces --label build=1.4
                                      a trace of before, into a catalogue";

#[derive(Serialize)]
struct Converted {
    trace: PathBuf,
    segments: u64,
    warnings: Vec<String>,
}

impl fmt::Display for Converted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.segments == 1 { "" } else { "s" };
        writeln!(f, "{}: {} segment{plural} converted", self.trace.display(), self.segments)
    }
}

pub(crate) fn run(args: Args) -> Result {
    let to = args.to.open()?;
    let mut segments = 0;
    let meta = convert::convert(&args.trace, |_, _| segments += 1)?;
    let warnings: Vec<String> = meta.warnings.iter().map(ToString::to_string).collect();
    for warning in &warnings {
        // What is converted stays so when nobody reads this.
        let _ = writeln!(io::stderr(), "ft-agent: warning: {warning}");
    }
    to.map(|to| to.put(&args.trace)).transpose()?;
    output::print(args.json, &Converted { trace: args.trace, segments, warnings })?;
    Ok(ExitCode::SUCCESS)
}
