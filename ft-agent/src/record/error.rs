//! Why a recording cannot begin, or cannot go on.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::collect::attach::Refusal;
use crate::collect::cgroup::CgroupError;
use crate::collect::discover::ForeignProc;
use crate::collect::kernel::KernelError;
use crate::collect::probe::ProbeError;
use ft_trace::clock::ClockError;
use ft_trace::dir::Refused;
use ft_trace::spool::WriteError;

/// Why a recording cannot begin, or cannot go on. Each sentence ends in the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The output directory holds something.
    #[error("{0} exists and is not empty; choose another directory with -o, or remove it")]
    OutputNotEmpty(PathBuf),
    /// The output directory cannot be made or written.
    #[error("cannot write to {path}: {source}; {}", output_remedy(source))]
    Output {
        /// Directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Others decide what the names in the output directory mean.
    #[error("{0}; name a directory with -o that does not exist yet")]
    OutputRefused(Refused),
    /// The TSC is no clock here.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// `--ring-size` is out of range.
    #[error("a ring cannot have that size; give --ring-size between 128K and 128M")]
    RingSize,
    /// `--kernel-buffer` out of range.
    #[error("the buffer of the kernel's records can have 4K to 1G; choose another --kernel-buffer")]
    KernelBuffer,
    /// `--sample-rate` is out of range.
    #[error("a CPU cannot be sampled that often; give a --sample-rate between 1 and 20000")]
    SampleRate,
    /// `--on-full wait=TIME` is out of range.
    #[error(
        "a thread cannot wait that long for room in its ring; give --on-full wait=TIME between 1ms and 1s"
    )]
    FullWait,
    /// `--counter` with too many names.
    #[error("threads read two counters at most with each event; give fewer with --counter")]
    TooManyCounters,
    /// A counter that is given twice.
    #[error("the counter '{0}' twice shows the same twice; name it once, or another one")]
    CounterTwice(&'static str),
    /// `--switch-counter` with too many names.
    #[error("two counters at most are read at switches; give fewer with --switch-counter")]
    TooManySwitchCounters,
    /// `--switch-counter task-clock`.
    #[error(
        "how long a thread had a CPU is known from the switches themselves; give --switch-counter others than 'task-clock'"
    )]
    TimeAtSwitches,
    /// `--switch-counter` without switches.
    #[error("--switch-counter reads counters at switches; add the group `sched` to -k")]
    CountersWithoutSwitches,
    /// A counter that can be read by a system call only.
    #[error(
        "the kernel counts '{0}', so reading it takes system calls with each event; allow that with --counter-calls"
    )]
    SoftwareCounter(&'static str),
    /// A counter that cannot be had.
    #[error(
        "there is no counter '{name}' here ({source}); see `ft-agent doctor`, and record without it, or on another machine"
    )]
    NoCounter {
        /// Its name.
        name: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A counter that the user may not have.
    #[error(
        "you may not have the counter '{name}' ({source}); set kernel.perf_event_paranoid to 2 or less, or run as root (see `ft-agent doctor`)"
    )]
    CounterNotAllowed {
        /// Its name.
        name: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A counter of the processor's that no instruction reads here.
    #[error(
        "programs cannot read the counter '{0}' without system calls here (see `ft-agent doctor`); allow these with --counter-calls"
    )]
    CounterNotShown(&'static str),
    /// A distance of the reader is out of range.
    #[error(
        "the agent cannot look at such distances; give --reader timed=TIME between 10us and 100ms"
    )]
    ReaderTime,
    /// `--segment-size` is out of range.
    #[error("a segment cannot have that size; give --segment-size between 64K and 1G")]
    SegmentSize,
    /// `--segment-time` is out of range.
    #[error("segments that short hold nothing; give a --segment-time of 100ms or more")]
    SegmentTime,
    /// The globs do not fit into the answer to a process.
    #[error("the globs take more than 4 KiB together; give fewer or shorter ones with -e")]
    TooManyGlobs,
    /// A signal came before the time of `--start-at`, or before the command began.
    #[error(
        "the recording was called off before it began, so nothing was recorded; start it again"
    )]
    CalledOff,
    /// `--preload` without a command.
    #[error("--preload works on a command that is started; give one after --")]
    NothingToPreload,
    /// The preload library is not where it should be.
    #[error("there is no {}; build it (cargo build -p ft-preload), or name it in FT_PRELOAD", .0.display())]
    NoPreload(PathBuf),
    /// The path of the preload library cannot stand in `LD_PRELOAD`.
    #[error(
        "the path {} has a space or a colon in it, which LD_PRELOAD does not allow; \
         name a copy elsewhere in FT_PRELOAD", .0.display()
    )]
    PreloadPath(PathBuf),
    /// There is no process with this number.
    #[error("process {0} does not exist; look its number up, for example with `pgrep -l NAME`")]
    NoSuchProcess(i32),
    /// A running process cannot be recorded.
    #[error("cannot record process {pid}: {reason}")]
    Attach {
        /// Process.
        pid: i32,
        /// Why.
        reason: Refusal,
    },
    /// `--cgroup` names none.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// `/proc/PID/fd` or `/proc/PID/mem` of a running process is closed to us.
    #[error("cannot look into process {pid}: {source}; run as its user or as root")]
    Inspect {
        /// Process.
        pid: i32,
        /// What the kernel said.
        source: io::Error,
    },
    /// `--probe` names what is not there, or cannot be probed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// `/proc` is that of another PID namespace.
    #[error(transparent)]
    ForeignProc(#[from] ForeignProc),
    /// The command cannot be run.
    #[error("cannot run {command}: {source}; check its name, and that it is executable")]
    Command {
        /// Its first word.
        command: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nothing could ever be recorded.
    #[error(
        "nothing to record: no process can register at {socket} ({source}); give a command after --, \
         a process with -p, or run as root"
    )]
    NothingToRecord {
        /// Default socket.
        socket: PathBuf,
        /// Why it cannot be made.
        source: io::Error,
    },
    /// The kernel side cannot be started.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The spool cannot be made.
    #[error("{0}; nothing was recorded: {remedy}, then record again", remedy = .0.remedy())]
    NotBegun(WriteError),
    /// The spool cannot be written.
    #[error(
        "{0}; what was recorded until then is complete: {remedy}, then run `ft-agent convert {trace}`, here \
         or wherever you move it to", remedy = .0.error.remedy(), trace = .0.error.trace().display()
    )]
    Spool(CutShort),
    /// Something that every Linux gives was refused.
    #[error("cannot {what}: {source}; check the limits of this user (`ulimit -a`)")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A recording that ended before its command.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", end_of(*status))]
