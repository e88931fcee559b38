//! The process that takes the locks: not that of the tests, where others take some, too. It stops itself where it is to be
//! observed from, and to.

use std::{
    env,
    os::fd::AsRawFd,
    process::{Child, Command, Stdio},
};

/// Set for that process.
const SUBJECT: &str = "FT_TAKES_LOCKS";

/// A process that runs the test that has started it.
pub(crate) struct Subject(Child);

impl Subject {
    /// Starts it, and waits until it stops.
    pub(crate) fn start(test: &str) -> Subject {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", test, "--nocapture"]).env(SUBJECT, "");
        let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let subject = Subject(child);
        subject.wait_for_stop();
        subject
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    fn wait_for_stop(&self) {
        let mut status = 0;
        // SAFETY: the status is written to, and the child has not been waited for.
        let pid = unsafe { libc::waitpid(self.0.id() as i32, &mut status, libc::WUNTRACED) };
        assert!(pid as u32 == self.0.id() && libc::WIFSTOPPED(status), "{pid} {status:#x}");
    }

    fn go_on(&self) {
        // SAFETY: it has stopped, so the number is still its own.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, libc::SIGCONT) }, 0);
    }

    /// Lets it run until it stops again.
    pub(crate) fn run(&self) {
        self.go_on();
        self.wait_for_stop();
    }

    /// Lets it end; what it has said.
    pub(crate) fn end(self) -> String {
        self.go_on();
        let said = self.0.wait_with_output().unwrap();
        String::from_utf8(said.stderr).unwrap()
    }
}

/// Whether this is such a process.
pub(crate) fn is_subject() -> bool {
    env::var_os(SUBJECT).is_some()
}

/// Stops this process until another one continues it: no lock of its work is one of that.
pub(crate) fn stop() {
    // SAFETY: the signal stops the process before the call returns.
    assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
}

/// Duplicates one byte from a pipe to another: the mutexes of both are held.
pub(crate) fn tee(from: &impl AsRawFd, to: &impl AsRawFd) {
    // SAFETY: both descriptors are open.
    let n = unsafe { libc::tee(from.as_raw_fd(), to.as_raw_fd(), 1, 0) };
    assert_eq!(n, 1);
}
