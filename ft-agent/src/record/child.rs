//! The recorded command.
//!
//! It must be observed before its first instruction: so the forked child first tells its number and
//! waits for [`Gated::release`] before it executes the command. `spawn` returns only after the
//! execution, so a blocking thread spawns.
//!
//! It has the signal mask, the ignored signals and the CPUs that the agent was started with. Handlers of the agent end with the
//! execution (execve(2)); SIGPIPE, which Rust's runtime ignores, `Command` sets to its default, and we back.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::process::ExitStatus;

use tokio::process::Command;
use tokio::task::{JoinHandle, spawn_blocking};

use super::RecordError;
use crate::inherited;

/// A child that waits for permission to execute its command.
pub(super) struct Gated {
    pid: i32,
    go: PipeWriter,
    spawned: JoinHandle<io::Result<tokio::process::Child>>,
    name: String,
}

/// A command that runs.
pub(super) struct Child {
    /// Its process.
    pub(super) pid: i32,
    process: tokio::process::Child,
}

impl Gated {
    /// Forks a child for `command` (not empty) with additional environment variables.
    ///
    /// # Errors
    ///
    /// When the kernel gives no process.
    pub(super) async fn fork(
        command: &[String],
        environment: &[(&'static str, String)],
    ) -> Result<Gated, RecordError> {
        let name = command[0].clone();
        let fail = |source| RecordError::Command { command: name.clone(), source };
        let (mut ready_read, ready_write) = io::pipe().map_err(fail)?;
        let (go_read, go_write) = io::pipe().map_err(fail)?;
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).envs(environment.iter().map(|(k, v)| (k, v)));
        let agents_end = go_write.as_raw_fd();
        let cpus = inherited::cpus();
        let pipe_ignored = inherited::is_ignored(libc::SIGPIPE);
        let gate = move || {
            if pipe_ignored {
                // SAFETY: no function of ours.
                unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
            }
            if let Some(cpus) = &cpus {
                rustix::thread::sched_setaffinity(None, cpus)?;
            }
            wait_at_the_gate(&ready_write, &go_read, agents_end)
        };
        // SAFETY: between fork and exec it makes system calls only: no lock, no allocation.
        unsafe { child.pre_exec(gate) };

        // Dropped afterwards: the closure holds our copies of the pipe ends that belong to the child.
        let spawned = spawn_blocking(move || child.spawn());
        let mut number = [0; 4];
        if ready_read.read_exact(&mut number).is_err() {
            // The fork failed.
            return Err(fail(
                ended(spawned.await).err().unwrap_or_else(|| io::ErrorKind::Other.into()),
            ));
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
    pub(super) async fn release(mut self) -> Result<Child, RecordError> {
        let spawned = match self.go.write_all(&[1]) {
            Ok(()) => ended(self.spawned.await),
            Err(error) => Err(error),
        };
        match spawned {
            Ok(process) => Ok(Child { pid: self.pid, process }),
            Err(source) => Err(RecordError::Command { command: self.name, source }),
        }
    }
}

/// What the spawning thread says.
fn ended<T>(joined: Result<io::Result<T>, tokio::task::JoinError>) -> io::Result<T> {
    joined.unwrap_or_else(|error| Err(error.into()))
}

impl Child {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When somebody else has waited for it.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
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
    use crate::control::run;

    async fn fork(words: &[&str]) -> Gated {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        Gated::fork(&words, &[("FT_TEST", "7".into())]).await.unwrap()
    }

    #[test]
    fn the_child_waits_and_then_becomes_the_command() {
        run(async {
            let gated = fork(&["sh", "-c", "exit $FT_TEST"]).await;
            let pid = gated.pid();
            // Still this program, not the shell.
            assert_eq!(
                std::fs::read_link(format!("/proc/{pid}/exe")).unwrap(),
                std::env::current_exe().unwrap()
            );
            let mut child = gated.release().await.unwrap();
            assert_eq!(child.pid, pid);
            assert_eq!(child.wait().await.unwrap().code(), Some(7));
        })
        .unwrap();
    }

    #[test]
    fn a_command_that_cannot_be_run_is_an_error() {
        let check = async |command: &str, kind| match fork(&[command]).await.release().await {
            Err(RecordError::Command { source, .. }) => assert_eq!(source.kind(), kind),
            _ => panic!("{command} ran"),
        };
        run(async {
            check("/does/not/exist", io::ErrorKind::NotFound).await;
            check("ft-no-such-command", io::ErrorKind::NotFound).await;
            check("/etc/passwd", io::ErrorKind::PermissionDenied).await;
        })
        .unwrap();
    }

    #[test]
    fn a_child_that_is_not_released_ends() {
        run(async {
            let Gated { go, spawned, .. } = fork(&["true"]).await;
            drop(go);
            assert!(ended(spawned.await).is_err());
        })
        .unwrap();
    }
}
