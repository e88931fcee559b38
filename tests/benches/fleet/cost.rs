//! What a process took.

use std::fmt;
use std::fs;
use std::iter::Sum;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Of one process, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    cpu_s: f64,
    /// The most that one had.
    peak_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
}

impl Cost {
    /// One of `n` that are alike.
    pub(crate) fn of_each(self, n: u64) -> Cost {
        let n = n.max(1);
        Cost {
            cpu_s: self.cpu_s / n as f64,
            read_bytes: self.read_bytes / n,
            written_bytes: self.written_bytes / n,
            ..self
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(all: I) -> Cost {
        all.fold(Cost::default(), |a, b| Cost {
            cpu_s: a.cpu_s + b.cpu_s,
            peak_bytes: a.peak_bytes.max(b.peak_bytes),
            read_bytes: a.read_bytes + b.read_bytes,
            written_bytes: a.written_bytes + b.written_bytes,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { cpu_s, peak_bytes, read_bytes, written_bytes } = *self;
        let time =
            if cpu_s < 1.0 { format!("{:.0} ms", cpu_s * 1e3) } else { format!("{cpu_s:.1} s") };
        let [read, written] = [read_bytes, written_bytes].map(bytes);
        write!(f, "{time}, {}, {read} read, {written} written", bytes(peak_bytes))
    }
}

/// `1.6 MB`.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..1_000_000 => format!("{:.0} kB", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.2} GB", n as f64 / 1e9),
    }
}

/// Runs a program that must succeed; what it took, and what it printed.
pub(crate) fn measured(command: &mut Command) -> (Cost, String) {
    let printed = tempfile::NamedTempFile::new().expect("a file");
    let output = printed.reopen().expect("the file");
    let child = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn();
    let id = child.expect("the agent starts").id();
    let pid = Pid::from_raw(id as i32).expect("the number of a process");
    // It has ended, and the kernel still has its account: as long as nobody has waited for it.
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .expect("a child of ours");
    let account = fs::read_to_string(format!("/proc/{id}/io")).expect("the account of a child");
    let of = |key: &str| -> u64 {
        let line = account.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|n| n.trim().parse().ok()).expect("proc(5): io")
    };
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: both are there for the kernel to write into, and it writes them whole.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(id as i32, &mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    assert_eq!((waited, status), (id as i32, 0), "{command:?}");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cost = Cost {
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
        read_bytes: of("rchar:"),
        written_bytes: of("wchar:"),
    };
    (cost, fs::read_to_string(printed.path()).expect("what it printed"))
}
