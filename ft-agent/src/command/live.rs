//! `ft-agent sites`, `enable` and `disable`.

use std::io::{self, Write};
use std::process::ExitCode;

use ft_agent::live::Process;

/// A running process.
#[derive(Debug, clap::Args)]
#[command(after_help = SITES_EXAMPLES)]
pub(crate) struct SitesArgs {
    /// The process.
    #[arg(short, long, value_name = "PID")]
    pid: i32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A running process, and which of its sites.
#[derive(Debug, clap::Args)]
#[command(after_help = SWITCH_EXAMPLES)]
pub(crate) struct SwitchArgs {
    /// The process.
    #[arg(short, long, value_name = "PID")]
    pid: i32,
    /// Globs over the names of sites.
    #[arg(required = true, value_name = "GLOB")]
    globs: Vec<String>,
}

const SITES_EXAMPLES: &str = "\
Sites of libraries that were loaded since the start are listed, too. The process is not stopped.

Examples:
  ft-agent sites -p 4711              event, kind, state, number of triggers, place in the source
  ft-agent sites -p 4711 --json       the same for programs";

const SWITCH_EXAMPLES: &str = "\
The state stays until it is switched again. The process is not stopped; a thread that is just passing
a site may see it one event later. Needs the right to trace the process: root, CAP_SYS_PTRACE, or the
same user where kernel.yama.ptrace_scope is 0.

Examples:
  ft-agent enable -p 4711 'lock.*'        all lock events
  ft-agent disable -p 4711 '*'            everything off";

/// Lists the sites of a process.
pub(crate) fn sites(args: SitesArgs) -> anyhow::Result<ExitCode> {
    let listing = Process::open(args.pid)?.listing()?;
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &listing)?;
        writeln!(out)?;
    } else {
        write!(out, "{listing}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Switches sites of a process. Fails when a site that matched could not be switched.
pub(crate) fn switch(args: SwitchArgs, on: bool) -> anyhow::Result<ExitCode> {
    let switched = Process::open(args.pid)?.switch(&args.globs, on)?;
    for reason in &switched.refused {
        writeln!(io::stderr(), "ft-agent: warning: {reason}")?;
    }
    let (state, triggers) = (if on { "on" } else { "off" }, switched.triggers);
    let plural = if triggers == 1 { "" } else { "s" };
    let already = switched.already;
    writeln!(
        io::stdout(),
        "{triggers} trigger{plural} switched {state}, {already} already {state}"
    )?;
    Ok(if switched.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
