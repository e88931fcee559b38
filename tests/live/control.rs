//! Sites of a running process: listed and switched from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Program, agent};
use crate::{events, ticks};

/// Runs the agent; its output and its error output.
pub(crate) fn run(args: &[&str]) -> (bool, String, String) {
    let output = agent().args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// State of the site with this name: how many of its triggers are on, and how many there are.
pub(crate) fn state(pid: &str, name: &str) -> Option<(u64, u64)> {
    let (success, out, err) = run(&["sites", "-p", pid, "--json"]);
    assert!(success, "{err}");
    let listing: Value = serde_json::from_str(&out).unwrap();
    let event = listing["events"].as_array().unwrap().iter().find(|e| e["event"] == name)?;
    Some((event["on"].as_u64().unwrap(), event["triggers"].as_u64().unwrap()))
}

/// `ft-user/examples/plugin.rs`, built.
fn plugin() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--example", "plugin"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../ft-user/Cargo.toml")])
        .arg("--target-dir")
        .arg(&target)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/examples/libplugin.so")
}

#[test]
fn sites_are_listed_and_switched_while_the_program_runs() {
    let mut program = Program::start();
    let pid = program.pid();
    assert_eq!(state(&pid, "live.tick"), Some((0, 1)));
    program.tick(5, 0);
    let (success, out, _) = run(&["enable", "-p", &pid, "live.*"]);
    assert!(success && out == "1 trigger switched on, 0 already on\n", "{out}");
    program.tick(5, 5);
    assert_eq!(state(&pid, "live.tick"), Some((1, 1)));
    let (success, out, _) = run(&["sites", "-p", &pid]);
    let line = out.lines().find(|l| l.contains("live.tick")).unwrap();
    assert!(success && line.contains(" on ") && line.contains("program.rs:"), "{out}");
    assert!(run(&["disable", "-p", &pid, "*"]).0);
    program.tick(5, 0);
    assert!(program.end().success());
}

#[test]
fn what_cannot_be_switched_is_explained() {
    let program = Program::start();
    let pid = program.pid();
    let fails = |args: &[&str], expected: &str| {
        let (success, _, err) = run(args);
        assert!(!success && err.contains(expected), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    };
    fails(&["enable", "-p", &pid, "live.*", "none.*"], "'none.*'; there are async.");
    assert_eq!(
        state(&pid, "live.tick"),
        Some((0, 1)),
        "one glob without a match: nothing is switched"
    );
    assert!(program.end().success());
    fails(&["sites", "-p", &pid], "does not exist");
    fails(&["disable", "-p", &pid, "*"], "does not exist");
    let mut other = Command::new("sleep").arg("100").spawn().unwrap();
    fails(&["sites", "-p", &other.id().to_string()], "embeds no ft-user");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn sites_of_a_library_that_is_loaded_later_are_switched_and_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let path = plugin();
    let mut program = Program::start();
    let pid = program.pid();
    assert_eq!(state(&pid, "plugin.run"), None);
    program.ask(&format!("load {}", path.display()), "loaded");
    assert_eq!(state(&pid, "plugin.run"), Some((0, 1)));
    assert!(run(&["enable", "-p", &pid, "plugin.run"]).0);
    assert_eq!(state(&pid, "plugin.run"), Some((1, 1)));

    // A recording takes both copies of the tracer.
    let mut recording = agent()
        .args(["record", "-k", "none", "-e", "live.*", "-p", &pid, "-o"])
        .arg(&out)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    program.tick_until_on(3, &mut recording);
    program.ask("plugin 100", "ran");
    crate::signal::send(recording.id(), libc::SIGTERM);
    assert!(recording.wait().unwrap().success());
    assert_eq!(events(&out, "plugin.run"), (0..100).collect::<Vec<i64>>());
    assert!(ticks(&out).ends_with(&[0, 1, 2]));
    // What was on before the recording stays on.
    assert_eq!(state(&pid, "plugin.run"), Some((1, 1)));
    assert_eq!(state(&pid, "live.tick"), Some((0, 1)));
    assert!(program.end().success());
}

#[test]
fn a_recording_finds_what_its_program_loads() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let path = plugin();
    let mut program = Program::recorded(&out, &["-e", "plugin.*"]);
    program.tick(1, 0);
    program.ask(&format!("load {}", path.display()), "loaded");
    program.ask("plugin 10", "ran");
    assert!(program.end().success());
    // The plugin's copy registered by itself, and was told what to enable.
    assert_eq!(events(&out, "plugin.run"), (0..10).collect::<Vec<i64>>());
}
