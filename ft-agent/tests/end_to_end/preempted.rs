//! A known preemption inside a hold and inside a polling loop.

use ft_agent::store::rows::{CriticalSection, Gap};
use serde_json::Value;

use crate::harness::{self, Stage};

/// What a preemption may take beyond the time between the preemptor's two clock readings: two context
/// switches, the ways out of one system call and into the next, and interrupts there. Measured: 11 to
/// 20 µs with an unoptimised subject. The clock bound comes on top.
const SWITCHES_NS: i64 = 100_000;

/// Arguments of the subject.
const LENGTH_US: &str = "5000";
const ROUNDS: &str = "5";

/// When the preemptor had the CPU, for each round in which the victim was where it should be; by the
/// number of the round.
fn taken(truth: &Value) -> Vec<(usize, i64, i64)> {
    let intervals = |name: &str| -> Vec<(i64, i64)> {
        let pairs = truth[name].as_array().expect("intervals").iter();
        pairs.map(|p| (p[0].as_i64().expect("ns"), p[1].as_i64().expect("ns"))).collect()
    };
    // A machine that is itself preempted can be late; more than two rounds of five would be odd.
    let valid: Vec<_> = std::iter::zip(intervals("taken"), intervals("inside"))
        .enumerate()
        .filter(|(_, (taken, inside))| inside.0 < taken.0 && taken.1 < inside.1)
        .map(|(round, (taken, _))| (round, taken.0, taken.1))
        .collect();
    assert!(valid.len() >= 3, "the subject was not preempted as planned: {truth}");
    valid
}

#[test]
fn a_preempted_hold_shows_how_long_and_by_whom() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&[], &["preempted-hold", LENGTH_US, ROUNDS]);
    let trace = harness::open(&dir);
    let bound = trace.meta().clock.bound_ns;
    let holds: Vec<CriticalSection> = trace
        .rows::<CriticalSection>()
        .map(|row| row.expect("a row"))
        .filter(|hold| &*hold.lock_name == "victim")
        .collect();
    assert_eq!(holds.len().to_string(), ROUNDS);
    for (round, from, to) in taken(&truth) {
        let hold = &holds[round];
        let preempted = hold.parts.expect("parts").preempted_ns;
        let excess = preempted - (to - from);
        assert!(
            (-bound..=bound + SWITCHES_NS).contains(&excess),
            "preempted {preempted} ns, truth {} ns, clock bound {bound} ns",
            to - from
        );
        assert_eq!(hold.preemptor_comm.as_deref(), Some("ft-preemptor"));
        assert_eq!(hold.preemptor_tid.map(i64::from), truth["preemptor"].as_i64());
        assert_eq!(i64::from(hold.tid.0), truth["victim"].as_i64().expect("tid"));
        assert_eq!(&*hold.mark, "exact");
    }
    readers(&dir);
}

#[test]
fn the_gap_of_a_descheduled_polling_thread_is_explained_by_the_switch() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&[], &["preempted-poll", LENGTH_US, ROUNDS]);
    let trace = harness::open(&dir);
    let bound = trace.meta().clock.bound_ns;
    let gaps: Vec<Gap> = trace.rows::<Gap>().map(|row| row.expect("a row")).collect();
    for (_, from, to) in taken(&truth) {
        let around = |g: &&Gap| g.ts.0 <= from + bound && to - bound <= g.ts.0 + g.dur;
        let gap = gaps.iter().find(around).expect("the polling thread saw the preemption");
        assert_eq!(gap.cause.as_deref(), Some("switched-out"), "{gap:?}");
        assert_eq!(gap.culprit.as_deref(), Some("ft-preemptor"), "{gap:?}");
        let preempted = gap.parts.expect("parts").preempted_ns;
        assert!(preempted >= to - from - bound, "{gap:?}");
        assert!(gap.dur <= to - from + bound + SWITCHES_NS, "{gap:?}");
    }
}

/// Opens the tables with DuckDB, Polars, pandas and pyarrow, as their users will.
fn readers(dir: &std::path::Path) {
    let Some(python) = std::env::var_os("FT_PYTHON") else {
        eprintln!("skipped: FT_PYTHON is not set; run `cargo xtask test`");
        return;
    };
    for script in ["tests/python/readers.py", "notebooks/first_look.py"] {
        let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let output = std::process::Command::new(&python).arg(script).arg(dir).output();
        harness::assert_success(&output.expect("python starts"));
    }
}
