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

/// Where one thread sleeps, and no program writes events, it looks forty times a second. It waits for a busy disk, too, some times for
/// each look; if it looked each millisecond, it would wait a thousand times.
#[test]
fn the_collecting_thread_seldom_looks_while_little_happens() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let script = r#"
        until [ "$collecting" ]; do
            for task in /proc/$PPID/task/*; do
                [ "$(cat $task/comm)" = ft-collect ] && collecting=$task
            done
        done
        counts() {
            sed -n "s/^voluntary_ctxt_switches:[^0-9]*//p" $collecting/status
            cut -d ' ' -f 1 /proc/uptime
        }
        counts
        sleep 2
        counts"#;
    let mut recording = agent();
    recording.args(["record", "-o"]).arg(stage.path("trace")).args(["--", "sh", "-c", script]);
    let output = recording.output().expect("the agent starts");
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.lines().map_while(|line| line.parse().ok()).collect();
    let [woken, at, woken_then, then] = numbers[..] else { panic!("{text}") };
    let per_second = (woken_then - woken) / (then - at);
    assert!((1.0..250.0).contains(&per_second), "{per_second} a second: {text}");
}

fn lost(report: &Value) -> i64 {
    report["trace"]["lost_user_events"].as_i64().expect("a number")
}

/// A recording of all processes has the agent's own threads in it, too: how much of what it says that is, it says.
#[test]
fn what_of_a_recording_of_all_is_its_own_is_said() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let groups = ["-a", "-k", "default,syscall,fault,futex,profile"];
    let (_, dir) = stage.record_program(&groups, Path::new("sleep"), &["1"]);
    let mut report = agent();
    report.arg("report").arg(&dir).args(["breakdown", "dispatch", "futexes", "profile", "--json"]);
    let report: Value =
        serde_json::from_slice(&report.output().expect("the agent starts").stdout).expect("JSON");
    let agent_pid = &report["trace"]["recording"]["agent_pid"];
    let values = |section: &str| &report["sections"][section]["values"];
    // The agent sleeps between its rounds, and makes system calls in them.
    let dispatch = values("dispatch");
    let own: u64 = dispatch["threads"]
        .as_array()
        .expect("threads")
        .iter()
        .filter(|thread| thread["pid"] == *agent_pid)
        .map(|thread| thread["wakeups"].as_u64().expect("a number"))
        .sum();
    assert!(own > 0, "{dispatch}");
    assert_eq!(dispatch["of_recording"]["count"], own, "{dispatch}");
    let breakdown = values("breakdown");
    for what in ["calls_of_recording", "faults_of_recording"] {
        assert!(breakdown[what]["count"].as_u64() > Some(0), "{what}: {}", breakdown[what]);
    }
    assert!(values("futexes")["of_recording"]["count"].is_u64(), "{}", values("futexes"));
    assert!(values("profile")["of_recording"].is_u64(), "{}", values("profile"));
}
