//! The recorded command.
//!
//! It must be observed before its first instruction: so the forked child waits for [`Gated::release`] before it executes the command. Who
//! gives up waiting for that ends the child: its program may lie on a file system that does not answer now, and answer later.
//!
//! It has what the agent was started with: the environment byte by byte, the signal mask, the ignored signals, the closed
//! descriptors and the CPUs ([`inherited`]). Handlers of the agent end with the execution (execve(2)). The thread that forks it
//! must live as long as the agent: the child may ask for a signal when that thread ends (`PR_SET_PDEATHSIG`, prctl(2)).

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{self, SignalKind, signal};

use super::RecordError;
use crate::inherited;

unsafe extern "C" {
    /// What `getenv` reads (environ(7)).
    static environ: *const *const c_char;
}

/// What a child says that has nothing left to do but to execute its command; else the number of an error.
const AT_THE_GATE: i32 = 0;

/// A child that waits for permission to execute its command.
pub(super) struct Gated {
    child: Child,
    go: PipeWriter,
    /// Says why the command was not executed, or hangs up.
    failure: PipeReader,
    name: String,
    doomed: Doomed,
}

/// A process that ends when this is dropped, and is nobody else's by then.
struct Doomed(Option<OwnedFd>);

impl Drop for Doomed {
    fn drop(&mut self) {
        if let Some(child) = &self.0 {
            // It may have ended.
            let _ = pidfd_send_signal(child, Signal::KILL);
        }
    }
}

/// A command that runs.
pub(super) struct Child {
    /// Its process.
    pub(super) pid: i32,
    ends: unix::Signal,
    _terminal: Shared,
}

/// The terminal is the command's, too. What Ctrl-\ means, the command decides. A command that takes the terminal for itself, as an
/// interactive shell does, must not stop us when we write to it (termios(3), `TOSTOP`): that need not end.
struct Shared;

impl Shared {
    fn new() -> Shared {
        inherited::ignore(libc::SIGQUIT);
        inherited::ignore(libc::SIGTTOU);
        Shared
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        inherited::restore(libc::SIGQUIT);
    }
}

impl Gated {
    /// Forks a child for `command` (not empty) with these environment variables in the place of those of the same name.
    ///
    /// # Errors
    ///
    /// When the kernel gives no process.
    pub(super) fn fork(
        command: &[OsString],
        variables: &[(&'static str, OsString)],
    ) -> Result<Gated, RecordError> {
        Gated::try_fork(command, variables).map_err(RecordError::system("start the command"))
    }

    fn try_fork(command: &[OsString], variables: &[(&'static str, OsString)]) -> io::Result<Gated> {
        let words: Vec<CString> =
            command.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
        let environment = environment(given(), variables)?;
        let (argv, envp) = (pointers(&words), pointers(&environment));
        let (go_read, go) = io::pipe()?;
        let (mut failure, told) = io::pipe()?;
        let ends = signal(SignalKind::child())?;
        let shared = Shared::new();
        let agents_end = go.as_raw_fd();
        // SAFETY: the child makes system calls only: no lock, no allocation.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let number = execute(&argv, &envp, &go_read, &told, agents_end);
                let _ = rustix::io::write(&told, &number.to_ne_bytes());
                // SAFETY: nothing of the agent's runs.
                unsafe { libc::_exit(127) }
            }
            pid => pid,
        };
        drop((go_read, told));
        // What it does until it is at the gate is not the command's: it is observed from there on.
        let mut number = [0; 4];
        let at_the_gate = failure.read_exact(&mut number).map(|()| i32::from_ne_bytes(number));
        if !matches!(at_the_gate, Ok(AT_THE_GATE)) {
            // It has ended.
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::empty());
            return Err(at_the_gate.map_or_else(|error| error, io::Error::from_raw_os_error));
        }
        let name = command[0].to_string_lossy().into_owned();
        let doomed = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let child = Child { pid, ends, _terminal: shared };
        Ok(Gated { child, go, failure, name, doomed: Doomed(doomed) })
    }

    /// Process of the waiting child, which will be that of the command.
    pub(super) fn pid(&self) -> i32 {
        self.child.pid
    }

    /// Lets the child execute its command.
    ///
    /// # Errors
    ///
    /// When the command does not exist or cannot be executed.
    pub(super) async fn release(self) -> Result<Child, RecordError> {
        let Gated { mut child, mut go, failure, name, mut doomed } = self;
        let told = match go.write_all(&[1]) {
            Ok(()) => said(failure).await,
            Err(error) => Err(error),
        };
        doomed.0 = None;
        match told {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(child),
            told => {
                drop(go);
                // It has said why it ends.
                let _ = child.wait().await;
                let source = told.map_or_else(|error| error, io::Error::from_raw_os_error);
                Err(RecordError::Command { command: name, source })
            }
        }
    }
}

/// The number that a child says whose command was not executed.
async fn said(failure: PipeReader) -> io::Result<i32> {
    let mut number = [0; 4];
    let mut failure = pipe::Receiver::from_owned_fd(failure.into())?;
    failure.read_exact(&mut number).await?;
    Ok(i32::from_ne_bytes(number))
}

impl Child {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When it, or somebody else, has waited for it.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            let ended = waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG)?;
            if let Some((_, status)) = ended {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            self.ends.recv().await;
        }
    }
}

