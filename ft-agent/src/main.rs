//! The `ft-agent` command: parses, dispatches, prints the error, exits. Everything else is the library.

mod cli;
mod command;
#[cfg(test)]
mod tests;

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use ft_agent::control::registration;
use ft_trace::{convert, dir, helper};

/// The first word of a helper's command, and what that does.
type Help = (&'static str, fn() -> io::Result<()>);

/// What this program does beside itself ([`helper`]).
const HELPERS: [Help; 2] =
    [(convert::READS_NAMES, convert::serve_names), (registration::RECEIVES, registration::serve)];

fn main() -> ExitCode {
    let kind = env::args_os().nth(1).unwrap_or_default();
    if let Some((_, help)) = HELPERS.iter().find(|(name, _)| kind == *name) {
        return if help().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    helper::start_by(|kind| {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ft-agent").arg(kind).env_clear();
        command
    });
    ft_agent::signals::survive_file_size_limit();
    ft_agent::logger::install();
    let typed = cli::parse();
    if rustix::process::geteuid().is_root() {
        dir::set_rights_unless_said(0o700);
    }
    let result = match typed {
        cli::Typed::Command(command) => command::run(command),
        cli::Typed::Section(section, args) => command::run_section(section, args),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is_reader_gone() => ExitCode::SUCCESS,
        Err(error) => {
            error.say();
            ExitCode::from(error.exit_status())
        }
    }
}
