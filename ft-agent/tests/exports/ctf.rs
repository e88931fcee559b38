//! CTF, read back by babeltrace2.

use crate::judge::{Judge, window};

#[test]
fn ctf_as_babeltrace2_reads_it_is_what_the_tables_say() {
    let Some(judge) = Judge::new("babeltrace2", "ctf.py") else { return };
    for trace in judge.traces() {
        judge.compare(&trace, "ctf", None);
    }
}

#[test]
fn a_window_of_ctf_has_what_lies_in_it() {
    let Some(judge) = Judge::new("babeltrace2", "ctf.py") else { return };
    let trace = judge.stored("scenarios");
    judge.compare(&trace, "ctf", Some(window(&trace)));
}
