//! Sites of a program whose agent is gone: they go off, by the program itself or by the next agent.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use ft_trace::store::Trace;
use ft_trace::tables::{LossOrigin, LossRow};

use crate::control::{run, state};
use crate::program::{PATIENCE, Program, agent, lives};
use crate::signal;

/// Events at a time: more of them than a ring holds are soon written where nobody reads.
const MANY: u64 = 5000;

/// An agent that records the program, with `live.tick` on.
fn recorded(program: &mut Program, out: &Path) -> Child {
    let pid = program.pid();
    let mut command = agent();
    command.args(["record", "-k", "none", "-e", "live.*", "-p", &pid, "-o"]);
    let mut child = command.arg(out).stdout(Stdio::null()).spawn().unwrap();
    program.tick_until_on(1, &mut child);
    child
}

#[test]
fn the_next_recording_leaves_off_what_one_has_left_on_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start();
    let pid = program.pid();
    assert!(run(&["enable", "-p", &pid, "lock.mutex_acquire"]).0);
    let kept = state(&pid, "lock.mutex_acquire").unwrap();
    assert!(kept.0 > 0 && kept.0 == kept.1, "{kept:?}");

    let mut killed = recorded(&mut program, &dir.path().join("killed"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    program.tick(5, 5);
    // This one is off until the agent is there.
    let off = "lock.mutex_release";
    let mut command = agent();
    command.args(["record", "-k", "none", "-e", "live.*", "-e", "lock.*", "-p", &pid, "-o"]);
    let mut ended = command.arg(dir.path().join("ended")).stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while state(&pid, off).unwrap().0 == 0 {
        lives(&mut ended);
        assert!(began.elapsed() < PATIENCE, "{off} is off after {PATIENCE:?}");
        std::thread::yield_now();
    }
    signal::send(ended.id(), libc::SIGTERM);
    assert!(ended.wait().unwrap().success());
    assert_eq!(state(&pid, off).unwrap().0, 0);
    program.tick(5, 0);
    assert_eq!(state(&pid, "live.tick"), Some((0, 1)));
    assert_eq!(state(&pid, "lock.mutex_acquire"), Some(kept), "its user has switched it on");
    assert!(program.end().success());
}

#[test]
fn a_program_switches_off_what_an_agent_has_left_on_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start();
    let pid = program.pid();
    let mut killed = recorded(&mut program, &dir.path().join("killed"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    program.tick_until(MANY, 0);
    assert_eq!(state(&pid, "live.tick"), Some((0, 1)));
    assert!(program.end().success());
}

#[test]
fn an_agent_that_was_stopped_goes_on_and_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("stopped");
    let mut program = Program::start();
    let pid = program.pid();
    let mut stopped = recorded(&mut program, &out);
    signal::send(stopped.id(), libc::SIGSTOP);
    program.tick_until(MANY, 0);
    signal::send(stopped.id(), libc::SIGCONT);
    program.tick_until_on(10, &mut stopped);
    signal::send(stopped.id(), libc::SIGTERM);
    assert!(stopped.wait().unwrap().success());
    assert_eq!(state(&pid, "live.tick"), Some((0, 1)));
    let trace = Trace::open(&out).unwrap();
    let losses = trace.rows::<LossRow>().map(Result::unwrap);
    let (unknown, counted): (Vec<_>, Vec<_>) =
        losses.partition(|loss| loss.origin == LossOrigin::Site);
    let [loss] = &unknown[..] else { panic!("{unknown:?}") };
    assert!(loss.dur > 0 && &*loss.what == "all that were on for the recording", "{loss:?}");
    assert!(counted.iter().any(|loss| loss.count > 0), "{counted:?}");
    assert!(program.end().success());
}