pub struct CutShort {
    /// Why.
    pub error: WriteError,
    /// How the command ended, where it was waited for.
    pub status: Option<ExitStatus>,
}

impl From<WriteError> for RecordError {
    fn from(error: WriteError) -> RecordError {
        RecordError::Spool(CutShort { error, status: None })
    }
}

/// What became of a command whose status is not that of the agent.
fn end_of(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return String::new() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("; the command ended with exit status {code}"),
        (None, Some(signal)) => format!("; the command was ended by signal {signal}"),
        (None, None) => String::new(),
    }
}

/// What helps before an output directory can be made.
fn output_remedy(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EMFILE) => "raise the limit of open files (`ulimit -n`)",
        _ => "choose a directory that you can write with -o",
    }
}

impl RecordError {
    /// For `map_err`: what was tried.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::System { what, source }
    }
}

impl RecordError {
    /// The command line asks for what cannot be, wherever it is run.
    pub fn is_usage(&self) -> bool {
        use RecordError::*;
        matches!(
            self,
            RingSize
                | KernelBuffer
                | SampleRate
                | FullWait
                | TooManyCounters
                | SoftwareCounter(_)
                | CounterTwice(_)
                | TooManySwitchCounters
                | TimeAtSwitches
                | CountersWithoutSwitches
                | ReaderTime
                | SegmentSize
                | SegmentTime
                | TooManyGlobs
                | NothingToPreload
        )
    }

    /// Of a counter that could not be opened, for the number of the error; `by_call`: it was to be read so.
    pub(super) fn counter(name: &'static str, errno: i32, by_call: bool) -> RecordError {
        let source = io::Error::from_raw_os_error(errno);
        match errno {
            libc::EACCES | libc::EPERM => RecordError::CounterNotAllowed { name, source },
            libc::EOPNOTSUPP if !by_call => RecordError::CounterNotShown(name),
            _ => RecordError::NoCounter { name, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_has_not_begun_has_nothing_to_convert() {
        let error = |errno| WriteError {
            path: "t/spool/segment-000000.ft".into(),
            source: io::Error::from_raw_os_error(errno),
        };
        let said = RecordError::NotBegun(error(libc::EMFILE)).to_string();
        let end = "; nothing was recorded: raise the limit of open files (`ulimit -n`), then record again";
        assert!(said.ends_with(end) && !said.contains("disk"), "{said}");
        let said = RecordError::NotBegun(error(libc::ENOSPC)).to_string();
        assert!(said.ends_with("; nothing was recorded: make room, then record again"), "{said}");
        let output = |errno| RecordError::Output {
            path: "t".into(),
            source: io::Error::from_raw_os_error(errno),
        };
        assert!(output(libc::EMFILE).to_string().ends_with("(`ulimit -n`)"));
        assert!(output(libc::EACCES).to_string().ends_with("that you can write with -o"));
    }

    #[test]
    fn a_recording_that_was_cut_short_says_how_its_command_ended() {
        let said = |status: Option<i32>| {
            let path = "t/spool/segment-000000.ft".into();
            let error = WriteError { path, source: io::Error::from_raw_os_error(libc::ENOSPC) };
            let status = status.map(ExitStatus::from_raw);
            RecordError::Spool(CutShort { error, status }).to_string()
        };
        for (status, expected) in [
            (Some(5 << 8), "; the command ended with exit status 5; what was recorded"),
            (Some(9), "; the command was ended by signal 9; what was recorded"),
            (None, "(os error 28); what was recorded"),
        ] {
            assert!(said(status).contains(expected), "{}", said(status));
            assert!(said(status).contains("make room, then run `ft-agent convert t`"));
        }
    }

    #[test]
    fn a_counter_that_cannot_be_had_is_told_with_what_helps() {
        for (errno, by_call, remedy) in [
            (libc::ENOENT, false, "there is no counter 'cycles' here"),
            (libc::EACCES, false, "perf_event_paranoid"),
            (libc::EPERM, true, "perf_event_paranoid"),
            (libc::EOPNOTSUPP, false, "--counter-calls"),
            // By a call it cannot be read either.
            (libc::EOPNOTSUPP, true, "on another machine"),
        ] {
            let said = RecordError::counter("cycles", errno, by_call).to_string();
            assert!(said.contains(remedy) && said.contains("'cycles'"), "{said}");
        }
    }
}
