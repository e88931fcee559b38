//! `ft-agent doctor`.

use std::io::{self, Write};
use std::process::ExitCode;

use ft_agent::doctor::{self, Status};

use super::{Result, output};

/// Checks what this machine can record, and says how to get what is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The exit status is 1 when a check fails.

Examples:
  ft-agent doctor                     each check, and the remedy where it fails
  ft-agent doctor --json | jq '.[] | select(.status == \"fail\")'";

pub(crate) fn run(args: Args) -> Result {
    let checks = doctor::run();
    if args.json {
        output::print_json(&checks)?;
    } else {
        write!(io::stdout(), "{}", doctor::table(&checks))?;
    }
    let failed = checks.iter().any(|c| c.status == Status::Fail);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
