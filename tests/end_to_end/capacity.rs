//! The highest rate without loss: what is found holds by the recordings' own account, and those account for every event.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use std::{fs, thread};

use ft_trace::store::Trace;
use ft_trace::tables::{LossRow, UserEvent};
use serde_json::Value;

use crate::harness::{Stage, agent, assert_success, load, open};

fn capacity(dir: &Path) -> Command {
    let mut command = Command::new(load());
    command.args(["capacity", "--threads", "1", "-k", "none", "--ring-size", "1M", "--json"]);
    command.arg("--agent").arg(ft_tests::agent()).arg("--dir").arg(dir);
    command
}

/// What `ft-load` says when it refuses.
fn sentence(output: &Output) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn the_rate_that_is_found_has_lost_nothing_and_recordings_account_for_every_event() {
    let stage = Stage::enter();
    let dir = stage.path("runs");
    fs::create_dir(&dir).expect("a folder");
    let output = capacity(&dir).args(["--time", "20ms"]).output().expect("ft-load starts");
    assert_success(&output);
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = &rows[0]["capacity"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{rows}"));
    let trials = found["trials"].as_array().unwrap_or_else(|| panic!("{rows}"));
    // Runs in which the thread did not have its CPU confirm nothing; of one that is as fast as it goes, all do.
    let is_program = found["limit"] == "program";
    let last = trials.iter().rev().take_while(|t| t["asked"] == found["asked"] && t["lost"] == 0);
    let rates = last.map(|t| number(&t["reached"]));
    let mut reached: Vec<f64> =
        rates.filter(|rate| is_program || *rate >= 0.97 * number(&found["asked"])).collect();
    assert!(reached.len() >= 3, "{rows}");
    if is_program {
        assert!(reached.contains(&number(&found["reached"])), "{rows}");
    } else {
        reached.truncate(3);
        reached.sort_by(f64::total_cmp);
        assert_eq!(reached[1], number(&found["reached"]));
    }
    if found["limit"] == "loss" {
        let lossy = trials.iter().filter(|t| t["lost"] != 0);
        let nearest =
            lossy.map(|t| number(&t["asked"]) / number(&found["asked"])).fold(f64::MAX, f64::min);
        assert!(nearest <= 1.05, "{rows}");
    }
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0, "recordings are removed");

    // At that rate, and at one beyond every reader's reach: what is stored and what is lost make what was written.
    for rate in [number(&found["asked"]) as u64, 1_000_000_000] {
        let dir = stage.path(&format!("at-{rate}"));
        let mut command = agent();
        command
            .args(["record", "-k", "none", "--ring-size", "128K", "-e", "load.*", "--json", "-o"])
            .arg(&dir);
        command.arg("--").arg(load()).args([
            "events",
            "--json",
            "--time",
            "20ms",
            "--rate",
            &rate.to_string(),
        ]);
        let output = command.output().expect("the agent starts");
        assert_success(&output);
        let text = String::from_utf8_lossy(&output.stdout);
        let line =
            text.lines().find(|line| line.starts_with("{\"threads")).expect("what was written");
        let written: Value = serde_json::from_str(line).expect("JSON");
        let trace: Trace = open(&dir);
        let counts: Vec<i64> = trace
            .rows::<UserEvent>()
            .map(|row| row.expect("a row").arg[1].expect("a count"))
            .collect();
        let lost: i64 = trace.rows::<LossRow>().map(|row| row.expect("a row").count).sum();
        assert_eq!(written["events"].as_i64(), Some(counts.len() as i64 + lost), "{written}");
        assert!(counts.is_sorted_by(|a, b| a < b), "in their order, and none twice");
    }
}

#[test]
fn what_the_agent_refuses_is_said_once_and_a_signal_leaves_nothing() {
    let stage = Stage::enter();
    let dir = stage.path("runs");
    fs::create_dir(&dir).expect("a folder");
    let refused = capacity(&dir).args(["-k", "bogus"]).output().expect("ft-load starts");
    // The first kernel is `none`; it can be had.
    assert!(sentence(&refused).contains("no kernel group `bogus`"));
    let refused = capacity(&dir).args(["--ring-size", "1K"]).output().expect("ft-load starts");
    assert!(sentence(&refused).contains("between 128K and 128M"));

    let mut running = capacity(&dir).args(["--time", "1h"]).spawn().expect("ft-load starts");
    let trace = dir.join(format!("ft-load-{}/trace/spool", running.id()));
    while !trace.exists() {
        assert!(running.try_wait().expect("a state").is_none(), "it goes on for an hour");
        thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: takes no pointer; the child was not waited for, so the number is its own.
    unsafe { libc::kill(running.id() as i32, libc::SIGTERM) };
    assert_eq!(running.wait().expect("it ends").code(), Some(1));
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0);
    let of_it = fs::read_dir("/proc").expect("processes").filter_map(|process| {
        let line = fs::read(process.ok()?.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(dir.to_str()?).then_some(line)
    });
    assert_eq!(of_it.collect::<Vec<_>>(), Vec::<String>::new());
}
