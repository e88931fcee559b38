//! Pajé, read back by pajeng.

use crate::judge::Judge;

#[test]
fn paje_as_pj_dump_reads_it_is_what_the_tables_say_and_so_is_a_window() {
    let Some(judge) = Judge::new("pj_dump", "paje.py") else { return };
    judge.compare_all("paje");
}
