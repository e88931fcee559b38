//! Signals; the command `kill` is in a package that a small system lacks.

/// Sends a signal to a process of this test.
pub fn send(pid: u32, signal: libc::c_int) {
    // SAFETY: a plain system call; the process is our own, and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
}
