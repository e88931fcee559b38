//! Whoever brings or removes traces is killed, or stopped, between any of its steps.

use std::process::{Child, Stdio};

use crate::files::files;
use crate::{Stage, said};

/// Kills the agent at each call with which it changes the catalogue, one after the other; what is there is always whole
/// traces, and the next one goes on.
#[test]
fn whoever_is_killed_leaves_a_whole_trace_or_none() {
    const CALLS: &str =
        "mkdir,mkdirat,openat,write,copy_file_range,fsync,linkat,renameat,renameat2,unlinkat";
    let stage = Stage::new();
    stage.says(&["record", "-k", "none", "-o", "trace", "--", "true"]);
    let trace = files(&stage.path("trace"));
    let killing = |to: &str, calls: &str, nth: usize| {
        let mut strace = stage.command("strace");
        strace.args(["-f", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
        strace.args(["-e", &format!("inject={calls}:signal=KILL:when={nth}")]);
        strace.args([ft_tests::agent(), "convert", "trace", "--to", to]);
        strace.output().ok()
    };
    if killing("elsewhere", "renameat", 1).is_none_or(|output| output.status.success()) {
        return said::skipped("strace is not installed, or cannot trace here (Debian: strace)");
    }
    said::ran();
    let mut killed = 0;
    // All calls of one that is not killed; so many steps that a run takes some seconds.
    for nth in (1..).step_by(7) {
        let output = killing("fleet", CALLS, nth).expect("as before");
        let rows = match stage.path("fleet/traces").is_dir() {
            true => stage.traces(&[]),
            false => Vec::new(),
        };
        assert!(rows.len() <= 1, "{rows:?}");
        for row in &rows {
            assert_eq!(stage.stored(row), trace, "at call {nth}");
        }
        if output.status.success() {
            assert_eq!(rows.len(), 1, "it has come to its end");
            break;
        }
        killed += 1;
        if rows.len() == 1 {
            // It does nothing more where the trace is there.
            stage.says(&["catalogue", "fleet", "--older-than", "1us", "--delete"]);
        }
    }
    assert!(killed > 5, "{killed}");
    stage.says(&["convert", "trace", "--to", "fleet"]);
    let rows = stage.traces(&[]);
    assert_eq!(stage.stored(&rows[0]), trace);
}

/// A call, and the how many-th of its kind.
type Step = (&'static str, usize);

/// A process that was stopped after one of its calls.
struct Stopped {
    strace: Child,
    pid: Option<i32>,
}

impl Stopped {
    /// Starts the agent, and stops it when it has made this call so often; it may end before.
    fn after(stage: &Stage, args: &[&str], (call, nth): Step) -> Stopped {
        let log = stage.path("strace.log");
        let _ = std::fs::remove_file(&log);
        let mut strace = stage.command("strace");
        strace.args(["-f", "-o", log.to_str().unwrap(), "-e", &format!("trace={call}")]);
        strace.args(["-e", &format!("inject={call}:signal=STOP:when={nth}")]);
        strace.arg(ft_tests::agent()).args(args);
        let mut strace = strace.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        loop {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let stopped = said.lines().find(|line| line.contains("stopped by SIGSTOP"));
            if let Some(pid) = stopped.and_then(|line| line.split(' ').next()?.parse().ok()) {
                return Stopped { strace, pid: Some(pid) };
            }
            if strace.try_wait().unwrap().is_some() {
                return Stopped { strace, pid: None };
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Kills it, or lets it go on; whether there was something to stop.
    fn end(mut self, signal: i32) -> bool {
        while let (Some(pid), None) = (self.pid, self.strace.try_wait().unwrap()) {
            // SAFETY: a plain system call; the process is traced by a child of ours, which has not ended, and so has its number.
            unsafe { libc::kill(pid, signal) };
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.pid.is_some()
    }
}

/// Removes, or sweeps, and brings at once: one is stopped after each of its first steps, the other goes on, to its end or until it is
/// killed, and then the first one goes on or is killed. Whatever is there then is a whole trace, and it can be brought again.
#[test]
fn a_row_has_all_of_its_files_whoever_is_killed_while_another_removes_them() {
    // The row's other name, the row, what the trace says of itself, and a file of it; and what makes each durable.
    const REMOVES: [Step; 6] = [
        ("unlinkat", 1),
        ("fsync", 1),
        ("unlinkat", 2),
        ("fsync", 2),
        ("unlinkat", 3),
        ("unlinkat", 4),
    ];
    let stage = Stage::new();
    stage.says(&["record", "-k", "none", "-o", "trace", "--", "true"]);
    let trace = files(&stage.path("trace"));
    let bring = ["convert", "trace", "--to", "fleet"];
    let of_age = |age| ["catalogue", "fleet", "--older-than", age, "--delete"];
    if stage.command("strace").args(["-o", "/dev/null", "true"]).output().is_err() {
        return said::skipped("strace is not installed, or cannot trace here (Debian: strace)");
    }
    said::ran();
    let whole = || {
        let rows = stage.traces(&[]);
        for row in &rows {
            assert_eq!(stage.stored(row), trace);
        }
        rows.len()
    };
    // It is there, or it has long had no row.
    let begin = |has_row: bool| {
        stage.says(&bring);
        assert_eq!(whole(), 1);
        if !has_row {
            std::fs::remove_dir_all(stage.path("fleet/traces")).unwrap();
            std::fs::create_dir(stage.path("fleet/traces")).unwrap();
            let day =
                stage.command("find").args(["fleet", "-exec", "touch", "-d@0", "{}", "+"]).status();
            assert!(day.unwrap().success());
        }
    };
    let killed = |(call, nth): Step| {
        let mut strace = stage.command("strace");
        strace.args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}")]);
        strace.args(["-e", &format!("inject={call}:signal=KILL:when={nth}")]);
        strace.arg(ft_tests::agent()).args(bring).output().unwrap();
    };
    let mut stopped = 0;
    for (has_row, remove) in [(true, of_age("1us")), (false, of_age("8000h"))] {
        for (nth, step) in REMOVES.into_iter().enumerate() {
            // Killed before its files are there, before the row is, after that; or to its end.
            let ends = [("renameat", 1), ("linkat", 1), ("fsync", 1), ("fsync", usize::MAX)];
            for (other, end) in ends.into_iter().enumerate() {
                begin(has_row);
                let removes = Stopped::after(&stage, &remove, step);
                killed(end);
                let signal = if (nth + other) % 2 == 0 { libc::SIGKILL } else { libc::SIGCONT };
                stopped += usize::from(removes.end(signal));
                whole();
                stage.says(&bring);
                assert_eq!(whole(), 1, "{step:?}, {end:?}");
            }
            // To the end of both: what was brought anew is not what was to be removed.
            begin(has_row);
            let removes = Stopped::after(&stage, &remove, step);
            [&remove[..], &bring].into_iter().for_each(|args| drop(stage.says(args)));
            stopped += usize::from(removes.end(libc::SIGCONT));
            assert_eq!(whole(), 1, "{step:?}, brought anew");
        }
    }
    // The other way round: it has found the files, or published the row, and then they go.
    for step in [("linkat", 1), ("fsync", 1)] {
        for signal in [libc::SIGKILL, libc::SIGCONT] {
            begin(false);
            let brings = Stopped::after(&stage, &bring, step);
            for age in ["8000h", "1us"] {
                let output = stage.agent(&of_age(age));
                assert!(output.status.success(), "{output:?}");
            }
            stopped += usize::from(brings.end(signal));
            whole();
            stage.says(&bring);
            assert_eq!(whole(), 1, "{step:?}");
        }
    }
    assert!(stopped > 30, "{stopped}");
}
