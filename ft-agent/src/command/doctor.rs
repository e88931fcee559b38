//! `ft-agent doctor`.

use std::io::{self, Write};
use std::process::ExitCode;

use ft_agent::doctor::{self, Status};

use super::{Result, named, output};

/// Checks what this machine can record, and says how to get what is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
    /// Check what delays a real-time thread here instead.
    #[arg(long)]
    realtime: bool,
    /// With --realtime: check this process, and the CPUs of its real-time threads.
    #[arg(short, long, value_name = "PROCESS", value_parser = named::process, requires = "realtime")]
    pid: Option<i32>,
}

const EXAMPLES: &str = "\
The exit status is 1 when a check fails. Checks of --realtime never fail: each line names an effect, which matters to some loops.

Examples:
  ft-agent doctor                     each check, and the remedy where it fails
  ft-agent doctor --realtime -p rt-loop
  ft-agent doctor --json | jq '.[] | select(.status == \"fail\")'";

pub(crate) fn run(args: Args) -> Result {
    let checks = if args.realtime { doctor::realtime(args.pid) } else { doctor::run() };
    if args.json {
        output::print_json(&checks)?;
    } else {
        write!(io::stdout(), "{}", doctor::table(&checks))?;
    }
    let failed = checks.iter().any(|c| c.status == Status::Fail);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
