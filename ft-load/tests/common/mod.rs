//! What the tests against the running kernel share: rights, one at a time, and the report of what could not run.

#![allow(dead_code, reason = "each test binary uses its own part")]

#[path = "../../../tests/common/said.rs"]
mod said;

pub(crate) use said::{ran, skipped};

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ft_load::hourglass::{Outcome, play, scenario};

/// One load at a time in each test binary: real-time threads of two tests would be in each other's way.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs the scenario of a command line in this process.
pub(crate) fn played(line: &str) -> Outcome {
    let scenario = scenario(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    play(&scenario).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Runs the command.
pub(crate) fn command(line: &str) -> Output {
    ended(Command::new(env!("CARGO_BIN_EXE_ft-load")).args(words(line)))
}

/// Longer than anything that is started takes on any machine: what still runs then hangs.
const HANGS: Duration = Duration::from_secs(120);

/// What a command says, which is little. One that does not end is killed, and fails the test.
pub(crate) fn ended(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be started");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > HANGS {
            child.kill().expect("a child");
            let said = child.wait_with_output().expect("a child");
            panic!("{command:?} does not end: {said:?}");
        }
        sleep(Duration::from_millis(2));
    }
    child.wait_with_output().expect("a child")
}

/// The sentence of a command that refused, which is all that it said.
pub(crate) fn refusal(output: &Output, status: i32) -> String {
    let (text, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{text}{error}");
    assert_eq!(text, "", "nothing is half done");
    let line = error.strip_prefix("ft-load: ").and_then(|line| line.strip_suffix('\n'));
    let line = line.unwrap_or_else(|| panic!("{error}"));
    assert!(!line.contains('\n'), "{error}");
    line.to_owned()
}

/// Whether this user may have real-time priorities; where not, reports that the calling test is skipped.
pub(crate) fn real_time_or_skip() -> bool {
    // SAFETY: takes no pointer.
    let is_root = unsafe { libc::geteuid() } == 0;
    let granted =
        is_root && play(&scenario(&words("-n 1 -d 1ms -p RTLOW")).expect("a scenario")).is_ok();
    match granted {
        true => ran(),
        false => skipped("real-time priorities are for root"),
    }
    granted
}
