//! `ft-agent completions`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap_complete::Shell;

use super::Result;
use crate::cli;

/// Prints a script that lets a shell complete subcommands and options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent completions bash > ~/.local/share/bash-completion/completions/ft-agent
  ft-agent completions zsh > /usr/local/share/zsh/site-functions/_ft-agent
  ft-agent completions fish > ~/.config/fish/completions/ft-agent.fish";

pub(crate) fn run(args: &Args) -> Result {
    // Into memory first: the generator does not bear with a reader that has gone.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "ft-agent", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
