//! `ft-agent convert`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ft_trace::convert;

/// Finishes a recording whose agent was killed, or whose conversion failed: spool to Parquet.
///
/// `record` converts by itself. Converting a finished trace changes nothing; an interrupted conversion
/// goes on where it ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of the trace.
    trace: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut segments = 0;
    let meta = convert::convert(&args.trace, |_, _| segments += 1)?;
    for warning in &meta.warnings {
        writeln!(io::stderr(), "ft-agent: warning: {warning}")?;
    }
    writeln!(io::stdout(), "{}: {segments} segments converted", args.trace.display())?;
    Ok(ExitCode::SUCCESS)
}
