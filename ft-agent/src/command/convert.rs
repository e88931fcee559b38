//! `ft-agent convert`.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ft_trace::convert;
use serde::Serialize;

use super::error::CommandError;
use super::to::{To, ToArgs};
use super::{Result, output};

/// Finishes a recording whose agent was killed, or whose conversion failed: spool to Parquet.
///
/// `record` converts by itself. Converting a finished trace changes nothing; an interrupted conversion
/// goes on where it ended.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directories of traces.
    #[arg(value_name = "DIR", required = true)]
    traces: Vec<PathBuf>,
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
                                      a trace of before, into a catalogue
  ft-agent convert traces/* --to s3://fleet/traces
                                      all that could not be brought while the store was away; what is there stays";

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
    let [trace] = &args.traces[..] else {
        return several(&args.traces, to.as_ref(), args.json);
    };
    one(trace, to.as_ref(), args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn one(trace: &Path, to: Option<&To>, json: bool) -> Result<()> {
    let mut segments = 0;
    let meta = convert::convert(trace, |_, _| segments += 1)?;
    let warnings: Vec<String> = meta.warnings.iter().map(ToString::to_string).collect();
    for warning in &warnings {
        // What is converted stays so when nobody reads this.
        let _ = writeln!(io::stderr(), "ft-agent: warning: {warning}");
    }
    to.map(|to| to.put(trace)).transpose()?;
    output::print(json, &Converted { trace: trace.to_owned(), segments, warnings })
}

/// One that fails does not keep the others.
fn several(traces: &[PathBuf], to: Option<&To>, json: bool) -> Result {
    let mut failed = 0;
    for trace in traces {
        match one(trace, to, json) {
            Err(error) if error.is_reader_gone() => return Err(error),
            Err(error) => {
                let _ = writeln!(io::stderr(), "ft-agent: {}: {error}", trace.display());
                failed += 1;
            }
            Ok(()) => {}
        }
    }
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(CommandError::Some { failed, of: traces.len() }),
    }
}
