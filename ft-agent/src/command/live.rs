//! `ft-agent sites`, `enable` and `disable`.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ft_agent::control::Recorder;
use ft_agent::control::socket::{self, Request};
use ft_agent::live::Process;
use ft_trace::number::count;
use serde::Serialize;

use super::control::PATIENCE;
use super::error::CommandError;
use super::{Result, named, output};

/// A running process.
#[derive(Debug, clap::Args)]
#[command(after_help = SITES_EXAMPLES)]
pub(crate) struct SitesArgs {
    /// The process, by number or name.
    #[arg(short, long, value_name = "PROCESS", value_parser = named::process)]
    pid: i32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A running process or recording, and which sites.
#[derive(Debug, clap::Args)]
#[command(after_help = ENABLE_EXAMPLES)]
#[command(group = clap::ArgGroup::new("where").required(true).args(["pid", "recording"]))]
pub(crate) struct EnableArgs {
    /// The process, by number or name.
    #[arg(short, long, value_name = "PROCESS", value_parser = named::process)]
    pid: Option<i32>,
    /// Directory of a running recording: in the processes that it records, and in those that come, until it ends.
    #[arg(short, long, value_name = "DIR")]
    recording: Option<PathBuf>,
    /// Globs over the names of sites.
    #[arg(required = true, value_name = "GLOB")]
    globs: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A running process, and which of its sites.
#[derive(Debug, clap::Args)]
#[command(after_help = DISABLE_EXAMPLES)]
pub(crate) struct SwitchArgs {
    /// The process, by number or name.
    #[arg(short, long, value_name = "PROCESS", value_parser = named::process)]
    pid: i32,
    /// Globs over the names of sites.
    #[arg(required = true, value_name = "GLOB")]
    globs: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const SITES_EXAMPLES: &str = "\
Sites of libraries that were loaded since the start are listed, too. The process is not stopped.

Examples:
  ft-agent sites -p 4711              event, kind, state, number of triggers, place in the source
  ft-agent sites -p 4711 --json       the same for programs";

const ENABLE_EXAMPLES: &str = "\
In a process the state stays until it is switched again. The process is not stopped; a thread that is just passing \
a site may notice one event later. Needs the right to trace the process: root, CAP_SYS_PTRACE, or the \
same user where kernel.yama.ptrace_scope is 0.

Examples:
  ft-agent enable -p 4711 'lock.*'        all lock events of a process
  ft-agent enable -r trace 'lock.*'       of all that `ft-agent record -o trace` records";

const DISABLE_EXAMPLES: &str = "\
As for `ft-agent enable`.

Examples:
  ft-agent disable -p 4711 '*'            everything off";

/// What became of the sites that were to be switched.
#[derive(Serialize)]
struct Answer {
    on: bool,
    switched: usize,
    already: usize,
    refused: Vec<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answer { switched, already, .. } = self;
        let state = if self.on { "on" } else { "off" };
        let plural = if *switched == 1 { "" } else { "s" };
        writeln!(
            f,
            "{} trigger{plural} switched {state}, {} already {state}",
            count(*switched as u64),
            count(*already as u64)
        )
    }
}

/// Lists the sites of a process.
pub(crate) fn sites(args: SitesArgs) -> Result {
    let listing = Process::open(args.pid)?.listing()?;
    output::print(args.json, &listing)?;
    Ok(ExitCode::SUCCESS)
}

/// Switches sites of a process or of a recording on.
pub(crate) fn enable(EnableArgs { pid, recording, globs, json }: EnableArgs) -> Result {
    let Some(dir) = recording else {
        return switch(SwitchArgs { pid: pid.unwrap_or_default(), globs, json }, true);
    };
    match Recorder::of_directory(&dir)?.ask(&Request::Enable { globs }, PATIENCE)? {
        socket::Answer::Enabled { processes } => output::print(json, &Enabled { processes })?,
        other => return Err(CommandError::unexpected(&other)),
    }
    Ok(ExitCode::SUCCESS)
}

/// What a recording says.
#[derive(Serialize)]
struct Enabled {
    processes: u64,
}

impl fmt::Display for Enabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.processes == 1 { "" } else { "es" };
        writeln!(f, "enabled in {} process{plural}, and in those that come", count(self.processes))
    }
}

/// Switches sites of a process. Fails when a site that matched could not be switched.
pub(crate) fn switch(args: SwitchArgs, on: bool) -> Result {
    let outcome = Process::open(args.pid)?.switch(&args.globs, on)?;
    let refused: Vec<String> = outcome.refused.iter().map(ToString::to_string).collect();
    for reason in &refused {
        // The exit status says it, too.
        let _ = writeln!(io::stderr(), "ft-agent: warning: {reason}");
    }
    let status = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let (switched, already) = (outcome.triggers, outcome.already);
    output::print(args.json, &Answer { on, switched, already, refused })?;
    Ok(status)
}
