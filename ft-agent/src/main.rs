//! The `ft-agent` command: parses, dispatches, prints the error, exits. Everything else is the library.

mod cli;
mod command;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    survive_file_size_limit();
    ft_agent::logger::install();
    match command::run(cli::Cli::parse().command) {
        Ok(code) => code,
        // `ft-agent … | head`: the reader has seen enough.
        Err(e) if broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            // Nothing is left to tell it to when stderr is gone.
            let _ = writeln!(io::stderr(), "ft-agent: {}", sentence(&e));
            command::watch::exit_code(&e)
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

/// The error and its causes in one line. Most errors of the library tell their cause themselves.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
