//! The subcommands, one module each: the flags (`Args`) and `run`, which calls the library and prints.
//!
//! `run` returns the exit status, or a [`CommandError`].

pub(crate) mod analyze;
pub(crate) mod catalogue;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod doctor;
mod error;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod fleet;
mod flight;
pub(crate) mod live;
pub(crate) mod manual;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
mod named;
mod numbered;
mod output;
mod page;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod snapshot;
pub(crate) mod study;
pub(crate) mod tables;
mod to;
#[cfg(feature = "top")]
pub(crate) mod top;
mod trace_arg;
mod watch;
mod width;

use std::process::ExitCode;

use crate::cli::Command;
use error::CommandError;

/// What a subcommand returns.
type Result<T = ExitCode> = std::result::Result<T, CommandError>;

/// Whatever is said to a command that this agent was built without.
#[cfg(not(feature = "top"))]
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<std::ffi::OsString>,
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> Result {
    match command {
        Command::Record(args) => record::run(*args),
        Command::Status(args) => control::status(&args),
        Command::Stop(args) => control::stop(&args),
        Command::Snapshot(args) => snapshot::run(args),
        Command::Sites(args) => live::sites(args),
        Command::Enable(args) => live::enable(args),
        Command::Disable(args) => live::switch(args, false),
        Command::Convert(args) => convert::run(args),
        Command::Analyze(args) => analyze::run(args),
        Command::Report(args) => report::run(args.request()?),
        Command::Compare(args) => compare::run(args),
        Command::Study(args) => study::run(args),
        Command::Events(args) => events::run(args),
        Command::Export(args) => export::run(args),
        Command::Catalogue(args) => catalogue::run(args),
        Command::Fleet(args) => fleet::run(args),
        Command::Tables(args) => tables::run(args),
        #[cfg(feature = "top")]
        Command::Top(args) => top::run(*args),
        #[cfg(not(feature = "top"))]
        Command::Top(_) => Err(CommandError::TopNotBuilt),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(&args),
        Command::Manual(args) => manual::run(&args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(&args),
    }
}

/// Runs the short form of a section.
pub(crate) fn run_section(
    section: &'static ft_report::sections::Report,
    args: report::ShortArgs,
) -> Result {
    report::run(args.request(section)?)
}
