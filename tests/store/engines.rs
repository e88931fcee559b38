//! Engines that have the traces of a store analysed, one a task, store what one process finds (`tests/spark/store.py`), also
//! where the store has a bad day.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::files::Files;
use crate::proxy::{Fate, Proxy};
use crate::said;
use crate::server::Server;
use crate::stage::{Stage, URL, objects};

const RECORDINGS: [&str; 4] = ["killed", "preload", "scenarios", "system"];

/// What the engine says of the traces the first time, and the second; one of them is damaged.
const OUTCOMES: [&str; 2] = [
    "analysed,analysed,analysed,failed",
    "failed,was analysed already,was analysed already,was analysed already",
];

/// Without the script for DuckDB, which is of the place where it was made.
fn results(mut of: Files) -> Files {
    of.retain(|name, _| !name.ends_with("/views.sql"));
    of
}

fn stores_what_one_process_finds(engine: &str, python: &str) {
    let Some(python) = std::env::var_os(python) else {
        return said::skipped(&format!("{python} is not set; run `cargo xtask test fleet`"));
    };
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    RECORDINGS.iter().for_each(|name| drop(stage.stored_trace(name, name)));
    let bring = [&["convert"], &RECORDINGS[..], &["--to"]].concat();
    stage.says(&[&bring[..], &[URL]].concat());
    let serial = format!("{URL}/serial");
    stage.says(&[&bring[..], &[&serial]].concat());
    for below in ["", "serial/"] {
        let damaged = &stage.traces(&format!("{URL}/{below}"))[0];
        let lost = format!("/fleet/of/traces/{below}{damaged}/meta.json");
        assert!(server.asks("DELETE", &lost).starts_with("HTTP/1.1 204"));
    }
    assert_eq!(stage.run(&["analyze", &serial]).status.code(), Some(1), "one is damaged");

    let faults = Arc::new(AtomicUsize::new(0));
    let met = faults.clone();
    let proxy = Proxy::start(server.address, move |nth, _| {
        let fates = [Fate::CutBefore, Fate::CutWithin, Fate::Fail, Fate::FailAfter, Fate::Slow];
        match nth % 5 {
            0 => fates[met.fetch_add(1, SeqCst) % fates.len()],
            _ => Fate::Pass,
        }
    });
    stage.endpoint = proxy.address;
    let mut command = stage.command(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("spark/store.py"));
    let output = command.args([engine, ft_tests::agent(), URL]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(engine)).collect();
    assert_eq!(said, OUTCOMES.map(|outcomes| format!(",{outcomes}")), "{text}");
    assert!(text.contains("meta.json"), "the damaged one is told with its reason: {text}");
    assert!(faults.load(SeqCst) > 5, "the store had a bad day");

    let expected = results(objects(&server, "serial"));
    let mut found = results(objects(&server, ""));
    found.retain(|name, _| !name.starts_with("serial/"));
    assert!(expected.keys().any(|name| name.ends_with("/critical_sections/part-00000.parquet")));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    let differ = expected.iter().filter(|&(name, bytes)| found[name] != *bytes);
    assert_eq!(differ.map(|(name, _)| name).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn executors_of_spark_store_what_one_process_finds() {
    stores_what_one_process_finds("spark", "FT_SPARK");
}

#[test]
fn sail_stores_what_one_process_finds() {
    stores_what_one_process_finds("sail", "FT_SAIL");
}
