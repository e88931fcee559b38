//! CTF, read back by babeltrace2.

use crate::judge::Judge;

#[test]
fn ctf_as_babeltrace2_reads_it_is_what_the_tables_say_and_so_is_a_window() {
    let Some(judge) = Judge::new("babeltrace2", "ctf.py") else { return };
    judge.compare_all("ctf");
}
