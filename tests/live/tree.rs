//! All that a recorded command has started ends with its recording.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::agent;

/// What a command tells of the processes that it starts: their numbers, a line each.
fn numbers(file: &Path, wanted: usize) -> Vec<i32> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let found: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if found.len() >= wanted && text.ends_with('\n') {
            return found;
        }
        assert!(Instant::now() < deadline, "{text}");
        sleep(Duration::from_millis(5));
    }
}

/// It runs, and is no zombie.
fn lives(pid: i32) -> bool {
    !matches!(state(pid), 'Z' | 'X')
}

/// The state of a process (proc_pid_stat(5)); `X` of one that is gone.
fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('X')
}

/// Records a script with these options; `$P` is the file for its numbers.
fn recorded(dir: &Path, options: &[&str], script: &str) -> Command {
    let mut command = agent();
    command.args(["record", "-k", "none", "-o"]).arg(dir.join("trace")).args(options);
    command.args(["--", "sh", "-c", script]).env("P", dir.join("numbers"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same to its end, which comes though who lives on would hold the pipes.
fn run(options: &[&str], script: &str, wanted: usize) -> (Output, Vec<i32>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let output = recorded(dir.path(), options, script).output().unwrap();
    let numbers = numbers(&dir.path().join("numbers"), wanted);
    (output, numbers, dir)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A child, one that has lost its parent and begun a session of its own, and one that ignores SIGTERM.
const ALL: &str = r#"
    sh -c 'echo $$ >> $P; exec sleep 1000' &
    setsid sh -c 'sh -c "echo \$\$ >> $P; exec sleep 1000" & sleep 0.2' &
    sh -c 'trap "" TERM; echo $$ >> $P; while :; do sleep 0.1; done' &
    wait
"#;

#[test]
fn all_that_a_command_has_started_ends_with_the_time() {
    let (output, started, _dir) = run(&["-d", "5s"], ALL, 3);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(started.iter().filter(|&&pid| lives(pid)).count(), 0, "{}", said(&output));
    // Who ignored SIGTERM is told.
    let text = said(&output);
    assert!(
        text.contains("of SIGTERM there still is process") && !text.contains("after SIGKILL"),
        "{text}"
    );
}

#[test]
fn all_that_a_command_has_started_ends_with_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let child = recorded(dir.path(), &[], ALL).spawn().unwrap();
    let started = numbers(&dir.path().join("numbers"), 3);
    crate::signal::send(child.id(), libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(started.iter().filter(|&&pid| lives(pid)).count(), 0, "{}", said(&output));
}

#[test]
fn what_a_command_leaves_at_its_own_end_is_named_and_ended() {
    let script = "setsid sleep 1000 & echo $! >> $P
                  while [ $(cat /proc/$!/comm) != sleep ]; do sleep 0.05; done";
    let (output, started, _dir) = run(&[], script, 1);
    assert!(output.status.success(), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains(&format!("process {} 'sleep' not", started[0])), "{text}");
    assert!(!lives(started[0]), "{text}");
}

#[test]
fn a_command_that_ends_with_all_it_has_started_says_nothing_of_it() {
    // What is just about to end is left to itself.
    let (output, _, _dir) = run(&[], "sleep 0.01 & echo $! >> $P", 1);
    let text = said(&output);
    assert!(output.status.success() && !text.contains("the command has ended"), "{text}");
}

#[test]
fn who_asks_for_it_keeps_what_the_command_has_started() {
    let script = "exec > /dev/null 2>&1; setsid sleep 1000 & echo $! >> $P; echo $$ >> $P; wait";
    let (output, started, _dir) = run(&["--no-kill", "-d", "1s"], script, 2);
    let alive = started.iter().filter(|&&pid| lives(pid)).count();
    started.iter().for_each(|&pid| crate::signal::send(pid as u32, libc::SIGKILL));
    assert_eq!(alive, 2, "{}", said(&output));
}

#[test]
fn what_ends_without_a_parent_leaves_no_zombie() {
    let dir = tempfile::tempdir().unwrap();
    // Each has lost its parent when it ends.
    let script = r#"for i in 1 2 3 4 5; do (sleep 0.2 & echo $! >> $P); done; sleep 1000"#;
    let child = recorded(dir.path(), &[], script).spawn().unwrap();
    let started = numbers(&dir.path().join("numbers"), 5);
    let deadline = Instant::now() + Duration::from_secs(60);
    while started.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
        assert!(Instant::now() < deadline, "they are zombies");
        sleep(Duration::from_millis(20));
    }
    crate::signal::send(child.id(), libc::SIGTERM);
    child.wait_with_output().unwrap();
}

/// `top` and services start a command that is stopped, or whose first thread has ended.
#[test]
fn who_is_stopped_or_has_lost_its_first_thread_ends_too() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"python3 -c '
import ctypes, os, threading, time
threading.Thread(target=lambda: time.sleep(1000)).start()
print(os.getpid(), file=open(os.environ["P"], "a"), flush=True)
ctypes.CDLL(None).pthread_exit(None)' &
        sh -c 'trap "echo ended > $P.end; exit" TERM; echo $$ >> $P; while :; do sleep 0.1; done' &
        child=$!; sleep 0.3; kill -STOP $child; wait"#;
    let child = recorded(dir.path(), &[], script).spawn().unwrap();
    let started = numbers(&dir.path().join("numbers"), 2);
    let states = || started.iter().map(|pid| state(*pid)).collect::<Vec<_>>();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !(states().contains(&'T') && states().contains(&'Z')) {
        assert!(Instant::now() < deadline, "{:?}", states());
        sleep(Duration::from_millis(5));
    }
    crate::signal::send(child.id(), libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    let left = states().into_iter().filter(|state| *state != 'X').count();
    assert_eq!(left, 0, "{}", said(&output));
    // It was woken to take SIGTERM.
    assert!(dir.path().join("numbers.end").exists(), "{}", said(&output));
}