/// What this program was given.
fn given() -> impl Iterator<Item = &'static CStr> {
    // SAFETY: nothing in this program changes the environment. The list ends with a null.
    let at = |n: usize| unsafe {
        let entry = environ.as_ref().map_or(ptr::null(), |_| *environ.add(n));
        (!entry.is_null()).then(|| CStr::from_ptr(entry))
    };
    (0..).map_while(at)
}

/// Entries of an environment, whatever they are, and the variables in the place of those that have their names.
fn environment<'a>(
    given: impl Iterator<Item = &'a CStr>,
    variables: &[(&'static str, OsString)],
) -> io::Result<Vec<CString>> {
    let is_other = |entry: &&CStr| {
        let name = entry.to_bytes().split(|&byte| byte == b'=').next();
        variables.iter().all(|(variable, _)| Some(variable.as_bytes()) != name)
    };
    let own = variables.iter().map(|(name, value)| {
        Ok(CString::new([OsStr::new(name), value].map(OsStr::as_bytes).join(&b'='))?)
    });
    given.filter(is_other).map(|entry| Ok(entry.to_owned())).chain(own).collect()
}

/// As execve(2) takes them.
fn pointers(words: &[CString]) -> Vec<*const c_char> {
    words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect()
}

/// Runs in the child between fork and exec; why it has failed, as a number of errno(3).
fn execute(
    words: &[*const c_char],
    environment: &[*const c_char],
    go: &PipeReader,
    told: &PipeWriter,
    agents_end: RawFd,
) -> i32 {
    let waited = inherited::restore_all().and_then(|()| {
        // SAFETY: this is the child's copy of the agent's end, which nothing in the child uses. Open, it
        // would keep the child waiting for ever when the agent is killed now.
        unsafe { rustix::io::close(agents_end) };
        rustix::io::write(told, &AT_THE_GATE.to_ne_bytes())?;
        rustix::io::read(go, &mut [0u8; 1][..])
    });
    match waited {
        Ok(1) => {
            // SAFETY: both lists end with a null. It searches the agent's PATH, as a shell would.
            unsafe { libc::execvpe(words[0], words.as_ptr(), environment.as_ptr()) };
            io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
        }
        // It is never seen: the agent is gone.
        Ok(_) => libc::EPIPE,
        Err(error) => error.raw_os_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::run;

    fn fork(words: &[&str]) -> Gated {
        let words: Vec<OsString> = words.iter().map(|&word| word.into()).collect();
        Gated::fork(&words, &[("FT_TEST", "7".into())]).unwrap()
    }

    #[test]
    fn the_child_waits_and_then_becomes_the_command() {
        run(async {
            let gated = fork(&["sh", "-c", "exit $FT_TEST"]);
            let pid = gated.pid();
            // Of this thread, whose end it may ask to be told.
            if let Ok(children) = std::fs::read_to_string("/proc/thread-self/children") {
                assert!(children.split_whitespace().any(|child| child == pid.to_string()));
            }
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
        let check = async |command: &str, kind| match fork(&[command]).release().await {
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
            let Gated { go, mut child, doomed: _doomed, .. } = fork(&["true"]);
            drop(go);
            assert_eq!(child.wait().await.unwrap().code(), Some(127));
        })
        .unwrap();
    }

    #[test]
    fn a_child_that_is_given_up_is_killed() {
        run(async {
            let Gated { go: _go, mut child, doomed, .. } = fork(&["true"]);
            drop(doomed);
            assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGKILL));
        })
        .unwrap();
    }

    #[test]
    fn an_environment_is_passed_on_byte_by_byte_but_for_our_variables() {
        let given =
            [c"B=1", c"A=1", c"A=2", c"OURS", c"=X=3", c"\xff=\xfe", c"OURS=x", c"B=2", c"OURS="];
        let made = environment(given.into_iter(), &[("OURS", "=y".into())]).unwrap();
        let expected = [c"B=1", c"A=1", c"A=2", c"=X=3", c"\xff=\xfe", c"B=2", c"OURS==y"];
        assert_eq!(made, expected.map(CString::from));
    }
}
