//! Against bpftrace, which counts and times the softirqs and interrupt lines of the same second.

use std::collections::BTreeMap;
use std::process::Stdio;

use ft_trace::ids::Cpu;
use ft_trace::store::Trace;
use ft_trace::tables::{Irq, IrqKind};
use serde_json::Value;

use crate::harness::{self, Stage, gate};
use crate::peers;

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

/// Interrupts that strike while a program of bpftrace runs, which the kernel then does not run again (`bpf_prog_active`,
/// kernel/trace/bpf_trace.c): those right behind our own record of a softirq's begin or end, for its programs come after ours.
fn struck(irqs: &[Irq], number: i32) -> impl Iterator<Item = &Irq> {
    let edges = irqs.iter().filter(|irq| irq.kind == IrqKind::Soft);
    let edges: Vec<_> =
        edges.flat_map(|irq| [irq.ts.0, irq.ts.0 + irq.dur].map(|ts| (irq.cpu, ts))).collect();
    let hard = irqs.iter().filter(move |irq| irq.kind == IrqKind::Hard && irq.number == number);
    hard.filter(move |irq| {
        let behind = |&(cpu, ts): &(Cpu, i64)| {
            cpu == irq.cpu && (0..2 * PROGRAM_NS).contains(&(irq.ts.0 - ts))
        };
        edges.iter().any(behind)
    })
}

#[test]
fn counts_of_interrupts_are_those_of_bpftrace() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if peers::bpftrace() {
        (0..harness::rounds(1)).for_each(|_| compare(&stage, false));
    }
}

/// Whatever delays one of the two between its readings is in its time alone.
#[test]
#[ignore = "needs a machine that does nothing else"]
fn times_of_interrupts_are_those_of_bpftrace() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if peers::bpftrace() {
        compare(&stage, true);
    }
}

/// Records a second and a half in which bpftrace counts and times; compares the counts, and the times if asked for.
fn compare(stage: &Stage, times: bool) {
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
    let mut irqs: Vec<Irq> = trace.rows().map(|row| row.expect("a row")).collect();
    irqs.retain(|irq| irq.kind != IrqKind::Vector && from <= irq.ts.0 && irq.ts.0 + irq.dur <= to);
    let mut ours: BTreeMap<(&str, i32), (i64, i64)> = BTreeMap::new();
    for irq in &irqs {
        let sums = ours.entry((irq.kind.word(), irq.number)).or_default();
        *sums = (sums.0 + 1, sums.1 + irq.dur);
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
        let missed = if kind == IrqKind::Hard.word() { struck(&irqs, number).count() } else { 0 };
        let differences = -EDGES * cpus..=EDGES * cpus + missed as i64;
        assert!(differences.contains(&(n - their_n)), "{missed} struck its programs: {told:?}");
        if times && n == their_n {
            assert!((ns - their_ns).abs() <= n * PROGRAM_NS, "{told:?}");
        }
    }
    assert!(told.len() >= 2, "{told:?}");
    std::fs::remove_dir_all(&dir).expect("a folder");
}
