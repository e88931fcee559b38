//! Deadlines of an unmodified program with a periodic thread, which measures itself: which cycles missed, and why.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{self, Stage, agent, assert_success};
use crate::probes::{RECORDINGS, is_whole};

const CYCLES: usize = 1000;

/// Planted in so many cycles: one that computes, and one that waits for a lock.
const EACH: usize = 100;

const LIMIT_NS: i64 = 1_000_000;

/// The program reads the clock, and then goes to sleep: what lies so near to the limit can be on either side.
const NEAR_NS: i64 = 20_000;

fn compiled(stage: &Stage) -> PathBuf {
    let program = stage.path("periodic");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/periodic.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu17", "-O1", "-pthread", "-o"]).arg(&program).arg(source);
    assert_success(&compiler.output().expect("a C compiler, cc"));
    program
}

fn report(dir: &Path, options: &[&str]) -> Output {
    agent().arg("report").arg(dir).args(options).output().expect("the agent starts")
}

/// What the program says of one cycle.
#[derive(Clone, Copy, Debug)]
struct Truth {
    due: i64,
    took: i64,
    waited: i64,
    computed: i64,
}

/// Those that are over, which the last is not.
fn truths(said: &Value) -> Vec<Truth> {
    let cycles = said["cycles"].as_array().expect("cycles");
    let of = |cycle: &Value| {
        let [due, took, waited, computed] =
            [0, 1, 2, 3].map(|i| cycle[i].as_i64().expect("a number"));
        Truth { due, took, waited, computed }
    };
    cycles[..cycles.len() - 1].iter().map(of).collect()
}

#[test]
fn each_missed_deadline_is_counted_with_its_cause() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let program = compiled(&stage);
    for _ in 0..RECORDINGS {
        let dir = stage.path("trace");
        let mut record = agent();
        record.args(["record", "--deadline", "rt-loop=1ms", "-o"]).arg(&dir).arg("--");
        let output = record.arg(&program).arg(CYCLES.to_string()).output();
        let output = output.expect("the agent starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{text}\n{output:?}");
        let line = text.lines().find(|line| line.starts_with('{')).expect("the program's truth");
        let said: Value = serde_json::from_str(line).expect("JSON");
        let values = report(&dir, &["deadlines", "--json"]);
        assert_success(&values);
        let values: Value = serde_json::from_slice(&values.stdout).expect("JSON");
        let values = &values["sections"]["deadlines"]["values"];
        if said["real_time"] == true
            && is_whole(&harness::open(&dir))
            && agrees(&truths(&said), values)
        {
            let missed = values["deadlines"][0]["missed"].as_u64().expect("a number");
            let line = format!("{missed} missed it");
            let summary = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
            assert!(summary.contains(&line), "{line}: {summary}");
            return statuses(&dir);
        }
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
    panic!("none of {RECORDINGS} recordings is whole and has what the program says");
}

/// Whether the numbers are those of the program, on a machine that let it work.
fn agrees(truths: &[Truth], values: &Value) -> bool {
    let counts = &values["deadlines"][0];
    let count = |name: &str| counts[name].as_i64().expect("a number");
    assert_eq!(count("met") + count("missed"), count("cycles"), "{counts}");
    let is_near = |truth: &&Truth| (truth.took - LIMIT_NS).abs() <= NEAR_NS;
    let near = truths.iter().filter(is_near).count() as i64;
    let theirs = truths.iter().filter(|truth| truth.took > LIMIT_NS).count() as i64;
    let longest = truths.iter().map(|truth| truth.took).max().expect("cycles");
    let ours = values["longest"][0]["dur_ns"].as_i64().expect("a number");
    let missed = values["missed"].as_array().expect("a list");
    let (mut computed, mut waited) = (0, 0);
    for truth in truths.iter().filter(|truth| truth.took > LIMIT_NS) {
        let found = missed.iter().find(|cycle| cycle["ts"] == truth.due);
        let Some(found) = found else { continue };
        let (class, what) = (&found["class"], found["what"].as_str().expect("words"));
        if 2 * truth.waited > truth.took {
            assert_eq!(class, "thread", "{truth:?}: {found}");
            assert!(what.starts_with("waited for holder"), "{truth:?}: {found}");
            waited += 1;
        } else if 2 * truth.computed > truth.took + LIMIT_NS {
            assert_eq!(class, "own", "{truth:?}: {found}");
            computed += 1;
        }
    }
    let all = (CYCLES / EACH) as i64;
    count("cycles") == truths.len() as i64
        && count("doubtful") == 0
        && (count("missed") - theirs).abs() <= near
        && (ours - longest).abs() * 20 <= longest
        // Some may have met with something worse.
        && computed + 2 >= all
        && waited + 2 >= all
}

