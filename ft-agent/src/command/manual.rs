//! `ft-agent manual`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap_mangen::Man;
use ft_trace::whole_file::WholeFile;

use super::{CommandError, Result};
use crate::cli;

/// Prints the manual page of the program, or of one of its commands, for `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The command; without one, the page of the program, which lists them.
    #[arg(value_parser = names())]
    command: Option<String>,
    /// Write all pages into this directory, each under its name.
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent manual record | man -l -     the page of `ft-agent record`
  ft-agent manual -o /usr/local/share/man/man1
                                        all pages, where `man` finds them";

/// Names of the commands that have a page.
fn names() -> Vec<&'static str> {
    let all = cli::GROUPS.iter().flat_map(|(_, names)| *names).copied();
    all.filter(|name| cfg!(feature = "top") || *name != "top").collect()
}

pub(crate) fn run(args: &Args) -> Result {
    let mut program = cli::command();
    // Gives the commands their full names.
    program.build();
    let Some(directory) = &args.output else {
        let command = args.command.as_deref().and_then(|name| program.find_subcommand(name));
        let (_, text) = page(command.unwrap_or(&program))?;
        io::stdout().write_all(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let commands = names().into_iter().filter_map(|name| program.find_subcommand(name));
    for command in std::iter::once(&program).chain(commands) {
        let (name, text) = page(command)?;
        let path = directory.join(name);
        let write = || {
            let mut file = WholeFile::create(&path)?;
            file.write_all(&text)?;
            file.keep()
        };
        write().map_err(|source| CommandError::File { path: path.clone(), source })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a command: the name of its file, and its text.
fn page(command: &clap::Command) -> io::Result<(String, Vec<u8>)> {
    let page = Man::new(command.clone()).section("1");
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok((page.get_filename(), text))
}
