//! The checks of [`super`].

mod counters;

use std::fs;
use std::path::Path;
use std::time::Duration;

use ft_user::layout::DEFAULT_SOCKET;
use rustix::process::{Resource, getrlimit};

use super::Check;
use crate::clock::{self, Agreement};
use crate::collect::kernel::{self, Events, Group, Kernel, KernelError, Missing};
use ft_trace::clock::{ClockError, host_row, is_doubtful};
use ft_trace::tables::{HostClockRow, HostClockState};

/// Clock samples of which the widest counts.
const SAMPLES: usize = 20;

/// How long the CPUs are waited for.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// Brackets beyond this are those of a system call, not of the vDSO.
const WIDE_TSC: u64 = 1000;

pub(super) fn all() -> Vec<Check> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    vec![
        kernel_version(&kernel::release()),
        btf(fs::metadata("/sys/kernel/btf/vmlinux").map(|m| m.len()).ok()),
        capabilities(&read("/proc/self/status")),
        memory_lock(getrlimit(Resource::Memlock).current),
        programs(load),
        sections(load(&[Group::Section])),
        events(Events::here()),
        tsc_flags(&cpuinfo),
        clock_source(&clock::source()),
        synchronised(clock::probe(PROBE_PATIENCE)),
        time_of_day(host_row(&clock::sample_with_host()), &clock::ptp_clocks()),
        bracket((0..SAMPLES).map(|_| clock::sample().bracket_tsc).max().unwrap_or(0)),
        rseq(registered_rseq_bytes()),
        counters::check(),
        virtualisation(&cpuinfo, &read("/proc/stat")),
        socket_directory(Path::new(DEFAULT_SOCKET)),
    ]
}

/// BPF ring buffers came with 5.8, the `tp_btf` programs and CAP_BPF need no more; 5.10 is the oldest
/// long-term kernel with all of them.
fn kernel_version(release: &str) -> Check {
    const NAME: &str = "kernel";
    match kernel::version(release) {
        Some(version) if version >= (5, 10) => Check::ok(NAME, release),
        Some(_) => Check::fail(
            NAME,
            format!("{release} is older than 5.10"),
            "boot a kernel from 5.10 on, or record without the kernel stream (-k none)",
        ),
        None => Check::warn(NAME, format!("'{release}' has no version"), "expect 5.10 or newer"),
    }
}

fn btf(bytes: Option<u64>) -> Check {
    const NAME: &str = "kernel type information";
    match bytes {
        Some(bytes) if bytes > 0 => Check::ok(
            NAME,
            format!("/sys/kernel/btf/vmlinux, {}", ft_report::units::short_bytes(bytes)),
        ),
        _ => Check::fail(
            NAME,
            "/sys/kernel/btf/vmlinux is missing",
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, or record with -k none",
        ),
    }
}

/// `CapEff` of `/proc/PID/status`: bits as in linux/capability.h.
fn capabilities(status: &str) -> Check {
    const NAME: &str = "capabilities";
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let Some(have) = line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok()) else {
        return Check::warn(NAME, "/proc/self/status cannot be read", "mount /proc");
    };
    let missing = |wanted: &[(u32, &str)]| -> Vec<String> {
        let lacks = wanted.iter().filter(|(bit, _)| have & 1 << bit == 0);
        lacks.map(|(_, name)| (*name).to_owned()).collect()
    };
    let kernel = missing(&[(39, "CAP_BPF"), (38, "CAP_PERFMON")]);
    let others = missing(&[(19, "CAP_SYS_PTRACE")]);
    if !kernel.is_empty() {
        Check::fail(
            NAME,
            format!("{} missing: no kernel stream", kernel.join(" and ")),
            "run as root, grant them with `setcap cap_bpf,cap_perfmon+ep ft-agent` (then of processes of \
             one's own only), or record with -k none",
        )
    } else if !others.is_empty() {
        Check::warn(
            NAME,
            format!("{} missing: -p reaches only processes of this user", others.join(" and ")),
            "run as root to record those of others",
        )
    } else {
        Check::ok(NAME, "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE")
    }
}

/// Kernels before 5.11 charge BPF maps to RLIMIT_MEMLOCK; newer ones to the memory cgroup.
fn memory_lock(limit: Option<u64>) -> Check {
    const NAME: &str = "locked memory";
    match limit {
        None => Check::ok(NAME, "unlimited"),
        Some(bytes) => Check::ok(
            NAME,
            format!("{} (matters only before kernel 5.11)", ft_report::units::short_bytes(bytes)),
        ),
    }
}

fn tsc_flags(cpuinfo: &str) -> Check {
    const NAME: &str = "time stamp counter";
    let missing = clock::unannounced(cpuinfo);
    if missing.is_empty() {
        Check::ok(NAME, "constant_tsc, nonstop_tsc")
    } else {
        Check::fail(
            NAME,
            format!("the CPU does not announce {}", missing.join(" and ")),
            "application time stamps cannot be trusted here: use a CPU (or a virtual machine type) with an \
             invariant TSC",
        )
    }
}

