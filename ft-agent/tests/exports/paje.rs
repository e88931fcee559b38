//! Pajé, read back by pajeng.

use crate::judge::{Judge, window};

#[test]
fn paje_as_pj_dump_reads_it_is_what_the_tables_say() {
    let Some(judge) = Judge::new("pj_dump", "paje.py") else { return };
    for trace in judge.traces() {
        judge.compare(&trace, "paje", None);
    }
}

#[test]
fn a_window_of_paje_has_what_lies_in_it() {
    let Some(judge) = Judge::new("pj_dump", "paje.py") else { return };
    let trace = judge.stored("scenarios");
    judge.compare(&trace, "paje", Some(window(&trace)));
}
