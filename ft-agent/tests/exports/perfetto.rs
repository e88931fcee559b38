//! Perfetto's format, read back by its trace processor.

use crate::judge::{Judge, window};
use crate::locks;

#[test]
fn perfettos_trace_processor_says_what_the_tables_say() {
    let Some(judge) = Judge::new("node", "perfetto.py") else { return };
    for trace in judge.traces() {
        judge.analyze(&trace);
        judge.compare(&trace, "perfetto", None);
    }
}

#[test]
fn a_window_for_perfetto_has_what_lies_in_it_and_what_reaches_into_it() {
    let Some(judge) = Judge::new("node", "perfetto.py") else { return };
    let trace = judge.stored("scenarios");
    judge.analyze(&trace);
    judge.compare(&trace, "perfetto", Some(window(&trace)));
}

#[test]
fn a_lock_is_one_track_of_holders_and_one_of_waiters_in_perfetto() {
    let Some(judge) = Judge::new("node", "perfetto_locks.py") else { return };
    let trace = judge.file("locks");
    std::fs::create_dir(&trace).expect("a folder");
    locks::write(&trace);
    judge.analyze(&trace);
    judge.compare(&trace, "perfetto", None);
}
