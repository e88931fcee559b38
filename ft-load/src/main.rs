//! The `ft-load` command: picks the subcommand, prints, exits. Everything else is the library.

use std::io::{self, Write};
use std::process::ExitCode;

use ft_load::{Error, Output, capacity, events, hourglass, npt, response, tasks};

const HELP: &str = "\
Loads whose truth is known, to evaluate a kernel, a scheduler's settings or a machine

Usage: ft-load COMMAND [OPTIONS]

  hourglass  threads with a known load, which find out for themselves when they ran
  npt        a loop that nothing should interrupt, and how long each pass took
  events     threads that write events at a given rate
  capacity   the highest rate of events at which a recording loses nothing
  tasks      async tasks on an executor whose queues are known, and what their events cost
  response   how long the jobs of a set of tasks take at worst, by analysis

`ft-load COMMAND --help` says what a command takes.

Examples:
  ft-load hourglass -n 2 -d 1s -a -p RTLOW -w PERIODIC 3ms 8ms --summary
  ft-load npt --rt 90 --cpu 1
  ft-load capacity --threads 1 --ring-size 1M,8M
  ft-load tasks turns --workers 4 --queues own
  ft-load response --task 3ms,8ms 17ms,33ms

Exit status: 0; 1 where the machine refuses; 2 where the command line has an error.";

fn main() -> ExitCode {
    let words: Result<Vec<String>, _> =
        std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    let result = match &words {
        Ok(words) => run(words),
        Err(word) => {
            Err(Error::Usage(format!("{word:?} is not UTF-8; write it in letters of that")))
        }
    };
    match result {
        Ok(output) => {
            // Whoever closed the other end has read enough.
            let _ = io::stdout().write_all(output.text.as_bytes());
            for note in output.notes {
                let _ = writeln!(io::stderr(), "ft-load: {note}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "ft-load: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(words: &[String]) -> Result<Output, Error> {
    match words.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("hourglass", rest)) => hourglass::run(rest),
        Some(("npt", rest)) => npt::run(rest),
        Some(("events", rest)) => events::run(rest),
        Some(("capacity", rest)) => capacity::run(rest),
        Some(("tasks", rest)) => tasks::run(rest),
        Some(("response", rest)) => response::run(rest),
        None | Some(("help" | "-h" | "--help", _)) => {
            Ok(Output { text: format!("{HELP}\n"), notes: Vec::new() })
        }
        Some((command, _)) => Err(Error::Usage(format!(
            "there is no command `{}`; `ft-load --help` lists them",
            command.escape_debug()
        ))),
    }
}
