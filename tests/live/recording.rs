//! The control socket of a recording: status, snapshot, stop, enable; and who may ask.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use ft_agent::flight::complete;
use ft_trace::store::Trace;
use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::Value;

use crate::control::run;
use crate::program::{Program, agent};
use crate::ticks;

/// What the recording into this directory answers to a line.
fn ask(out: &Path, line: impl AsRef<[u8]>) -> Value {
    let mut socket = UnixStream::connect(out.join("control.sock")).unwrap();
    socket.write_all(line.as_ref()).unwrap();
    answer(socket)
}

fn answer(socket: UnixStream) -> Value {
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// Waits until the recording knows of so many events.
fn status_with(out: &str, events: u64) -> Value {
    loop {
        let (success, text, error) = run(&["status", out, "--json"]);
        assert!(success, "{error}");
        let status: Value = serde_json::from_str(&text).unwrap();
        if status["events"].as_u64().unwrap() >= events {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_recording_says_how_far_it_is_and_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let path = out.to_str().unwrap();
    let mut program = Program::recorded(&out, &[]);
    program.tick(1000, 1000);
    let status = status_with(path, 1000);
    assert_eq!(status["pid"].as_u64(), Some(program.child.id().into()));
    assert_eq!((&status["processes"], &status["threads"]), (&1.into(), &1.into()));
    assert_eq!((&status["flight_recorder"], &status["lost"]), (&false.into(), &0.into()));
    assert!(status["seconds"].as_f64() > Some(0.0) && status["bytes"].as_u64() > Some(32_000));
    let (_, words, _) = run(&["status", path]);
    assert!(words.contains(" 1 thread in 1 process\n"), "{words}");
    // By its process, too.
    let pid = program.child.id().to_string();
    assert!(run(&["status", "-p", &pid]).1.starts_with("recording of process "));
    // It takes no snapshots, and says so.
    let (success, _, error) = run(&["snapshot", path]);
    assert!(!success && error.contains("takes no snapshots"), "{error}");

    assert_eq!(run(&["stop", path]), (true, "the recording ends\n".into(), String::new()));
    // The command gets SIGTERM; the recording was ended by somebody, which is no failure.
    assert!(program.end().success());
    assert_eq!(ticks(&out).len(), 1000);
    assert_eq!(Trace::open(&out).unwrap().meta().end.as_ref().unwrap().reason, "interrupted");
    assert!(!out.join("control.sock").exists());
    let (success, _, error) = run(&["status", path]);
    assert!(!success && error.contains("nothing is recorded into"), "{error}");
}

#[test]
fn sites_are_enabled_in_a_recording_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let path = out.to_str().unwrap();
    let mut program = Program::recorded(&out, &["-e", "none.*"]);
    program.tick(100, 0);
    let (success, words, error) = run(&["enable", "-r", path, "live.*"]);
    assert!(success && words == "enabled in 1 process, and in those that come\n", "{words}{error}");
    // From outside, a moment later.
    program.tick_until(100, 100);
    // One that comes is told at its registration.
    program.ask("spawn 2", "spawned");
    program.tick(50, 50);
    assert!(program.end().success());
    let ticks = ticks(&out);
    let hundred = (0..100).collect::<Vec<i64>>();
    let expected = [&*hundred, &[0], &[0, 1], &hundred[..50]].concat();
    assert!(ticks.ends_with(&expected), "{ticks:?}");
}

#[test]
fn all_who_ask_for_a_snapshot_get_one_and_those_who_ask_at_the_end_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &["--flight-recorder", "1h"]);
    program.tick(10, 10);
    let asked: Vec<_> = (0..4)
        .map(|_| agent().arg("snapshot").arg(&out).stdout(Stdio::piped()).spawn().unwrap())
        .collect();
    for asked in asked {
        let answer = asked.wait_with_output().unwrap();
        assert!(answer.status.success());
        let text = String::from_utf8(answer.stdout).unwrap();
        let trace = text.split(' ').next().unwrap();
        assert_eq!(ticks(Path::new(trace)), (0..10).collect::<Vec<i64>>(), "{text}");
    }
    assert!(program.end().success());
    let all = complete(&out).unwrap();
    assert!((2..=5).contains(&all.len()), "{all:?}");
}

#[test]
fn what_is_no_request_is_answered_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let program = Program::recorded(&out, &[]);
    let rubbish = ["{}", "GET / HTTP/1.1", "\0\u{1f980}", r#"{"request":"enable"}"#, ""];
    let long = format!("{{\"request\":\"{}\"}}", "x".repeat(1 << 20));
    for line in rubbish {
        let answer = ask(&out, format!("{line}\n"));
        let error = answer["error"].as_str().expect("a sentence");
        assert!(error.starts_with("this is no request"), "{line}: {error}");
    }
    for half in [&b"\xff\xfe\n"[..], b"{\"request\":\"sta"] {
        let answer = ask(&out, half);
        let error = answer["error"].as_str().expect("a sentence");
        assert!(error.starts_with("this is no request"), "{half:?}: {error}");
    }
    // A line without end is not read to its end.
    let mut socket = UnixStream::connect(out.join("control.sock")).unwrap();
    let _ = socket.write_all(long.as_bytes());
    let many = "x".repeat(60_000);
    let answer = ask(&out, format!("{{\"request\":\"enable\",\"globs\":[\"{many}\"]}}\n"));
    assert!(answer["error"].as_str().unwrap().contains("globs"), "{answer}");
    assert!(ask(&out, "{\"request\":\"status\"}\n")["status"]["pid"].is_u64());
    assert!(program.end().success());
}

