//! The `ft-agent` command: parses, dispatches, prints the error, exits. Everything else is the library.

mod cli;
mod command;
#[cfg(test)]
mod tests;

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use ft_trace::{convert, dir};

/// What is said to this program when it is to be a worker that reads files of others.
const NAMES: &str = "read-names";

fn main() -> ExitCode {
    if env::args_os().nth(1).is_some_and(|first| first == NAMES) {
        return if convert::serve_names().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    convert::start_workers_by(|| {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ft-agent").arg(NAMES).env_clear();
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
