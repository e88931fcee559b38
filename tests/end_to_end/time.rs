//! A thread that sleeps, runs and is preempted for known times: where the ledger says that its time went.

use std::ops::RangeInclusive;

use ft_trace::store::Trace;
use ft_trace::tables::{Part, ThreadTime};
use serde_json::Value;

use crate::errors;
use crate::harness::{self, Stage};
use crate::holes::Holes;

/// What the ledger may differ by for each round and each part: two context switches, the ways into and out
/// of system calls, and the thread's clock readings, taken outside of them.
const MARGIN_NS: i64 = 100_000;

const LENGTH_US: &str = "5000";
const ROUNDS: &str = "5";

/// What the ledger says of the victim.
fn rows(truth: &Value, trace: &Trace) -> Vec<ThreadTime> {
    let victim = truth["victim"].as_i64();
    let rows = trace.rows::<ThreadTime>().map(|row| row.expect("a row"));
    rows.filter(|r| Some(i64::from(r.tid.0)) == victim).collect()
}

#[test]
fn known_running_sleeping_and_preemption_are_in_the_ledger() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let options = ["-k", "sched,irq,task,syscall"];
    let scenario = ["preempted-hold", LENGTH_US, ROUNDS];
    let (truth, dir) = stage.record_until(&options, &scenario, |truth, trace| {
        let holes = Holes::of(trace);
        let as_planned = |r: &[i64; 8]| r[4] < r[2] && r[3] < r[5];
        rows(truth, trace).iter().all(|row| holes.judged(row.mark, row.ts.0, row.wall_ns))
            && errors::rounds(truth).iter().all(as_planned)
    });
    let (rows, preemptor) = (rows(&truth, &harness::open(&dir)), truth["preemptor"].as_i64());

    let wall = rows.first().expect("the victim was seen").wall_ns;
    assert_eq!(rows.iter().map(|r| r.spent_ns).sum::<i64>(), wall);

    let sum = |pairs: &[(i64, i64)]| pairs.iter().map(|(from, to)| to - from).sum::<i64>();
    let rounds = errors::rounds::<8>(&truth);
    let pairs =
        |at: usize| -> Vec<(i64, i64)> { rounds.iter().map(|r| (r[at], r[at + 1])).collect() };
    let (taken, inside) = (pairs(2), pairs(4));
    let slept: Vec<_> = inside.windows(2).map(|w| (w[0].1, w[1].0)).collect();
    // It sleeps before the first round too, for a part of this time, and starts; after the last one, it ends.
    let before = inside[0].0 - rows[0].ts.0;
    let after = rows[0].ts.0 + wall - inside[inside.len() - 1].1;
    let (taken, inside, slept) = (sum(&taken), sum(&inside), sum(&slept));
    // What the victim itself missed: on a machine that stands still meanwhile, much more than was taken.
    let lost: i64 = rounds.iter().map(|r| r[6]).sum();
    let margin = MARGIN_NS * ROUNDS.parse::<i64>().expect("a number");

    let of = |wanted: &dyn Fn(&ThreadTime) -> bool| {
        rows.iter().filter(|r| wanted(r)).map(|r| r.spent_ns).sum::<i64>()
    };
    let check = |what: &str, found: i64, truth: RangeInclusive<i64>| {
        println!("{what}: {found} ns, truth {truth:?} ns: {} ns more", found - truth.start());
        let bounds = truth.start() - margin..=truth.end() + margin;
        assert!(bounds.contains(&found), "{what}: {found}, not {truth:?}: {rows:?}");
    };
    let by_preemptor =
        |r: &ThreadTime| r.part == Part::Preempted && r.culprit_tid.map(i64::from) == preemptor;
    // Outside of the rounds it takes the CPU, too, for as long as its own clock says: above all where it begins.
    let outside = truth["outside"].as_i64().expect("a number");
    check("preempted", of(&by_preemptor), taken..=lost + outside);
    let asleep = |r: &ThreadTime| {
        let nanosleep = r.culprit.as_deref() == Some("system call clock_nanosleep");
        r.part == Part::Blocked && nanosleep || r.part == Part::Dispatch
    };
    check("slept", of(&asleep), slept..=slept + before);
    let on_cpu = |r: &ThreadTime| {
        [Part::Running, Part::Hardirq, Part::Softirq, Part::Vector].contains(&r.part)
    };
    check("on the CPU", of(&on_cpu), inside - lost..=inside - taken + before + after);
}
