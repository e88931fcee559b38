//! Engines that have many traces analysed, one a task, find what one process finds (`tests/spark/executors.py`).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::gate;

const RECORDINGS: [&str; 4] = ["killed", "preload", "scenarios", "system"];

fn agent(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ft-agent"));
    command.args(args).current_dir(folder).output().unwrap()
}

/// A catalogue of sixteen traces, one of them damaged: each stored recording, from four hosts.
fn sixteen(folder: &Path) {
    for recording in RECORDINGS {
        let spools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored/spools");
        let spool = folder.join(recording).join("spool");
        fs::create_dir_all(&spool).unwrap();
        for entry in fs::read_dir(spools.join(recording)).unwrap() {
            let packed = entry.unwrap().path();
            let bytes = zstd::decode_all(&fs::read(&packed).unwrap()[..]).unwrap();
            fs::write(spool.join(packed.file_stem().unwrap()), bytes).unwrap();
        }
        assert!(agent(&["convert", recording], folder).status.success());
        let meta = folder.join(recording).join("meta.json");
        let recorded = fs::read_to_string(&meta).unwrap();
        let (before, rest) = recorded.split_once("\"host\": \"").unwrap();
        let (_, after) = rest.split_once('"').unwrap();
        for host in 0..4 {
            fs::write(&meta, format!("{before}\"host\": \"h{host}\"{after}")).unwrap();
            let brought = agent(&["convert", recording, "--to", "fleet"], folder);
            assert!(brought.status.success(), "{brought:?}");
        }
    }
    let date = fs::read_dir(folder.join("fleet/host=h2")).unwrap().next().unwrap().unwrap();
    let damaged = fs::read_dir(date.path()).unwrap().next().unwrap().unwrap();
    fs::remove_file(damaged.path().join("meta.json")).unwrap();
}

/// What the engine has done, a line for each time.
fn analysed_by(engine: &str, python: &str) -> Option<Vec<String>> {
    let Some(python) = std::env::var_os(python) else {
        gate::skipped(&format!("{python} is not set; run `cargo xtask test`"));
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    sixteen(folder.path());
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
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spark/executors.py"))
        .args([engine, env!("CARGO_BIN_EXE_ft-agent")])
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
    let killed = ["killed 1 taken 2 done 15 failed 1", "differences []"];
    assert_eq!(lines, [&FIRST[..], &killed].concat());
}

#[test]
fn sail_finds_what_one_process_finds() {
    let Some(lines) = analysed_by("sail", "FT_SAIL") else { return };
    assert_eq!(lines, FIRST);
}
