//! The `ft-agent` command: parses, dispatches, prints the error, exits. Everything else is the library.

mod cli;
mod command;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    survive_file_size_limit();
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

/// Makes a write beyond RLIMIT_FSIZE an error like that of a full disk; by default its signal kills
/// (setrlimit(2)). A handler, because a recorded command would inherit that the signal is ignored.
fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, which it may do at any instruction.
    unsafe {
        if libc::signal(libc::SIGXFSZ, handler) == libc::SIG_IGN {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
    }
}
