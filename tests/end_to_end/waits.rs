//! A known chain of three waiters behind a holder that is preempted for a known time.

use std::path::Path;

use ft_trace::store::Trace;
use ft_trace::tables::{GrantBar, LockPreemption, LockWait, PreemptionCause, WhatIf};
use serde_json::Value;

use crate::harness::{self, Stage, assert_success};
use crate::holes::Holes;

/// As in [`crate::preempted`]: two context switches and interrupts there.
const SWITCHES_NS: i64 = 100_000;

const LENGTH_US: &str = "5000";

#[test]
fn three_waiters_are_delayed_by_the_thread_that_preempts_the_first_holder() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record_until(&[], &["chain", LENGTH_US], |truth, trace| {
        let (waiters, holes) = (truth["waiters"].as_array().expect("tids"), Holes::of(trace));
        let waits = trace.rows::<LockWait>().map(|row| row.expect("a row"));
        let mut waits = waits.filter(|wait| waiters.contains(&wait.tid.0.into()));
        let held_up = what_if(trace, &truth["victim"]);
        waits.all(|wait| holes.judged(wait.mark, wait.ts.0, wait.dur))
            && held_up.iter().all(|row| holes.judged(row.mark, row.ts.0, row.dur))
    });
    let trace = harness::open(&dir);
    let bound = trace.meta().clock.bound_ns;
    let number = |v: &Value| v.as_i64().expect("a number");
    let (victim, preemptor) = (number(&truth["victim"]), number(&truth["preemptor"]));
    let (from, to) = (number(&truth["taken"][0]), number(&truth["taken"][1]));

    let rows = trace.rows::<LockPreemption>().map(|row| row.expect("a row"));
    let held_up: Vec<LockPreemption> = rows
        .filter(|r| i64::from(r.tid.0) == victim && r.ts.0 < to && from < r.ts.0 + r.dur)
        .collect();
    let [row] = &held_up[..] else { panic!("one preemption by {preemptor}: {held_up:?}") };
    let excess = row.dur - (to - from);
    assert!((-bound..=bound + SWITCHES_NS).contains(&excess), "{row:?} {truth}");
    assert_eq!(row.preemptor_tid.map(i64::from), Some(preemptor));
    assert_eq!(
        (&*row.lock_name, row.cause, row.innermost),
        ("first", PreemptionCause::Preempted, true)
    );
    // The victim spins for 5 ms after it; then it releases.
    assert!(row.ran_after_ns > Some(1_000_000), "{row:?}");
    // The kernel's number of SCHED_FIFO 50.
    assert_eq!(row.preemptor_prio, Some(99 - 50));
    // Only the first of the three waits for this lock; it waited all the time.
    assert_eq!((row.waiters, row.delayed_ns), (1, row.dur));
    assert_eq!(row.longest_waiter_tid.map(i64::from), truth["waiters"][0].as_i64());
    assert!(row.place.contains("chain.rs:"), "{row:?}");

    // Only a priority above the preemptor's, which the first waiter has, or another CPU spares it that time; a grant does
    // not, because the victim had slept.
    let [hold] = &what_if(&trace, &truth["victim"])[..] else { panic!("one hold: {truth}") };
    let taken = to - from - bound;
    let spared = [hold.inherited_ns, hold.own_cpu_ns, hold.prioritized_ns, hold.waited_ns];
    let [inherited, own_cpu, prioritized, waited] = spared.map(|ns| ns.expect("a mutex"));
    assert_eq!(
        (hold.waiters, hold.urgent, hold.bar),
        (Some(1), Some(1), GrantBar::Sleep),
        "{hold:?}"
    );
    assert!(inherited >= taken && own_cpu >= prioritized + taken, "{hold:?} {truth}");
    assert!(inherited <= own_cpu && own_cpu <= waited && waited <= hold.dur, "{hold:?}");

    let waits: Vec<LockWait> = trace.rows::<LockWait>().map(|row| row.expect("a row")).collect();
    for (i, lock) in ["first", "second", "third"].into_iter().enumerate() {
        let tid = number(&truth["waiters"][i]);
        let mut of_it = waits.iter().filter(|w| i64::from(w.tid.0) == tid && &*w.lock_name == lock);
        let (Some(wait), None) = (of_it.next(), of_it.next()) else {
            panic!("one wait of {tid} for {lock}: {waits:?}")
        };
        let parts = wait.parts.expect("a kernel stream");
        assert_eq!(parts.total_ns() + wait.no_holder_ns + wait.cycle_ns, wait.dur);
        assert_eq!((wait.holders, wait.chain as usize), (1, i + 1), "{wait:?}");
        let before = if i == 0 { victim } else { number(&truth["waiters"][i - 1]) };
        assert_eq!(wait.holder_tid.map(i64::from), Some(before), "{wait:?}");
        assert_eq!(wait.root_tid.map(i64::from), Some(victim), "{wait:?}");
        assert_eq!(wait.root_lock.as_deref(), Some("first"));
        // What the victim could not do was done to all three.
        assert!(parts.preempted_ns >= row.dur, "{wait:?} {row:?}");
        assert_eq!(wait.cycle_ns, 0);
    }
    reports(&dir);
}

/// What would have shortened the wait for the victim's lock.
fn what_if(trace: &Trace, victim: &Value) -> Vec<WhatIf> {
    let rows = trace.rows::<WhatIf>().map(|row| row.expect("a row"));
    rows.filter(|row| Some(i64::from(row.tid.0)) == victim.as_i64() && &*row.lock_name == "first")
        .collect()
}

/// Both commands print the story, as text and as JSON.
fn reports(dir: &Path) {
    let run = |args: &[&str]| {
        // Names are cut where a line is short, and how long the others are depends on what else the machine does.
        let mut agent = harness::agent();
        let output = agent.env("COLUMNS", "200").args(args).arg(dir).output();
        let output = output.expect("the agent starts");
        assert_success(&output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let json = |name| -> Value {
        let document: Value = serde_json::from_str(&run(&[name, "--json"])).expect("JSON");
        document["sections"][name]["values"].clone()
    };
    assert!(run(&["preempted"]).contains("ft-preemptor"));
    assert!(run(&["waits"]).contains("ft-victim"));
    assert_eq!(json("waits")["waits"].as_u64(), Some(3));
    assert_eq!(json("waits")["roots"][0]["comm"], "ft-victim");
    // The victim was off the CPU for longer than any extension lasts, and ran for longer afterwards.
    let what_if = &json("what-if");
    let (all, grants) = (&what_if["all"], what_if["all"]["grants"].as_array().expect("grants"));
    for grant in grants {
        assert!(grant["ended"].as_u64() < all["holds"].as_u64(), "the victim's did not: {what_if}");
        assert!(grant["spared_ns"].as_i64() <= all["waited_ns"].as_i64(), "{what_if}");
    }
    assert!(all["own_cpu_ns"].as_i64() <= all["waited_ns"].as_i64(), "{what_if}");
}
