//! The end of a program of tests: it is waited for, or killed with all that it has started.

use std::{
    collections::HashMap,
    fs,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// The variable that all of a program's processes have. A process group would not reach those that make one of their own, and
/// would keep the program from a Ctrl-C.
const MARK: &str = "FT_XTASK_PROGRAM";

/// How often processes are killed at most.
const ROUNDS: u32 = 100;

/// A program that runs, and by what its processes are known.
pub(super) struct Marked {
    child: Child,
    /// As it stands in the environment of each.
    mark: String,
}

impl Marked {
    pub(super) fn start(command: &mut Command) -> Result<Marked> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let value = format!("{}-{number}", std::process::id());
        let child = command.env(MARK, &value).spawn().context("could not be started")?;
        Ok(Marked { child, mark: format!("{MARK}={value}") })
    }

    /// Those processes that run, and what they have started in turn, though it has another environment. What has that and has left
    /// its parent is not known.
    fn processes(&self) -> Vec<u32> {
        let mut parents = HashMap::new();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // Behind the name, in which there can be anything: the state, and the parent.
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            let (Some(pid), Some(state), Some(parent)) = (pid, fields.next(), fields.next()) else {
                continue;
            };
            if ["Z", "X"].contains(&state) {
                continue;
            }
            parents.insert(pid, parent.parse::<u32>().unwrap_or(0));
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|one| one == self.mark.as_bytes()) {
                found.push(pid);
            }
        }
        let mut looked_at = 0;
        while let Some(&parent) = found.get(looked_at) {
            let children = parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid);
            let new: Vec<u32> = children.filter(|pid| !found.contains(pid)).collect();
            found.extend(new);
            looked_at += 1;
        }
        found
    }

    /// Kills them until there is none: what is just being started is seen the next time. One that the kernel does not let go is left.
    fn kill(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            let processes = self.processes();
            if processes.is_empty() {
                break;
            }
            let mut kill = Command::new("kill");
            kill.arg("-KILL").args(processes.iter().map(u32::to_string)).stderr(Stdio::null());
            // Fails where one has ended meanwhile.
            kill.status().context("`kill` could not be started")?;
            thread::sleep(Duration::from_millis(20));
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// Waits for a program, which is killed with all that it has started if it takes longer: then there is no status.
pub(super) fn ended_within(program: &mut Marked, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = program.child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(20));
    }
    program.kill()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_killed_with_all_that_it_has_started() {
        let start =
            |script: &str| Marked::start(Command::new("sh").args(["-c", script])).expect("a shell");
        let limit = Duration::from_secs(3600);
        let status = ended_within(&mut start("exit 3"), limit).expect("it is waited for");
        assert_eq!(status.and_then(|status| status.code()), Some(3));

        // Children that it waits for and one that has left it, in sessions of their own, and without its environment.
        let script = "sleep 3600 & setsid sleep 3600 & env -i sleep 3600 &
            (setsid sh -c 'env -i sleep 3600; :' &)
            wait";
        let (mut program, mut other) = (start(script), start("exec sleep 3600"));
        // Two shells, and four that sleep.
        while program.processes().len() < 6 {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(ended_within(&mut program, Duration::ZERO).expect("it is killed"), None);
        assert_eq!(program.processes(), []);
        assert_eq!(other.processes().len(), 1, "another program goes on");
        assert_eq!(ended_within(&mut other, Duration::ZERO).expect("it is killed"), None);
    }
}
