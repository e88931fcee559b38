//! What a program of tests has around it: the signals of a terminal, and a directory of sockets of its own.

use std::{
    process::{Command, Stdio},
    sync::LazyLock,
};

/// Where an agent listens by default. Each program of tests has a directory of its own there, in a mount namespace: a
/// recording takes in whatever program looks for an agent meanwhile, and those of other tests are not what a test expects.
pub(super) const SOCKETS: &str = "/run/feather-trace";

/// Runs a program that ends at the signals of a terminal, though a shell that put this run into the background has it ignore them:
/// tests end recordings by them.
pub(super) fn with_default_signals() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT");
    command
}

/// Runs a program that has [`SOCKETS`] for itself and its children.
pub(super) const IN_OWN_MOUNTS: [&str; 7] = [
    "unshare",
    "--mount",
    "--",
    "sh",
    "-c",
    "mkdir -p \"$0\" && mount -t tmpfs -o mode=755 tmpfs \"$0\" && exec \"$@\"",
    SOCKETS,
];

/// Whether this process may make such a namespace: only root may, and only root's agents listen there.
pub(super) fn own_sockets() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let mut nothing = with_default_signals();
        nothing
            .args(IN_OWN_MOUNTS)
            .arg("true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        nothing.status().is_ok_and(|status| status.success())
    });
    *MAY
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn programs_end_at_the_signals_of_a_terminal() {
        // What a shell does to what it puts into the background.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]);
        let within = with_default_signals();
        command.arg(within.get_program()).args(within.get_args());
        let status = command.args(["sh", "-c", "kill -INT $$; sleep 1"]).status();
        assert_eq!(status.expect("a shell").signal(), Some(2));
    }
}
