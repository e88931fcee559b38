//! Whether perf's events stand in for tracepoints; see [`super::groups::Event`].

use std::path::Path;

use super::layout::{is_real_time, release, version};

/// The first kernel whose tracepoints can be preempted.
const FIRST: (u32, u32) = (7, 0);

/// Where events have their numbers (`mount -t tracefs`, or as a part of debugfs).
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Whether programs run at perf's events rather than at tracepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// This kernel does not preempt its tracepoints.
    NotNeeded,
    /// It does, and programs run at events where they could be preempted.
    Used {
        /// As they can in softirqs, too.
        real_time: bool,
    },
    /// It does, and the numbers of events cannot be read: runs of programs will be missed, and counted.
    NoTracefs,
}

impl Events {
    /// As it is on this machine.
    pub fn here() -> Self {
        match is_preempted(&release()) {
            false => Self::NotNeeded,
            true if readable() => Self::Used { real_time: is_real_time() },
            true => Self::NoTracefs,
        }
    }
}

/// Whether programs at tracepoints can be preempted on a kernel of this release.
fn is_preempted(release: &str) -> bool {
    version(release).is_some_and(|version| version >= FIRST)
}

fn readable() -> bool {
    let has = |root: &str| Path::new(root).join("events/raw_syscalls/sys_enter/id").exists();
    TRACEFS.into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_preempt_their_tracepoints_are_known_by_their_version() {
        let preempted = ["7.0.4+deb13-cloud-amd64", "7.3.4", "10.0-rc1"].map(is_preempted);
        assert_eq!(preempted, [true; 3]);
        let others = ["6.19.14+deb13-rt-amd64", "6.12.95", "5.10.0-32-amd64", ""];
        assert_eq!(others.map(is_preempted), [false; 4]);
    }
}
