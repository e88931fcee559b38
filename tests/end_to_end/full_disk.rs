//! A disk that fills, and a file that may not grow: the recording ends, the command does not.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ft_trace::store::Trace;

use crate::counting::{last_number, reach};
use crate::harness::{self, Stage, gate};
use crate::mounts;

/// Events of the subject, 32 bytes each in the spool.
const EVENTS: &str = "500000";

/// A tmpfs of its own size, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it at `path`; an error without the right.
    fn mount(path: PathBuf, size: &str) -> io::Result<SmallDisk> {
        std::fs::create_dir(&path)?;
        mounts::tmpfs(&path, size, 0)?;
        Ok(SmallDisk(path))
    }

    fn resize(&self, size: &str) {
        mounts::tmpfs(&self.0, size, libc::MS_REMOUNT).expect("remount");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        mounts::remove(&self.0);
    }
}

/// A recording into `trace` of the subject, with a word of the shell when it has ended well.
fn recording(stage: &Stage, trace: &Path) -> Command {
    let progress = stage.path("progress");
    std::fs::write(&progress, [0; 8]).expect("progress file");
    let mut agent = harness::agent();
    agent.args(["record", "-k", "none", "-o"]).arg(trace);
    agent.args(["--", "sh", "-c", "\"$0\" endless \"$@\" && echo unharmed && exit 5"]);
    agent.arg(harness::subject()).arg(progress).arg(EVENTS);
    agent
}

/// Checks that the recording failed and its command did not; returns the last sentence.
fn failed(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let end = [&*format!("{{\"number\":{EVENTS}}}"), "unharmed"];
    assert!(lines.windows(2).any(|two| two == end), "{stdout}{stderr}");
    let sentence = stderr.lines().last().expect("a sentence").to_owned();
    assert!(sentence.starts_with("ft-agent: cannot write "), "{stderr}");
    assert!(sentence.contains("; the command ended with exit status 5; "), "{sentence}");
    sentence
}

/// Converts what is left of a recording; returns the number of its last event.
fn convert(dir: &Path) -> u64 {
    let output = harness::agent().arg("convert").arg(dir).output().expect("starts");
    harness::assert_success(&output);
    last_number(&Trace::open(dir).expect("a whole trace"))
}

#[test]
fn what_was_recorded_before_the_disk_was_full_stays_readable() {
    let stage = Stage::enter();
    let disk = match SmallDisk::mount(stage.path("disk"), "8m") {
        Ok(disk) => disk,
        Err(e) => return gate::skipped(&format!("no tmpfs can be mounted: {e}; run as root")),
    };
    gate::ran();
    let dir = disk.0.join("trace");
    let sentence = failed(&recording(&stage, &dir).output().expect("the agent starts"));
    let remedy = format!("make room, then run `ft-agent convert {}`", dir.display());
    assert!(sentence.contains("No space left") && sentence.contains(&remedy), "{sentence}");

    // Somewhere else, and in place after room was made.
    let elsewhere = stage.path("elsewhere");
    let copied = Command::new("cp").arg("-r").args([&dir, &elsewhere]).status();
    assert!(copied.expect("cp starts").success());
    disk.resize("32m");
    let last = convert(&dir);
    for command in ["events", "locks"] {
        let output = harness::agent().arg(command).arg(&dir).output().expect("starts");
        harness::assert_success(&output);
    }
    assert!(last > 100_000, "{last} events");
    assert_eq!(convert(&elsewhere), last);
}

#[test]
fn a_file_size_limit_ends_the_recording_and_kills_nobody() {
    let stage = Stage::enter();
    let dir = stage.path("trace");
    let mut agent = recording(&stage, &dir);
    agent.stdout(Stdio::piped()).stderr(Stdio::piped());
    let agent = agent.spawn().expect("the agent starts");
    reach(&stage.path("progress"), 10_000);
    // Of the agent alone; its command has its own already.
    let limit = libc::rlimit { rlim_cur: 4 << 20, rlim_max: 4 << 20 };
    let pid = agent.id() as libc::pid_t;
    // SAFETY: `limit` is valid, and the old one is not asked for.
    let set = unsafe { libc::prlimit(pid, libc::RLIMIT_FSIZE, &limit, std::ptr::null_mut()) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());

    let sentence = failed(&agent.wait_with_output().expect("the agent ends"));
    let remedy = "the trace ends there: raise the limit of file sizes (`ulimit -f`)";
    assert!(sentence.contains("File too large") && sentence.contains(remedy), "{sentence}");
    assert!(convert(&dir) >= 10_000, "it was converted already");
}
