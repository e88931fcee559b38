//! Perfetto's format, read back by its trace processor.

use crate::judge::{Judge, window};

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
