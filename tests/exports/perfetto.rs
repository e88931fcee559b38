//! Perfetto's format, read back by its trace processor.

use crate::judge::Judge;
use crate::locks;

#[test]
fn perfettos_trace_processor_says_what_the_tables_say_and_of_a_window_what_reaches_into_it() {
    let Some(judge) = Judge::new("node", "perfetto.py") else { return };
    judge.compare_all("perfetto");
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
