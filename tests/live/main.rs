//! The agent with a real traced process; but for one test of `top`, without the kernel stream.

mod children;
mod control;
mod flight;
mod lease;
use ft_tests::gate;
#[cfg(feature = "mcp")]
mod mcp;
mod program;
mod recording;
use ft_tests::signal;
mod sleds;
mod sqlite;
mod top;
mod tree;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use ft_trace::spool::Spool;
use ft_trace::store::Trace;
use ft_trace::tables::UserEvent;

use program::{Program, agent};

/// First arguments of all events of the trace.
fn ticks(trace: &Path) -> Vec<i64> {
    events(trace, "live.tick")
}

/// First arguments of all events of this name.
fn events(trace: &Path, name: &str) -> Vec<i64> {
    let trace = Trace::open(trace).unwrap();
    let rows = trace.rows::<UserEvent>().map(Result::unwrap);
    rows.filter(|r| &*r.event == name).map(|r| r.arg[0].unwrap()).collect()
}

#[test]
fn every_event_of_a_command_is_in_the_trace() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &[]);
    program.tick(5000, 5000);
    assert!(program.end().success());
    assert_eq!(ticks(&out), (0..5000).collect::<Vec<i64>>());
}

#[test]
fn a_killed_program_loses_nothing_that_it_had_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &[]);
    program.tick(3000, 3000);
    program.say("abort");
    // The agent reports the death of its command.
    assert_eq!(program.end().code(), Some(128 + 6));
    assert_eq!(ticks(&out).len(), 3000);
}

#[test]
fn a_killed_agent_leaves_its_program_unharmed_and_its_spool_complete() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &[]);
    program.tick(1000, 1000);
    // Wait until the events are handed over: then nothing can take them back.
    let segment = Spool::of(&out).segment(0);
    while fs::metadata(&segment).unwrap().len() < 1000 * 32 {
        std::thread::yield_now();
    }
    program.child.kill().unwrap();
    // Sites stay on; the ring takes these, nobody reads them.
    program.tick(100, 100);
    program.end();
    let convert = agent().arg("convert").arg(&out).output();
    assert!(convert.unwrap().status.success());
    assert_eq!(ticks(&out)[..1000], (0..1000).collect::<Vec<i64>>());
}

#[test]
fn a_running_program_is_enabled_recorded_and_disabled_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::start();
    program.tick(10, 0);
    let pid = program.pid();
    let mut agent = agent()
        .args(["record", "-k", "none", "-e", "live.*", "-p", &pid, "-o"])
        .arg(&out)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // On as soon as the agent has got to it.
    program.tick_until_on(7, &mut agent);
    program.tick(500, 500);
    signal::send(agent.id(), libc::SIGTERM);
    assert!(agent.wait().unwrap().success());
    program.tick(10, 0);
    assert!(program.end().success());
    let recorded = ticks(&out);
    assert!(recorded.len() >= 507, "{}", recorded.len());
    assert_eq!(recorded[recorded.len() - 500..], (0..500).collect::<Vec<i64>>());
}

#[test]
fn a_program_that_gave_up_on_a_slow_agent_is_recorded_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    // A folder that is closed to others holds no socket.
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let mut agent = agent();
    agent.args(["record", "-k", "none", "-o"]).arg(&out).args(["--", "sleep", "100"]);
    let mut agent = agent.stdout(Stdio::null()).spawn().unwrap();
    let socket = out.join("agent.sock");
    while !socket.exists() || !Spool::of(&out).segment(0).exists() {
        std::thread::yield_now();
    }
    signal::send(agent.id(), libc::SIGSTOP);
    // Its patience is over when it is ready.
    let mut program = Program::start_at(&socket);
    program.tick(1, 0);
    signal::send(agent.id(), libc::SIGCONT);
    program.tick_until_on(2, &mut agent);
    signal::send(agent.id(), libc::SIGTERM);
    assert!(agent.wait().unwrap().success());
    assert!(ticks(&out).ends_with(&[0, 1]));
    // As it was before.
    program.tick(1, 0);
    assert!(program.end().success());
}
