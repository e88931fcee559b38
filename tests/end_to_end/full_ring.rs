//! `--on-full wait`: a program that writes faster than anybody reads keeps its events, and the trace says at what price.

use ft_analysis::Tally;
use ft_trace::store::Trace;
use ft_trace::tables::{LossRow, SchedSwitch, SchedWaking, SiteKind, ThreadTime, UserEvent};

use crate::counting::last_number;
use crate::harness::{self, Stage, open};
use crate::holes::Holes;

/// Small rings, which a loop that only writes fills at once. The agent reads them as fast where it has a CPU for itself all of the
/// time, so the subject makes it stand still.
const OPTIONS: [&str; 4] = ["--ring-size", "128K", "--on-full", "wait=1s"];

/// Thread, begin and end of each wait.
fn waits_of(trace: &Trace) -> Vec<(i32, i64, i64)> {
    let events = trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let waits = events.filter(|event| event.kind == SiteKind::RingWait);
    waits.map(|e| (e.tid.0, e.ts.0, e.arg[0].expect("an end"))).collect()
}

/// For how long the threads slept in their waits: from the switch away to the waking, by the raw tables.
fn asleep_in(waits: &[(i32, i64, i64)], trace: &Trace) -> i64 {
    let wakings: Vec<SchedWaking> = trace.rows().map(|row| row.expect("a row")).collect();
    let switches: Vec<SchedSwitch> = trace.rows().map(|row| row.expect("a row")).collect();
    let asleep = |&(tid, from, to): &(i32, i64, i64)| -> i64 {
        let left = switches.iter().filter(|s| {
            let slept = s.prev_tid.0 == tid && !s.prev_state.is_runnable() && !s.prev_woken;
            slept && (from..to).contains(&s.ts.0)
        });
        let woken = |left: i64| {
            let after = |w: &&SchedWaking| w.tid.0 == tid && w.ts.0 >= left;
            wakings.iter().find(after).map_or(to, |w| w.ts.0.min(to))
        };
        left.map(|s| woken(s.ts.0) - s.ts.0).sum()
    };
    waits.iter().map(asleep).sum()
}

#[test]
fn a_program_that_waits_keeps_its_events_and_the_trace_says_so() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    // Where a machine is so busy that nobody lets the agent go on for a second, the only wait is in vain, and goes with its thread.
    let (truth, dir) = stage.record_until(&OPTIONS, &["unread", "500000"], |truth, trace| {
        let lost: i64 = trace.rows::<LossRow>().map(|loss| loss.expect("a row").count).sum();
        let waited = !waits_of(trace).is_empty();
        assert!(waited || lost > 0, "the rings were never full: {truth}");
        waited
    });
    let written = truth["number"].as_u64().expect("a number");
    let trace = open(&dir);
    let (mut waits, mut waited_ns, mut stored) = (0, 0, 0);
    for event in trace.rows::<UserEvent>() {
        let event = event.expect("a row");
        if event.kind == SiteKind::RingWait {
            waits += 1;
            waited_ns += event.arg[0].expect("an end") - event.ts.0;
            assert!(event.arg[0] >= Some(event.ts.0));
        } else if &*event.event == "endless.step" {
            stored += 1;
        }
    }
    let lost: i64 = trace.rows::<LossRow>().map(|loss| loss.expect("a row").count).sum();
    assert_eq!(stored + lost as u64, written);
    if lost == 0 {
        assert_eq!(last_number(&trace), written);
    }
    let tally: Tally =
        serde_json::from_slice(&std::fs::read(dir.join("analysis.json")).unwrap()).unwrap();
    assert_eq!((tally.ring_waits.waits, tally.ring_waits.total_ns), (waits, waited_ns));
    let of_ring = |row: &ThreadTime| row.culprit.as_deref() == Some("full ring");
    let blocked: Vec<ThreadTime> = trace.rows().map(Result::unwrap).filter(of_ring).collect();
    let blocked_ns: i64 = blocked.iter().map(|row| row.spent_ns).sum();
    assert!((1..=waited_ns).contains(&blocked_ns), "{blocked_ns} of {waited_ns}");
    if !Holes::of(&trace).touch(i64::MIN, i64::MAX) {
        assert_eq!(blocked_ns, asleep_in(&waits_of(&trace), &trace), "by the switches");
    }
    let report = harness::agent().args(["report"]).arg(&dir).output().expect("the agent starts");
    harness::assert_success(&report);
    let text =
        String::from_utf8_lossy(&report.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("for room in their rings (--on-full wait)"), "{text}");
}