/// For root the directory is no obstacle, so that of the user who asks is what decides.
#[test]
fn nobody_else_may_ask() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let program = Program::recorded(&out, &[]);
    let socket = out.join("control.sock");
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be somebody else");
    } else {
        // Even if the way there were open.
        let open = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        open(dir.path(), 0o755);
        open(&out, 0o755);
        open(&socket, 0o666);
        let asked = std::thread::spawn(move || {
            const NOBODY: libc::c_long = 65534;
            // SAFETY: takes numbers; by the system call itself it is this thread alone that changes its user.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            assert_eq!(changed, 0);
            let mut socket = UnixStream::connect(&socket).unwrap();
            // It may be closed already.
            let _ = socket.write_all(b"{\"request\":\"stop\"}\n");
            let mut answer = String::new();
            let _ = BufReader::new(socket).read_line(&mut answer);
            answer
        });
        assert_eq!(asked.join().unwrap(), "");
    }
    assert!(ask(&out, "{\"request\":\"status\"}\n")["status"]["pid"].is_u64(), "it goes on");
    assert!(program.end().success());
}

#[test]
fn who_is_too_late_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let program = Program::recorded(&out, &[]);
    let connect = || UnixStream::connect(out.join("control.sock")).unwrap();
    let silent: Vec<_> = std::iter::repeat_with(connect).take(3).collect();
    assert_eq!(ask(&out, "{\"request\":\"stop\"}\n"), "stopping");
    for socket in silent {
        assert!(answer(socket)["error"].is_string());
    }
    assert!(program.end().success());
}

/// Its command goes on, and nobody else waits for an answer.
#[test]
fn a_recording_that_has_failed_says_why_and_takes_nobody_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let (out, said) = (dir.path().join("trace"), dir.path().join("said"));
    let path = out.to_str().unwrap();
    // A folder that is closed to others holds no socket.
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let mut agent = agent();
    agent.stderr(File::create(&said).unwrap());
    let mut program = Program::recorded_by(agent, &out, &[]);
    assert!(out.join("agent.sock").exists());
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
    let pid = program.child.id() as libc::pid_t;
    // SAFETY: `limit` is valid, and the old one is not asked for.
    let set = unsafe { libc::prlimit(pid, libc::RLIMIT_FSIZE, &limit, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    program.say("tick 100000");
    program.ask("hold 0", "held");
    let failed = loop {
        if let Value::String(reason) = &status_with(path, 0)["failed"] {
            break reason.clone();
        }
    };
    assert!(failed.contains("File too large"), "{failed}");
    assert!(!out.join("agent.sock").exists());
    while !fs::read_to_string(&said).unwrap().contains(&failed) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(run(&["status", path]).1.contains("nothing more is recorded: "));
    let (success, _, error) = run(&["enable", "-r", path, "live.*"]);
    assert!(!success && error.contains("the recording has failed: "), "{error}");
    program.ask("hold 0", "held");
    assert!(run(&["stop", path]).0);
    assert_eq!(program.end().code(), Some(1));
}

/// As a terminal that was stopped.
#[test]
fn whoever_does_not_read_what_it_says_holds_it_up_no_longer_than_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let path = out.to_str().unwrap();
    let (mut unread, full) = std::io::pipe().unwrap();
    fcntl_setfl(&full, OFlags::NONBLOCK).unwrap();
    [4096, 1].iter().for_each(|&bytes| while (&full).write(&vec![b'x'; bytes]).is_ok() {});
    fcntl_setfl(&full, OFlags::empty()).unwrap();
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut command = agent();
    command.args(["record", "-k", "none", "-p", &other.id().to_string(), "-o", path]);
    let mut agent = command.stdout(Stdio::null()).stderr(full).spawn().unwrap();
    // It has the other end of the pipe.
    drop(command);
    while !out.join("control.sock").exists() {
        crate::program::lives(&mut agent);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (success, _, error) = run(&["status", path]);
    assert!(success, "{error}");
    assert!(run(&["stop", path]).0);
    let mut said = String::new();
    unread.read_to_string(&mut said).unwrap();
    assert!(said.contains("does not embed ft-user"), "{said}");
    assert!(agent.wait().unwrap().success());
    other.kill().unwrap();
    other.wait().unwrap();
}

/// What a killed agent leaves behind answers nobody.
#[test]
fn a_killed_recording_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &[]);
    program.child.kill().unwrap();
    program.end();
    assert!(out.join("control.sock").exists());
    let (success, _, error) = run(&["stop", out.to_str().unwrap()]);
    assert!(!success && error.contains("nothing is recorded into"), "{error}");
    assert!(agent().arg("convert").arg(&out).status().unwrap().success());
}
