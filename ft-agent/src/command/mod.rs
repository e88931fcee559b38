//! The subcommands, one module each: the flags (`Args`) and `run`, which calls the library and prints.
//!
//! `run` returns the exit status; an error is one sentence that ends in the remedy.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod events;
mod flight;
pub(crate) mod live;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod snapshot;
pub(crate) mod study;
pub(crate) mod watch;
pub(crate) mod width;

use std::process::ExitCode;

use crate::cli::Command;

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Record(args) => record::run(*args),
        Command::Snapshot(args) => snapshot::run(args),
        Command::Sites(args) => live::sites(args),
        Command::Enable(args) => live::switch(args, true),
        Command::Disable(args) => live::switch(args, false),
        Command::Convert(args) => convert::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(&args),
        Command::Events(args) => events::run(args),
        Command::Analyze(args) => report::analyze(args),
        Command::Report(args) => report::run(args, report::Question::All),
        Command::Locks(args) => report::run(args, report::Question::Locks),
        Command::Waits(args) => report::run(args, report::Question::Waits),
        Command::Preempted(args) => report::run(args, report::Question::Preempted),
        Command::Dispatch(args) => report::run(args, report::Question::Dispatch),
        Command::Gaps(args) => report::run(args, report::Question::Gaps),
        Command::Agreement(args) => report::run(args, report::Question::Agreement),
        Command::Study(args) => study::run(args),
        Command::Time(args) => report::run(args, report::Question::Time),
    }
}
