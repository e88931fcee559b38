//! Why the kernel side could not be started.

use std::io;

use aya::{BtfError, EbpfError, maps::MapError, programs::ProgramError};

/// Why the kernel side could not be started or steered. Every message ends in its remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The agent was built before the BPF object was.
    #[error(
        "this agent was built without its BPF programs; build it with `cargo xtask build`, or record \
         applications alone with `-k none`"
    )]
    NoObject,
    /// The embedded object is damaged, or writes another record layout.
    #[error(
        "the BPF programs in this agent are of another version than the agent: {}; rebuild both with \
         `cargo xtask build`",
        chain(.0)
    )]
    UnfitObject(#[source] EbpfError),
    /// The effective set lacks capabilities.
    #[error(
        "watching the kernel needs {missing}; run with sudo, or, for processes of your own, once \
         `sudo setcap cap_bpf,cap_perfmon+ep {program}`, or record applications alone with `-k none`"
    )]
    MissingCapability {
        /// Names of those that are missing.
        missing: String,
        /// Path of this program.
        program: String,
    },
    /// More is asked for than a user may see whom the program's file has lent its capabilities.
    #[error(
        "{0}, which this program may not for a user who only has its rights; leave it out, or run with sudo"
    )]
    Lent(String),
    /// The agent numbers processes otherwise than the kernel's records do.
    #[error(
        "this agent runs in a PID namespace, where processes have other numbers than in the kernel's \
         records; run it outside of it (in a container, with the PID namespace of the host: `docker run \
         --pid=host`), or record applications alone with `-k none`"
    )]
    PidNamespace,
    /// `/sys/kernel/btf/vmlinux` cannot be read.
    #[error(
        "the kernel does not say what its structures look like (/sys/kernel/btf/vmlinux: {0}); use a \
         kernel built with CONFIG_DEBUG_INFO_BTF, or record applications alone with `-k none`"
    )]
    NoBtf(io::Error),
    /// The kernel's BTF is not well formed.
    #[error(
        "the kernel's type information is malformed at byte {at}; report this with the kernel's version, \
         and record applications alone with `-k none`"
    )]
    MalformedBtf {
        /// Where.
        at: usize,
    },
    /// A member that the programs read does not exist in this kernel or is not aligned as expected.
    #[error(
        "this kernel's {0} is not where the programs could read it; report this with the kernel's \
         version, and record applications alone with `-k none`"
    )]
    UnknownMember(String),
    /// The way from a task to its cgroup is not as the programs know it.
    #[error(
        "this kernel has no {structure}.{path}, by which tasks are matched to their cgroup; use Linux 6.1 or \
         later with CONFIG_CGROUPS, or choose processes with -p"
    )]
    NoCgroups {
        /// Structure.
        structure: &'static str,
        /// Member.
        path: &'static str,
    },
    /// A tracepoint without which nothing can be told does not exist.
    #[error(
        "this kernel has no tracepoint {0}; use Linux 5.10 or later with CONFIG_TRACEPOINTS, or record \
         applications alone with `-k none`"
    )]
    NoTracepoint(&'static str),
    /// This kernel's programs do not learn which probe has called them.
    #[error("probes need Linux 5.15 or later, and this is {0}; leave out --probe")]
    NoProbes(String),
    /// Programs of two kinds that cannot be beside each other.
    #[error(
        "--probe and the kernel group `lock` cannot be recorded together; leave one of them out, or record twice"
    )]
    ProbesAndLocks,
    /// A probe could not be attached.
    #[error(
        "the kernel refused the probe {name}: {}; check that its file is a program on a local disk, and that nothing else \
         has probed a place inside of that instruction",
        chain(source)
    )]
    Probe {
        /// Probe.
        name: String,
        /// Why.
        #[source]
        source: ProgramError,
    },
    /// Probes could not be held.
    #[error("a thread for probes could not be made: {0}; raise the limit of processes (ulimit -u)")]
    ProbeThreads(#[source] io::Error),
    /// The size of the ring buffer.
    #[error(
        "a kernel buffer of {0} bytes is not possible; give a power of two from 4096 to 1073741824"
    )]
    RingSize(u32),
    /// There is no memory for a ring buffer.
    #[error(
        "the kernel makes no ring buffer of {bytes} bytes for its records: {source}; give a smaller --kernel-buffer, or \
         record applications alone with `-k none`"
    )]
    RingBuffer {
        /// Size of one.
        bytes: u32,
        /// What the system call said.
        source: io::Error,
    },
    /// The verifier or a security module refused a program.
    #[error(
        "the kernel refused the program {program} ({reason}){log}; if it is locked down \
         (/sys/kernel/security/lockdown) that is why, else report this; `-k none` records applications alone"
    )]
    Refused {
        /// Program.
        program: &'static str,
        /// What the system call said.
        reason: io::Error,
        /// The end of the verifier's log, with a leading separator; empty when there is none.
        log: String,
    },
    /// A program could not be loaded or attached for another reason.
    #[error(
        "the program {program} could not be started: {}; `-k none` records applications alone",
        chain(source)
    )]
    Program {
        /// Program.
        program: &'static str,
        /// Why.
        #[source]
        source: ProgramError,
    },
    /// A counter of the CPUs cannot be had.
    #[error(
        "the CPUs have no counter '{name}' that could be read at switches ({source}); leave it out of --switch-counter, or try another \
         machine (see `ft-agent doctor`)"
    )]
    NoCounter {
        /// Its name.
        name: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// No program can be attached to functions of the kernel.
    #[error(
        "this kernel lets no program be attached to its functions (fentry: {0}), by which the group `section` sees how long \
         locks are held; leave it out of -k, or try another kernel: it needs CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS, and can refuse with it, too"
    )]
    NoSections(String),
    /// A map could not be made.
    #[error(
        "the BPF object could not be loaded: {}; give the kernel buffer less memory, or record \
         applications alone with `-k none`",
        chain(.0)
    )]
    Object(#[source] EbpfError),
    /// aya could not use the kernel's BTF.
    #[error("the kernel's type information cannot be used: {}; `-k none` records applications alone", chain(.0))]
    Btf(#[source] BtfError),
    /// A map is missing or cannot be used.
    #[error("the map {map} cannot be used: {}; rebuild with `cargo xtask build`", chain(source))]
    Map {
        /// Its name.
        map: &'static str,
        /// Why.
        #[source]
        source: MapError,
    },
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

impl KernelError {
    /// Of the group `section`, from what loading or attaching one of its programs returned.
    pub(super) fn no_sections(error: &ProgramError) -> Self {
        Self::NoSections(match error {
            ProgramError::LoadError { io_error, .. } => io_error.to_string(),
            error => chain(error),
        })
    }

    /// From what loading `program` of the group `section` returned. Where the verifier has read it, its log says what was wrong.
    pub(super) fn from_section_load(program: &'static str, error: ProgramError) -> Self {
        match &error {
            ProgramError::LoadError { io_error, verifier_log }
                if io_error.kind() == io::ErrorKind::PermissionDenied
                    && tail(&verifier_log.to_string()).is_empty() =>
            {
                Self::no_sections(&error)
            }
            _ => Self::from_load(program, error),
        }
    }

    /// From what loading `program` returned.
    pub(super) fn from_load(program: &'static str, error: ProgramError) -> Self {
        match error {
            ProgramError::LoadError { io_error, verifier_log } => {
                Self::Refused { program, reason: io_error, log: tail(&verifier_log.to_string()) }
            }
            source => Self::Program { program, source },
        }
    }
}

/// The last lines of a verifier log: the reason is at its end, before the statistics.
fn tail(log: &str) -> String {
    const LINES: usize = 6;
    let lines: Vec<&str> = log
        .lines()
        .map(str::trim)
        .filter(|line| {
            let statistics = line.starts_with("processed ")
                || line.starts_with("verification time")
                || line.starts_with("stack depth");
            !line.is_empty() && !statistics
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(": {}", lines[lines.len().saturating_sub(LINES)..].join(" | "))
}

#[cfg(test)]
mod tests {
    use aya_obj::VerifierLog;

    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_reason() {
        assert_eq!(tail(""), "");
        assert_eq!(
            tail("0: r1 = 0\nR1 invalid mem access\nprocessed 2 insns\n"),
            ": 0: r1 = 0 | R1 invalid mem access"
        );
        let long: String = (0..100).map(|i| format!("line {i}\n")).collect();
        assert!(tail(&long).starts_with(": line 94 |"), "{}", tail(&long));
    }

    #[test]
    fn what_the_verifier_rejects_is_not_a_kernel_that_lacks_something() {
        let lacks = |errno, log: &str| {
            let error = ProgramError::LoadError {
                io_error: io::Error::from_raw_os_error(errno),
                verifier_log: VerifierLog::new(log.to_owned()),
            };
            let error = KernelError::from_section_load("section_up_read", error);
            matches!(error, KernelError::NoSections(_))
        };
        assert!(lacks(libc::EPERM, ""));
        assert!(!lacks(libc::EACCES, "R1 invalid mem access"));
        assert!(!lacks(libc::EINVAL, ""));
    }

    #[test]
    fn a_message_names_what_is_missing_and_ends_in_the_remedy() {
        let error = KernelError::MissingCapability {
            missing: "CAP_BPF and CAP_PERFMON".into(),
            program: "/usr/bin/ft-agent".into(),
        };
        let text = error.to_string();
        assert!(text.contains("CAP_BPF and CAP_PERFMON") && text.ends_with("`-k none`"), "{text}");
    }
}
