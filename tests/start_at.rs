//! `record --start-at`: a recording that waits for its time. Everything here runs without rights: `-k none`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ft_trace::store::Trace;

use ft_tests::signal;

/// A recording without the kernel in a directory, into `trace` there.
fn record(dir: &Path, start_at: &str) -> Command {
    let mut command = Command::new(ft_tests::agent());
    command.stdin(Stdio::null()).current_dir(dir);
    command.args(["record", "-k", "none", "--start-at", start_at]);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nanoseconds since 1970, as `date` has written them to a file.
fn written(file: &Path) -> i64 {
    fs::read_to_string(file).expect("the command has run").trim().parse().expect("a number")
}

#[test]
fn nothing_begins_before_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let script = "date +%s%N > began; exec sleep 600";
    let recorded =
        record(dir.path(), "+1s").args(["-d", "50ms", "--", "sh", "-c", script]).output().unwrap();
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let trace = Trace::open(&dir.path().join("trace")).unwrap();
    let meta = trace.meta();
    let start_at = meta.start.start_at.clone().expect("what was asked for");
    assert_eq!(start_at.asked, "+1s");
    assert!(start_at.began_ns >= start_at.asked_ns, "{start_at:?}");
    assert_eq!(start_at.began_ns, meta.start.start_ns + meta.clock.realtime_offset_ns);
    // On a busy machine the duration can be over before the command has done anything.
    if dir.path().join("began").exists() {
        assert!(written(&dir.path().join("began")) >= start_at.asked_ns, "{start_at:?}");
    }
    let end = meta.end.as_ref().expect("it was not killed");
    assert_eq!(end.reason, "duration");
    let report =
        Command::new(ft_tests::agent()).arg("summary").arg(dir.path().join("trace")).output();
    let said = String::from_utf8_lossy(&report.unwrap().stdout).into_owned();
    assert!(said.contains(" after the time that was asked for, +1s"), "{said}");
}

/// Two agents stand for two hosts.
#[test]
fn recordings_of_one_time_have_one_window() {
    let asked = {
        let now = Command::new("date").args(["-u", "-d", "+6 seconds", "+%FT%T.5Z"]).output();
        String::from_utf8(now.unwrap().stdout).unwrap().trim().to_owned()
    };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let agents: Vec<_> = dirs
        .iter()
        .map(|dir| {
            let mut record = record(dir.path(), &asked);
            record.args(["-d", "10ms", "--", "sleep", "600"]).stderr(Stdio::piped());
            record.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for agent in agents {
        let output = agent.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let start = |dir: &tempfile::TempDir| {
        let trace = Trace::open(&dir.path().join("trace")).unwrap();
        trace.meta().start.start_at.clone().unwrap()
    };
    let starts = [start(&dirs[0]), start(&dirs[1])];
    assert_eq!(starts[0].asked_ns, starts[1].asked_ns);
    assert_eq!(starts[0].asked_ns.rem_euclid(1_000_000_000), 500_000_000);
    assert!(starts.iter().all(|start| start.began_ns >= start.asked_ns && start.asked == asked));
}

/// Signals for which the process has a handler.
fn caught(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn a_recording_that_waits_can_be_called_off() {
    let dir = tempfile::tempdir().unwrap();
    for far in ["+9s", "+1h"] {
        let mut record = record(dir.path(), far);
        record.args(["--", "touch", "ran"]).stderr(Stdio::piped()).stdout(Stdio::null());
        // SAFETY: only a system call. Who runs the tests in the background may have had the signal ignored, which the
        // agent respects.
        unsafe {
            record.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut waiting = record.spawn().unwrap();
        while caught(waiting.id()) >> (libc::SIGINT - 1) & 1 == 0 {
            assert_eq!(waiting.try_wait().unwrap(), None, "{far}");
            std::thread::yield_now();
        }
        signal::send(waiting.id(), libc::SIGINT);
        let output = waiting.wait_with_output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.ends_with("so nothing was recorded; start it again\n"), "{said}");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn what_would_fail_then_fails_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let check = |args: &[&str], expected: &str| {
        let output = record(dir.path(), "+24h").args(args).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    fs::create_dir(dir.path().join("full")).unwrap();
    fs::write(dir.path().join("full/file"), "").unwrap();
    check(&["-o", "full", "--", "true"], "choose another directory with -o");
    check(&["-p", "2147483647"], "process 2147483647 does not exist");
    assert!(!dir.path().join("trace").exists());
}

#[test]
fn times_that_are_none_are_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (time, expected) in [
        ("2020-01-01T00:00:00Z", "is past by the clock of this host; name a time to come"),
        ("noon", "write for example 2026-11-21T10:45:00Z, +10s or next=1m"),
        ("2026-11-21T10:45:00", "end it in Z for UTC, or in an offset such as +01:00"),
    ] {
        let output = record(dir.path(), time).args(["--", "touch", "ran"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
