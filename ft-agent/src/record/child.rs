//! The recorded command.
//!
//! It must be observed before its first instruction: so the forked child first tells its number and
//! waits for [`Gated::release`] before it executes the command. `Command::spawn` returns only after the
//! execution, so a thread of its own spawns and then waits for the end.
//!
//! It has the signal mask and the ignored signals that the agent was started with. Handlers of the agent end with the
//! execution (execve(2)); SIGPIPE, which Rust's runtime ignores, `Command` sets to its default, and we back.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process};

use super::RecordError;
use crate::{inherited, threads};

/// A child that waits for permission to execute its command.
pub(super) struct Gated {
    pid: i32,
    go: PipeWriter,
    spawned: mpsc::Receiver<io::Result<()>>,
    name: String,
}

/// A command that runs.
pub(super) struct Child {
    /// Its process.
    pub(super) pid: i32,
}

impl Gated {
    /// Forks a child for `command` (not empty) with additional environment variables. `end` is told how it has
    /// ended, if it was executed.
    ///
    /// # Errors
    ///
    /// When the kernel gives no process.
    pub(super) fn fork(
        command: &[String],
        environment: &[(&'static str, String)],
        end: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<Gated, RecordError> {
        let name = command[0].clone();
        let fail = |source| RecordError::Command { command: name.clone(), source };
        let (mut ready_read, ready_write) = io::pipe().map_err(fail)?;
        let (go_read, go_write) = io::pipe().map_err(fail)?;
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).envs(environment.iter().map(|(k, v)| (k, v)));
        let agents_end = go_write.as_raw_fd();
        let pipe_ignored = inherited::is_ignored(libc::SIGPIPE);
        let gate = move || {
            if pipe_ignored {
                // SAFETY: no function of ours.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
            }
            wait_at_the_gate(&ready_write, &go_read, agents_end)
        };
        // SAFETY: between fork and exec it makes system calls only: no lock, no allocation.
        unsafe { child.pre_exec(gate) };

        let (spawned_sender, spawned) = mpsc::channel();
        let run = move || {
            let spawning = child.spawn();
            // The closure holds our copies of the pipe ends that belong to the child.
            drop(child);
            match spawning {
                Ok(mut running) => {
                    // Nobody listens any more when the recording was ended before the command.
                    let _ = spawned_sender.send(Ok(()));
                    end(running.wait());
                }
                Err(e) => {
                    let _ = spawned_sender.send(Err(e));
                }
            }
        };
        threads::spawn("ft-command", run).map_err(fail)?;

        let mut number = [0; 4];
        if ready_read.read_exact(&mut number).is_err() {
            // The fork failed.
            let reason = spawned.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            return Err(fail(reason.err().unwrap_or_else(|| io::ErrorKind::Other.into())));
        }
        let pid = i32::from_ne_bytes(number);
        Ok(Gated { pid, go: go_write, spawned, name })
    }

    /// Process of the waiting child, which will be that of the command.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the child execute its command.
    ///
    /// # Errors
    ///
    /// When the command does not exist or cannot be executed.
    pub(super) fn release(mut self) -> Result<Child, RecordError> {
        let spawned = self.go.write_all(&[1]).and_then(|()| {
            self.spawned.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
        });
        match spawned {
            Ok(()) => Ok(Child { pid: self.pid }),
            Err(source) => Err(RecordError::Command { command: self.name, source }),
        }
    }
}

impl Child {
    /// Asks the command to end, as `perf record` does when it stops before its command.
    pub(super) fn terminate(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // It may have ended meanwhile; its number is not reused before its thread has waited for it.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// Runs in the child between fork and exec.
fn wait_at_the_gate(ready: &PipeWriter, go: &PipeReader, agents_end: i32) -> io::Result<()> {
    // SAFETY: this is the child's copy of the agent's end, which nothing in the child uses. Open, it
    // would keep the child waiting for ever when the agent is killed now.
    unsafe { rustix::io::close(agents_end) };
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    rustix::io::write(ready, &pid.to_ne_bytes())?;
    match rustix::io::read(go, &mut [0u8; 1][..])? {
        1 => Ok(()),
        // Its error is never seen: the agent is gone.
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::discover;

    fn fork(words: &[&str]) -> (Gated, mpsc::Receiver<ExitStatus>) {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let (sender, ended) = mpsc::channel();
        let end = move |status: io::Result<_>| sender.send(status.unwrap()).unwrap();
        (Gated::fork(&words, &[("FT_TEST", "7".into())], end).unwrap(), ended)
    }

    #[test]
    fn the_child_waits_and_then_becomes_the_command() {
        let (gated, ended) = fork(&["sh", "-c", "exit $FT_TEST"]);
        let pid = gated.pid();
        // Still this program, not the shell.
        assert_eq!(
            std::fs::read_link(format!("/proc/{pid}/exe")).unwrap(),
            std::env::current_exe().unwrap()
        );
        let child = gated.release().unwrap();
        assert_eq!(child.pid, pid);
        assert_eq!(ended.recv().unwrap().code(), Some(7));
    }

    #[test]
    fn a_command_that_cannot_be_run_is_an_error() {
        let check = |command: &str, kind| match fork(&[command]).0.release() {
            Err(RecordError::Command { source, .. }) => assert_eq!(source.kind(), kind),
            _ => panic!("{command} ran"),
        };
        check("/does/not/exist", io::ErrorKind::NotFound);
        check("ft-no-such-command", io::ErrorKind::NotFound);
        check("/etc/passwd", io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_child_that_is_not_released_ends() {
        let (gated, _) = fork(&["true"]);
        let identity = discover::Identity::of(gated.pid()).unwrap();
        let Gated { go, spawned, .. } = gated;
        drop(go);
        assert!(spawned.recv().unwrap().is_err());
        drop(identity);
    }

    #[test]
    fn a_running_command_can_be_ended() {
        use std::os::unix::process::ExitStatusExt;
        let (gated, ended) = fork(&["sleep", "1000"]);
        gated.release().unwrap().terminate();
        let status = ended.recv().unwrap();
        assert_eq!(status.signal(), Some(15));
    }
}