/// What a script for CI asks.
fn statuses(dir: &Path) {
    let check = |options: &[&str], status: i32, words: &str| {
        let output = report(dir, options);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(status), "{options:?}: {said}");
        assert!(said.contains(words), "{options:?}: {said}");
    };
    check(
        &["--deadline", "rt-loop=1ms", "--deadline", "rt-loop=1000us"],
        3,
        "What took most of each cycle",
    );
    check(&["--deadline", "rt-*=1m"], 0, " 0 missed it");
    check(&["--deadline", "rt-loop=1ms", "--deadline", "holder=1m"], 3, "Deadline holder=60s: ");
    check(&["--deadline", "rt-loop"], 2, "name a thread and a time, as in 'rt-loop=1ms'");
    check(&["--deadline", "=1ms"], 2, "name a thread and a time, as in 'rt-loop=1ms'");
    check(&["--deadline", "rt-loop=soon"], 2, "write for example 500ms");
    check(
        &["--deadline", "nobody=1ms"],
        2,
        "no thread of the trace matches `nobody`: name one that it has, as holder",
    );
    // It waits for the others to end.
    check(&["--deadline", "periodic=1ms"], 1, "no cycle of periodic=1ms was recorded");
    let output =
        agent().args(["record", "-k", "irq", "--deadline", "a=1ms", "--", "true"]).output();
    let output = output.expect("the agent starts");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("add sched and irq to -k"), "{said}");
}

/// The cycle that a trigger finds is one of the report's.
#[test]
fn a_missed_deadline_ends_a_flight_recorder() {
    const TRIGGER: &str = "missed rt-loop > 1ms";
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (program, dir) = (compiled(&stage), stage.path("trace"));
    let mut record = agent();
    record.args(["record", "--flight-recorder", "2s", "--stop-on-trigger", "--when", TRIGGER]);
    // More cycles than there is time for: the trigger ends it.
    let output = record.arg("-o").arg(&dir).arg("--").arg(&program).arg("1000000").output();
    let output = output.expect("the agent starts");
    let snapshot = dir.join("snapshot-0001");
    let trace = harness::open(&snapshot);
    let reason = &trace.meta().end.as_ref().expect("an end").reason;
    let found = reason.split_once(TRIGGER).and_then(|(_, found)| found.strip_prefix(": "));
    let (ms, of) = found.and_then(|found| found.split_once(" ms of ")).expect(reason);
    assert!(of.starts_with("'rt-loop', thread "), "{reason}: {output:?}");
    let ns = ms.parse::<f64>().expect("a number") * 1e6;
    let values = report(&snapshot, &["deadlines", "--deadline", "rt-loop=1ms", "--json"]);
    let values: Value = serde_json::from_slice(&values.stdout).expect("JSON");
    let missed = values["sections"]["deadlines"]["values"]["missed"].as_array().expect("a list");
    let lengths: Vec<f64> = missed.iter().filter_map(|cycle| cycle["dur_ns"].as_f64()).collect();
    // The reason has microseconds.
    assert!(lengths.iter().any(|dur| (dur - ns).abs() <= 1e3), "{ns}: {lengths:?}");
}
