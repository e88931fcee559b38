//! The `ft-agent` command: parses, dispatches, prints the error, exits. Everything else is the library.

mod cli;
mod command;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    ft_agent::signals::survive_file_size_limit();
    ft_agent::logger::install();
    let result = match cli::parse() {
        cli::Typed::Command(command) => command::run(command),
        cli::Typed::Section(section, args) => command::run_section(section, args),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is_reader_gone() => ExitCode::SUCCESS,
        Err(error) => {
            // When stderr is gone, too, nobody is left to read it.
            let _ = writeln!(io::stderr(), "ft-agent: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
