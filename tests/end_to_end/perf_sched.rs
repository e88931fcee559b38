//! Against `perf sched`, which records the same run.

use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::{DispatchLatency, SchedSwitch, TaskEvent, TaskKind};

use crate::harness::{self, Stage, gate};

const ROUNDS: &str = "2000";

/// perf prints microseconds, rounded down, and its own handler runs behind our program on each tracepoint.
const ROUNDING_NS: i64 = 2_000;

/// One line of `perf sched timehist`: how long a thread slept, waited and ran, ns.
struct Slice {
    tid: i32,
    delay: i64,
    run: i64,
}

fn slice(line: &str) -> Option<Slice> {
    // 14641.413237 [0000]  ft-ping[9357/9354]   0.000   0.147   0.056
    let mut words = line.split_whitespace().rev();
    let mut ns =
        || -> Option<i64> { Some((words.next()?.parse::<f64>().ok()? * 1e6).round() as i64) };
    let (run, delay, _wait) = (ns()?, ns()?, ns()?);
    // The name before may have spaces; a thread that has just begun has that of its parent.
    let ids = words.next()?.rsplit('[').next()?;
    Some(Slice { tid: ids.split(['/', ']']).next()?.parse().ok()?, delay, run })
}

#[test]
#[ignore = "needs linux-perf and tracefs; see tests/README.md"]
fn switches_delays_and_run_times_are_those_of_perf_sched() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let data = stage.path("perf.data");
    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent
        .args(["record", "-o"])
        .arg(&dir)
        .args(["--", "perf", "sched", "record", "-m", "8M", "-o"]);
    agent.arg(&data).arg(harness::subject()).args(["ping-pong", ROUNDS]);
    harness::assert_success(&agent.output().expect("the agent starts"));
    let output = Command::new("perf").args(["sched", "timehist", "-i"]).arg(&data).output();
    let output = output.expect("perf starts");
    harness::assert_success(&output);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("LOST") && !told.contains("lost"), "{told}");
    let slices: Vec<Slice> =
        String::from_utf8_lossy(&output.stdout).lines().filter_map(slice).collect();

    let trace = harness::open(&dir);
    for player in ["ft-ping", "ft-pong"] {
        compare(&trace, player, &slices);
    }
}

fn compare(trace: &Trace, player: &str, slices: &[Slice]) {
    let switches: Vec<SchedSwitch> = trace.rows().map(|row| row.expect("a row")).collect();
    let named = |s: &&SchedSwitch| &*s.prev_comm == player;
    let tid = switches.iter().find(named).expect("the player ran").prev_tid.0;
    let mut ends = trace.rows::<TaskEvent>().map(|row| row.expect("a row"));
    let exit = ends.find(|e| e.tid.0 == tid && e.kind == TaskKind::Exit).expect("its exit").ts;
    let mut came = None;
    let mut runs = Vec::new();
    for switch in &switches {
        if switch.next_tid.0 == tid {
            came = Some(switch.ts.0);
        }
        if switch.prev_tid.0 == tid {
            // perf knows no thread that has begun to exit.
            let run = came.take().filter(|_| switch.ts < exit);
            runs.extend(run.map(|came| switch.ts.0 - came));
        }
    }
    let wakes = trace.rows::<DispatchLatency>().map(|row| row.expect("a row"));
    let delays: Vec<i64> = wakes.filter(|w| w.tid.0 == tid).map(|w| w.dur).collect();
    let theirs: Vec<&Slice> = slices.iter().filter(|slice| slice.tid == tid).collect();
    let sum = |of: &dyn Fn(&Slice) -> i64| theirs.iter().map(|slice| of(slice)).sum::<i64>();
    let (their_run, their_delay) = (sum(&|s| s.run), sum(&|s| s.delay));
    let (our_run, our_delay): (i64, i64) = (runs.iter().sum(), delays.iter().sum());
    gate::measured(&format!(
        "{player}, ours and perf sched's: {} and {} times on a CPU, {our_run} and {their_run} ns in all, {our_delay} and {their_delay} ns from wake-up to switch",
        runs.len(),
        theirs.len(),
    ));
    assert_eq!(runs.len(), theirs.len(), "times on a CPU");
    let rounding = 0..=ROUNDING_NS * runs.len() as i64;
    assert!(rounding.contains(&(our_run - their_run)), "time on a CPU");
    assert!(rounding.contains(&(our_delay - their_delay)), "time from wake-up to switch");
}
