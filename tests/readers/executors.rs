//! Engines that have many traces analysed, one a task, find what one process finds (`tests/spark/executors.py`).

use std::path::Path;
use std::process::Command;

use crate::gate;
use crate::recordings::{self, agent};

/// What the engine has done, a line for each time.
fn analysed_by(engine: &str, python: &str) -> Option<Vec<String>> {
    let Some(python) = std::env::var_os(python) else {
        gate::skipped(&format!("{python} is not set; run `cargo xtask test readers`"));
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    recordings::bring(folder.path());
    assert!(
        Command::new("cp")
            .args(["-r", "fleet", "serial"])
            .current_dir(folder.path())
            .status()
            .unwrap()
            .success()
    );
    let alone = agent(&["analyze", "serial"], folder.path());
    assert!(String::from_utf8_lossy(&alone.stderr).contains("1 of 16 traces failed"), "{alone:?}");
    let output = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("spark/executors.py"))
        .args([engine, ft_tests::agent()])
        .args(["fleet", "serial"].map(|name| folder.path().join(name)))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("meta.json"), "the damaged one is told with its reason: {said}");
    gate::ran();
    let of_engine = said.lines().filter_map(|line| line.strip_prefix(engine));
    Some(of_engine.map(|line| line.trim().to_owned()).collect())
}

const FIRST: [&str; 3] = [
    "first {'analysed': 15, 'failed': 1}",
    "differences []",
    "again {'failed': 1, 'was analysed already': 15}",
];

#[test]
fn two_executors_of_spark_find_what_one_process_finds_and_one_may_be_killed() {
    let Some(lines) = analysed_by("spark", "FT_SPARK") else { return };
    let before = ["before taken again done 15 failed 1", "differences []"];
    let within =
        ["within taken again done 15 failed 1", "left some of its results", "differences []"];
    let (done, rest) = lines.split_at(FIRST.len() + before.len());
    assert_eq!(done, [&FIRST[..], &before].concat());
    match rest.is_empty() {
        true => gate::skipped(
            "an executor killed within a trace: strace is not installed, or cannot trace here",
        ),
        false => assert_eq!(rest, within),
    }
}

#[test]
fn sail_finds_what_one_process_finds() {
    let Some(lines) = analysed_by("sail", "FT_SAIL") else { return };
    assert_eq!(lines, FIRST);
}
