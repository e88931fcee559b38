//! Reactions to a device that is there: the disk, whose interrupt comes while a thread waits for what it reads.
//!
//! The interrupt strikes whoever runs, and a softirq behind it wakes the reader: so all threads are observed.

use std::collections::BTreeMap;

use ft_trace::store::Trace;
use ft_trace::tables::{Irq, IrqKind, Request, UserEvent};
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage, gate};
use crate::holes::Holes;
use crate::reactivity::{ask, balances};
use crate::relay::{LEAST, ROUNDS};

/// What a disk takes at most for the fastest of the reads.
const READ_NS: i64 = 100_000_000;

#[test]
fn the_interrupt_of_a_disk_is_answered_by_who_waited_for_it() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(ROUNDS);
    let mut errors = [
        "a disk's interrupt comes while it is waited for, after the read began",
        "the oldest one since the answer before is answered",
    ]
    .map(Errors::of);
    let mut is_there = true;
    stage.record_until(&["-a"], &["disk", &rounds.to_string()], |truth, trace| {
        let Some(disk) = disk(truth, trace) else {
            is_there = false;
            return true;
        };
        let dir = stage.path("trace");
        let values = ask(&dir, &format!("irq:{disk}"), "event:disk.answer");
        judge(truth, &Trace::open(&dir).expect("a whole trace"), &disk, &mut errors);
        balances(&values);
        errors.iter().map(Errors::count).min().expect("some") >= harness::rounds(LEAST)
    });
    if !is_there {
        return gate::skipped(
            "no interrupt comes of reading a file in the directory for temporary files",
        );
    }
    errors.into_iter().for_each(|errors| errors.tell(READ_NS, harness::rounds(LEAST)));
}

/// The interrupts of lines, by their names and times.
fn lines(trace: &Trace) -> BTreeMap<String, Vec<i64>> {
    let mut lines: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for irq in trace.rows::<Irq>().map(|row| row.expect("a row")) {
        if irq.kind == IrqKind::Hard {
            lines.entry(irq.name.to_string()).or_default().push(irq.ts.0);
        }
    }
    lines
}

/// The line whose interrupts come in most of the reads, if one comes in half of them.
fn disk(truth: &Value, trace: &Trace) -> Option<String> {
    let rounds = errors::rounds::<4>(truth);
    let within = |times: &[i64]| {
        let is_met =
            |[reads, read, ..]: &&[i64; 4]| times.iter().any(|ts| (reads..=read).contains(&ts));
        rounds.iter().filter(is_met).count()
    };
    let lines = lines(trace).into_iter().map(|(name, times)| (within(&times), name));
    lines.max().filter(|(met, _)| met * 2 >= rounds.len()).map(|(_, name)| name)
}

fn judge(truth: &Value, trace: &Trace, disk: &str, errors: &mut [Errors; 2]) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let reader = errors::tid(truth, "reader");
    let times = lines(trace).remove(disk).expect("it was found");
    let requests: Vec<Request> = trace.rows().map(|row| row.expect("a row")).collect();
    let events = trace.rows::<UserEvent>().map(|row| row.expect("a row"));
    let told: Vec<i64> = events.filter(|e| &*e.event == "disk.answer").map(|e| e.ts.0).collect();
    for [reads, read, answers, answered] in errors::rounds::<4>(truth) {
        let is_own = |ts: &i64| (answers - bound..=answered + bound).contains(ts);
        let at = told.iter().position(is_own).expect("each answer has an event");
        let since = if at == 0 { i64::MIN } else { told[at - 1] };
        if holes.touch(since, answered) {
            continue;
        }
        // Of its own, or of another program that reads meanwhile.
        let Some(own) = times.iter().rfind(|ts| (reads..=read).contains(ts)) else { continue };
        errors[0].check(*own, reads..=read, bound);
        let request = requests.iter().find(|r| r.ts.0 + r.dur == told[at]).expect("a reaction");
        let oldest = times.iter().find(|ts| **ts > since).expect("its own at least");
        assert_eq!((request.ts.0, request.end_tid.0), (*oldest, reader), "{request:?}");
        errors[1].check(told[at], answers..=answered, bound);
    }
}