fn clock_source(current: &str) -> Check {
    const NAME: &str = "clock source";
    match current {
        "" => Check::warn(NAME, "unknown", "mount /sys"),
        source if is_doubtful(source) => Check::warn(
            NAME,
            format!(
                "{source}: the kernel may not trust the TSC, by which the events of applications are placed in time"
            ),
            "see `dmesg | grep -i tsc`; the boot option tsc=reliable selects it",
        ),
        source => Check::ok(NAME, source),
    }
}

/// The TSCs of all CPUs, as a visit to each found them.
fn synchronised(found: Result<Agreement, ClockError>) -> Check {
    const NAME: &str = "clocks of the CPUs";
    match found {
        Ok(Agreement::Agree(cpus)) => Check::ok(NAME, format!("those of {cpus} CPUs agree")),
        Ok(Agreement::NotKnown) => Check::warn(
            NAME,
            "not compared: there is only one, or one was busy all the time",
            "run this again when no real-time thread keeps a CPU to itself",
        ),
        Err(error) => {
            let text = error.to_string();
            let (found, remedy) = text.split_once("; ").unwrap_or((&text, "use another machine"));
            Check::fail(NAME, found, remedy)
        }
    }
}

/// How far CLOCK_REALTIME can be off, by which traces of several hosts are compared.
fn time_of_day(row: Option<HostClockRow>, ptp_clocks: &[String]) -> Check {
    const NAME: &str = "time of day";
    const BOUNDED: &str = "run chronyd or ntpd, which tell the kernel how far it can be off, where traces of several \
                           hosts are to be compared";
    let ptp = match ptp_clocks {
        [] => String::new(),
        clocks => format!("; clocks for PTP, which are not read: {}", clocks.join(", ")),
    };
    let warn = |found: &str, remedy| Check::warn(NAME, format!("{found}{ptp}"), remedy);
    match row.map(|row| (row.state, row.bound_ns)) {
        Some((HostClockState::Synchronised, Some(bound_ns))) => {
            let bound = ft_report::units::short_ns(bound_ns as f64);
            Check::ok(
                NAME,
                format!("synchronised, right within {bound} by the kernel's account{ptp}"),
            )
        }
        Some((HostClockState::Synchronised | HostClockState::Unbounded, _)) => warn(
            "synchronised, but the kernel was told an error of 0: how far it can be off is not known",
            BOUNDED,
        ),
        Some((HostClockState::Unsynchronised, _)) => {
            warn("not synchronised: how far it is off is not known", BOUNDED)
        }
        Some((HostClockState::Unknown, _)) | None => warn(
            "the kernel does not say whether it is synchronised",
            "let the seccomp filter of this container or service allow adjtimex and clock_adjtime",
        ),
    }
}

/// Bytes of `struct rseq` that the C library has registered for this thread, as for every other: 0 if it may
/// not; `None` if it never does (glibc before 2.35, musl).
fn registered_rseq_bytes() -> Option<u32> {
    // SAFETY: the name is a C string; the symbol, where it exists, is an `unsigned int` that stays constant
    // after start-up (glibc manual, "Restartable Sequences").
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        (!size.is_null()).then(|| *size)
    }
}

/// Events take the CPU number from there: a system call for each would cost more than the event.
fn rseq(bytes: Option<u32>) -> Check {
    const NAME: &str = "restartable sequences";
    const WITHOUT: &str = "application events carry no CPU number";
    match bytes {
        Some(bytes @ 1..) => Check::ok(NAME, format!("registered, {bytes} bytes")),
        Some(0) => Check::warn(
            NAME,
            format!("not registered: {WITHOUT}"),
            "run on Linux 4.18 or newer, without GLIBC_TUNABLES=glibc.pthread.rseq=0",
        ),
        None => Check::warn(
            NAME,
            format!("the C library does not register them: {WITHOUT}"),
            "build and run applications with glibc 2.35 or newer",
        ),
    }
}

/// The clock bound of a trace is at least half of a bracket.
fn bracket(widest_tsc: u64) -> Check {
    const NAME: &str = "clock sampling";
    let found = format!("both clocks read within {widest_tsc} TSC cycles");
    if widest_tsc <= WIDE_TSC {
        return Check::ok(NAME, found);
    }
    Check::warn(
        NAME,
        found,
        "times of applications will be that much less certain: clock_gettime makes a system call here; \
         select the clock source tsc, or give this machine less to do",
    )
}

/// Verifies and attaches these groups once, and detaches them again; what the kernel lacks of them.
fn load(groups: &[Group]) -> Result<Vec<Missing>, KernelError> {
    let options =
        kernel::KernelOptions { groups: groups.to_vec(), ..kernel::KernelOptions::default() };
    Kernel::load(&options).map(|kernel| kernel.missing().to_vec())
}

