//! `ft-agent export`.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;

use ft_report::export::{self, ExportError, FORMATS};
use ft_report::{listing, units};

use super::error::CommandError;
use super::trace_arg::TraceArg;
use super::watch::Watch;
use super::{Result, output};

/// Writes a trace in the format of another viewer.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    trace: TraceArg,

    /// Format to write.
    #[arg(short, long, value_parser = formats())]
    format: String,

    /// File or directory to write; it appears complete or not at all.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Only from this time after the start on (1.5s, 200ms).
    #[arg(long, value_name = "TIME", value_parser = units::offset_ns)]
    from: Option<i64>,

    /// Only before this time after the start.
    #[arg(long, value_name = "TIME", value_parser = units::offset_ns)]
    to: Option<i64>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
What began before --from is in the export from there on. A file that exists is replaced; a directory \
must be empty.

Examples:
  ft-agent export trace -f perfetto -o trace.pftrace
                                      for https://ui.perfetto.dev
  ft-agent export trace -f perfetto -o part.pftrace --from 1.5s --to 1.6s
                                      a part of it";

fn formats() -> PossibleValuesParser {
    let value = |format: &export::Format| PossibleValue::new(format.name).help(format.about);
    PossibleValuesParser::new(FORMATS.iter().map(value))
}

#[derive(Serialize)]
struct Exported {
    trace: PathBuf,
    format: &'static str,
    output: PathBuf,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = export::find(self.format).map_or("", |format| format.about);
        writeln!(f, "{}: for {about}", self.output.display())
    }
}

pub(crate) fn run(args: Args) -> Result {
    let trace = args.trace.open()?;
    let format = export::find(&args.format).expect("the parser takes no other");
    let window = listing::window(&trace, args.from, args.to)?;
    let mut watch = Watch::begin("export");
    export::export(&trace, format, window, &args.output, &mut |progress| watch.look(progress))
        .map_err(|error| match error {
            ExportError::Store(error) => CommandError::Store(error),
            ExportError::Write(source) => {
                CommandError::Export { path: args.output.clone(), source }
            }
            ExportError::NoChains | ExportError::NoChainsThere => {
                CommandError::NothingToExport(error)
            }
        })?;
    drop(watch);
    let Args { trace, output, json, .. } = args;
    output::print(json, &Exported { trace: trace.trace, format: format.name, output })?;
    Ok(ExitCode::SUCCESS)
}
