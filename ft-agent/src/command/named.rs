//! `-p`: a running process, by its number or its name.

use std::fs;

use ft_agent::collect::discover;
use ft_trace::legible::legible;
use ft_trace::look;

/// Processes that are listed when a name is that of several.
const SHOWN: usize = 8;

/// The kernel keeps so many bytes of a name (proc_pid_comm(5)).
const COMM: usize = 15;

/// The process that `text` means: its number, its name, or the name of the program that it runs.
///
/// # Errors
///
/// A sentence, when there is no such process, or there are several.
pub(super) fn process(text: &str) -> Result<i32, String> {
    if let Ok(pid) = text.parse() {
        return Ok(pid);
    }
    let own = std::process::id().cast_signed();
    let mut found: Vec<(i32, String)> = discover::processes()
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let command = words(pid);
            let comm = discover::comm(pid, pid)?;
            is_called(text, &comm, &command).then_some((pid, command))
        })
        .collect();
    found.sort_unstable();
    chosen(text, &found)
}

/// The command line of a process, with blanks between its words.
fn words(pid: i32) -> String {
    let bytes = look::at(pid, move || fs::read(format!("/proc/{pid}/cmdline")));
    let bytes = bytes.and_then(Result::ok).unwrap_or_default();
    let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_owned()
}

fn is_called(name: &str, comm: &str, command: &str) -> bool {
    let program = command.split([' ', ':']).next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    program == name || comm == name || comm.len() == COMM && name.starts_with(comm)
}

fn chosen(name: &str, found: &[(i32, String)]) -> Result<i32, String> {
    match found {
        [(pid, _)] => Ok(*pid),
        [] => Err(format!("no process is called {name}")),
        several => {
            let line = |(pid, command): &(i32, String)| {
                let command: String = command.chars().take(60).collect();
                format!("\n  {pid}  {}", legible(&command))
            };
            let lines: String = several.iter().take(SHOWN).map(line).collect();
            let more = several.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            Err(format!(
                "{} processes are called {name}; give a number:{lines}{more}",
                several.len()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_name_of_its_program_or_its_own() {
        assert!(is_called("nginx", "nginx", "nginx: worker process"));
        assert!(is_called("postgres", "postmaster", "/usr/lib/postgresql/15/bin/postgres -D /x"));
        assert!(is_called("a-name-longer-than-15", "a-name-longer-t", "/opt/x"));
        assert!(!is_called("ngin", "nginx", "nginx: worker process"));
    }

    #[test]
    fn a_name_is_that_of_one_process() {
        let found: Vec<_> =
            (1..=10).map(|pid| (pid, format!("nginx: worker {pid}\u{1b}[2J"))).collect();
        assert_eq!(chosen("nginx", &found[..1]), Ok(1));
        assert_eq!(chosen("nginx", &[]), Err("no process is called nginx".into()));
        let several = chosen("nginx", &found).unwrap_err();
        assert!(
            several.contains("10 processes are called nginx") && several.contains("and 2 more")
        );
        assert!(
            several.contains("\n  8  nginx: worker 8") && !several.contains('\u{1b}'),
            "{several}"
        );
    }

    #[test]
    fn a_running_process_is_found_by_its_name() {
        assert_eq!(process("4711"), Ok(4711));
        assert!(process("no-such-program-anywhere").is_err());
    }
}
