//! Against bpftrace, which counts and times the softirqs and interrupt lines of the same second.

use std::collections::BTreeMap;
use std::process::Stdio;

use ft_trace::store::Trace;
use ft_trace::tables::{Irq, IrqKind};
use serde_json::Value;

use crate::harness::{self, Stage, gate};

/// It tells the begin and the end of its window on the clock that our records carry.
const SCRIPT: &str = r#"
tracepoint:irq:softirq_entry /@on/ { @soft[cpu] = nsecs; }
tracepoint:irq:softirq_exit /@soft[cpu]/ {
    @soft_n[args->vec] = count(); @soft_ns[args->vec] = sum(nsecs - @soft[cpu]); delete(@soft[cpu]);
}
tracepoint:irq:irq_handler_entry /@on/ { @hard[cpu] = nsecs; }
tracepoint:irq:irq_handler_exit /@hard[cpu]/ {
    @hard_n[args->irq] = count(); @hard_ns[args->irq] = sum(nsecs - @hard[cpu]); delete(@hard[cpu]);
}
interval:ms:500 {
    @tick = @tick + 1;
    if (@tick == 1) { @on = 1; @from = nsecs; }
    if (@tick == 3) { @on = 0; @to = nsecs; clear(@soft); clear(@hard); exit(); }
}
"#;

/// Handlers that run when the window begins or ends, on each CPU.
const EDGES: i64 = 2;

/// Per handler, on average: what one of the two programs on a tracepoint takes, when it runs inside of the time
/// that the other one measures, and the programs of handlers that nest in this one.
const PROGRAM_NS: i64 = 5_000;

#[test]
#[ignore = "needs bpftrace and tracefs; see tests/README.md"]
fn counts_and_times_of_interrupts_are_those_of_bpftrace() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent.args(["record", "-a", "-k", "irq", "-o"]).arg(&dir);
    agent.args(["--", "bpftrace", "-f", "json", "-e", SCRIPT]).stderr(Stdio::piped());
    let output = agent.output().expect("the agent starts");
    harness::assert_success(&output);
    let mut maps: BTreeMap<String, Value> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        if let Some(map) = value["data"].as_object().filter(|_| value["type"] == "map") {
            maps.extend(map.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    let moment = |name: &str| maps[name].as_i64().expect("a moment");
    let (from, to) = (moment("@from"), moment("@to"));

    let trace = Trace::open(&dir).expect("a whole trace");
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let mut ours: BTreeMap<(&str, i32), (i64, i64)> = BTreeMap::new();
    for irq in trace.rows::<Irq>() {
        let irq = irq.expect("a row");
        let kind = irq.kind.word();
        if irq.kind != IrqKind::Vector && from <= irq.ts.0 && irq.ts.0 + irq.dur <= to {
            let sums = ours.entry((kind, irq.number)).or_default();
            *sums = (sums.0 + 1, sums.1 + irq.dur);
        }
    }
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get()) as i64;
    let mut told = Vec::new();
    for ((kind, number), (n, ns)) in ours {
        let theirs = |what: &str| -> i64 {
            let map = maps.get(&format!("@{kind}_{what}"));
            map.and_then(|map| map.get(number.to_string())?.as_i64()).unwrap_or(0)
        };
        let (their_n, their_ns) = (theirs("n"), theirs("ns"));
        told.push(format!("{kind} {number}: {n} and {their_n} times, {ns} and {their_ns} ns"));
        gate::measured(&format!("ours and bpftrace's, {}", told[told.len() - 1]));
        assert!((n - their_n).abs() <= EDGES * cpus, "{told:?}");
        if n == their_n {
            assert!((ns - their_ns).abs() <= n * PROGRAM_NS, "{told:?}");
        }
    }
    assert!(told.len() >= 2, "{told:?}");
}
