//! sqlite, as a crate brings it, compiled with sleds: all of its functions are switched while it runs, and its own hooks count them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::control::{run, state};
use crate::gate;
use crate::program::{Program, agent};
use crate::sleds::{calls, start};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/sqlite");

/// Its folder, downloaded if it is not there; `None` where there is no compiler.
fn source() -> Option<PathBuf> {
    if Command::new("clang").arg("--version").output().is_err() {
        gate::skipped("clang is not installed; `cargo xtask setup` gets it");
        return None;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    let output = cargo.arg(Path::new(PROGRAM).join("Cargo.toml")).output().expect("cargo starts");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "sqlite's source cannot be downloaded: {why}");
    let packages: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = packages["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "libsqlite3-sys");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.expect("the package is one of them"));
    Some(manifest.with_file_name("sqlite3"))
}

#[test]
fn each_function_of_sqlite_has_as_many_calls_as_its_own_hooks_counted() {
    let Some(source) = source() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("counted");
    let mut clang = Command::new("clang");
    clang.args(["-O0", "-finstrument-functions", "-rdynamic", "-fxray-instrument"]);
    clang.args(["-fxray-instruction-threshold=1", "-fnoxray-link-deps"]);
    clang.arg("-I").arg(source).arg("-o").arg(&program).arg(Path::new(PROGRAM).join("counted.c"));
    assert!(clang.args(["-lpthread", "-ldl", "-lm"]).status().expect("clang starts").success());
    let mut program = start(&program);
    let pid = program.pid();
    program.ask("run 30", "counted");
    let out = dir.path().join("trace");
    let mut record = agent();
    // A thread waits for room rather than lose an event: each call counts.
    record.args(["record", "-k", "none", "--on-full", "wait=1s", "-e", "fn.sqlite3*", "-p", &pid]);
    let mut record = record.arg("-o").arg(&out).stdout(Stdio::null()).spawn().expect("it starts");
    while state(&pid, "fn.sqlite3VdbeExec").is_none_or(|(on, _)| on == 0) {
        assert!(record.try_wait().expect("its state").is_none(), "it is over");
        std::thread::sleep(Duration::from_millis(10));
    }
    // When this is over, all are on.
    let (success, told, errors) = run(&["enable", "-p", &pid, "fn.sqlite3*"]);
    assert!(success, "{told}{errors}");
    program.ask("run 300", "counted");
    let (success, told, errors) = run(&["disable", "-p", &pid, "fn.sqlite3*"]);
    assert!(success, "{told}{errors}");
    let counted = told_by(&mut program);
    program.ask("run 30", "counted");
    crate::signal::send(record.id(), libc::SIGTERM);
    assert!(record.wait().expect("it ends").success() && program.end().success());
    let recorded = calls(&out);
    assert!(counted.len() > 200 && counted.contains_key("sqlite3VdbeExec"), "{counted:?}");
    let of_recorded = |name: &str| recorded.get(name).map_or(0, |(calls, _)| *calls);
    let wrong: Vec<_> = counted.iter().filter(|(name, n)| of_recorded(name) != **n).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    gate::measured(&format!(
        "{} calls of {} functions of sqlite, each as often as it counted them itself",
        counted.values().sum::<i64>(),
        counted.len()
    ));
}

/// Calls of the functions of sqlite that have a name for the linker, as the program counted them.
fn told_by(program: &mut Program) -> BTreeMap<String, i64> {
    let said = program.listen("tell", "told");
    let calls = said.iter().filter_map(|line| line.trim_end().split_once(' '));
    let calls = calls.map(|(name, calls)| (name.to_owned(), calls.parse().expect("a number")));
    calls.filter(|(name, _): &(String, i64)| name.starts_with("sqlite3")).collect()
}