/// All groups, by what `load` says of them.
fn programs(load: impl Fn(&[Group]) -> Result<Vec<Missing>, KernelError>) -> Check {
    const NAME: &str = "BPF programs";
    match load(Group::ALL) {
        Ok(missing) if missing.is_empty() => {
            Check::ok(NAME, format!("those of {} are accepted and attach", names(Group::ALL)))
        }
        Ok(missing) => {
            let lacks = |group: &Group| missing.iter().any(|m| m.group == *group);
            let groups: Vec<Group> = Group::ALL.iter().copied().filter(lacks).collect();
            let tracepoints: Vec<&str> = missing.iter().map(|m| m.tracepoint).collect();
            Check::warn(
                NAME,
                format!(
                    "{} not whole: this kernel has no {}",
                    names(&groups),
                    tracepoints.join(", ")
                ),
                "leave these groups out of -k, or use a kernel that has them (lock: Linux 5.19 or later)",
            )
        }
        Err(error) => match load(&Group::DEFAULT) {
            Err(error) => {
                let text = error.to_string();
                let (found, remedy) =
                    text.rsplit_once("; ").unwrap_or((&text, "record with -k none"));
                Check::fail(NAME, found, remedy)
            }
            // Only what must be asked for.
            Ok(_) => {
                let refused = |group: &Group| load(&[*group]).is_err();
                let groups: Vec<Group> = Group::ALL.iter().copied().filter(refused).collect();
                Check::warn(
                    NAME,
                    format!("{} cannot be recorded: {error}", names(&groups)),
                    "leave these groups out of -k",
                )
            }
        },
    }
}

/// The group that no list but its own name asks for.
fn sections(loaded: Result<Vec<Missing>, KernelError>) -> Check {
    const NAME: &str = "functions of the kernel";
    let remedy = "leave `section` out of -k";
    match loaded {
        Ok(missing) if missing.is_empty() => Check::ok(
            NAME,
            "programs attach to them: how long its locks are held can be counted (`section`)",
        ),
        Ok(missing) => {
            let inlined: Vec<&str> = missing.iter().map(|m| m.tracepoint).collect();
            Check::ok(
                NAME,
                format!(
                    "programs attach to them (`section`); inlined here, so holds of their locks cannot be timed: {}",
                    inlined.join(", ")
                ),
            )
        }
        Err(error @ KernelError::NoSections(_)) => {
            let text = error.to_string();
            let (found, remedy) = text.split_once("; ").unwrap_or((&text, remedy));
            Check::warn(NAME, found, remedy)
        }
        Err(_) => Check::warn(NAME, "not tried: the BPF programs are refused", remedy),
    }
}

/// Without them, on a kernel that preempts its tracepoints, records are missed that no buffer can hold.
fn events(events: Events) -> Check {
    const NAME: &str = "events of perf";
    match events {
        Events::NotNeeded => {
            Check::ok(NAME, "not needed: this kernel does not preempt tracepoints")
        }
        Events::Used { .. } => Check::ok(NAME, "used, for this kernel preempts tracepoints"),
        Events::NoTracefs => Check::warn(
            NAME,
            "this kernel preempts tracepoints, and tracefs is not mounted: records of system calls, and of \
             threads that end, will be missed, and counted",
            "mount -t tracefs tracefs /sys/kernel/tracing",
        ),
    }
}

fn names(groups: &[Group]) -> String {
    groups.iter().map(|group| group.name()).collect::<Vec<_>>().join(", ")
}

fn virtualisation(cpuinfo: &str, stat: &str) -> Check {
    const NAME: &str = "virtualisation";
    if !clock::has_flag(cpuinfo, "hypervisor") {
        return Check::ok(NAME, "none seen");
    }
    // Eighth figure of the first line, in clock ticks (proc(5)).
    let steal = stat.lines().next().and_then(|l| l.split_whitespace().nth(8)?.parse().ok());
    match steal {
        Some(0u64) => Check::ok(NAME, "a virtual machine; no stolen time since boot"),
        Some(ticks) => Check::warn(
            NAME,
            format!("a virtual machine; {ticks} ticks stolen since boot"),
            "it is in `running`, and in the gaps of polling threads in `unexplained`; use a dedicated host",
        ),
        None => Check::warn(
            NAME,
            "a virtual machine that does not report stolen time",
            "it is in `running`, and in the gaps of polling threads in `unexplained`",
        ),
    }
}

fn socket_directory(socket: &Path) -> Check {
    const NAME: &str = "registration socket";
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let writable = |path: &Path| {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
    };
    let parent = directory.parent().unwrap_or(Path::new("/"));
    if writable(directory) || (!directory.exists() && writable(parent)) {
        Check::ok(NAME, socket.display().to_string())
    } else {
        Check::warn(
            NAME,
            format!(
                "{} cannot be made: only commands after `--` and -p are recorded",
                socket.display()
            ),
            "run as root, or make the directory and give it to this user",
        )
    }
}

#[cfg(test)]
mod tests;
