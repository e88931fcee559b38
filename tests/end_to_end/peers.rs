//! Other programs that watch the same run: whether they are there, and can.

use std::process::Command;

use crate::harness::gate;
use crate::mounts;

/// Whether a program that watches does so here; if not, that has been reported.
fn watches(name: &str, arguments: &[&str]) -> bool {
    match Command::new(name).args(arguments).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or_default();
            gate::skipped(&format!("{name} cannot watch here: {last}"));
        }
        Err(_) => gate::skipped(&format!("{name} is not installed; run `cargo xtask setup`")),
    }
    false
}

/// Whether bpftrace can; what the calling thread starts from now on sees the tracepoints.
pub(crate) fn bpftrace() -> bool {
    if let Err(error) = mounts::tracefs() {
        gate::skipped(&format!("tracefs, which bpftrace needs, cannot be mounted: {error}"));
        return false;
    }
    watches("bpftrace", &["-e", "tracepoint:irq:softirq_entry { exit(); }"])
}

/// Whether strace can.
pub(crate) fn strace() -> bool {
    watches("strace", &["-o", "/dev/null", "true"])
}
