//! What the recording itself did, on a machine where it cannot do otherwise: the agent and a program that floods it
//! share one CPU, so the agent takes that from the program again and again.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Stage, agent, assert_success, subject};
use crate::recomputed::{agrees, python};

/// The CPU of both.
const CPU: &str = "0";

/// What the program writes.
const EVENTS: &str = "300000";

#[test]
fn what_the_agent_takes_from_a_program_is_said_and_counted_as_the_switches_have_it() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", CPU]).arg(ft_tests::agent()).args(["record", "-o"]).arg(&dir);
    pinned.arg("--").arg(subject()).args(["flood", EVENTS]);
    assert_success(&pinned.output().expect("taskset starts (Debian: util-linux)"));

    let output = agent().arg("report").arg(&dir).arg("time").output().expect("the agent starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Lines break where they do.
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["preempted", "them"]), "{text}");
    assert!(text.contains(" recording\n"), "{text}");

    let output = agent().arg("time").arg(&dir).arg("--json").output().expect("the agent starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let recording = &report["trace"]["recording"];
    let number = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{recording}"));
    let scheduler = &recording["scheduler"];
    assert!(number(&scheduler["preempted"]["times"]) > 0, "{recording}");
    assert_eq!(
        scheduler["cpu_ns"], scheduler["shared_ns"],
        "there is one CPU for all: {recording}"
    );
    assert_eq!(
        number(&recording["user_events"]),
        EVENTS.parse::<i64>().expect("a number") - lost(&report),
        "{recording}"
    );
    assert!(recording["event_cost_ns"].as_f64() > Some(1.0), "{recording}");

    if let Some(found) = python("python/overhead.py", &[&dir, Path::new(CPU)]) {
        assert_success(&found);
    }
    agrees("a program that shares its CPU with the agent", &dir);
}

fn lost(report: &Value) -> i64 {
    report["trace"]["lost_user_events"].as_i64().expect("a number")
}
