//! `ft-agent doctor`.

use std::io::{self, Write};
use std::process::ExitCode;

use ft_agent::doctor::{self, Status};

/// Checks what this machine can record, and says how to get what is missing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let checks = doctor::run();
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &checks)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", doctor::table(&checks))?;
    }
    let failed = checks.iter().any(|c| c.status == Status::Fail);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
