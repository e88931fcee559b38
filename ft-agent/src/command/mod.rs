//! The subcommands, one module each: the flags (`Args`) and `run`, which calls the library and prints.
//!
//! `run` returns the exit status; an error is one sentence that ends in the remedy.

pub(crate) mod doctor;

use std::process::ExitCode;

use crate::cli::Command;

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Doctor(args) => doctor::run(args),
    }
}
