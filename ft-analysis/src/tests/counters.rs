//! What counters counted in holds, scopes, polls and functions.

use super::*;
use crate::Counting;

/// Of each scope, in the order of their ends.
fn of_scopes(timeline: &str) -> Vec<[Option<i64>; 2]> {
    run(false, timeline).0.scopes.iter().map(|scope| scope.counter).collect()
}

#[test]
fn each_interval_has_what_was_counted_between_its_ends() {
    let (rows, tally) = run(
        true,
        "0 0 .>a S
         10 count a 5 100 7
         10 open a
         20 count a 5 150 7
         20 acquire a L
         30 count a 5 190 9
         30 run a 7
         35 count a 5 195 9
         35 ran a 7 1
         40 count a 5 200 10
         40 release a L
         50 count a 5 1000 11
         50 close a",
    );
    assert_eq!(rows.critical_sections[0].counter, [Some(50), Some(3)]);
    assert_eq!(rows.async_switches[0].counter, [Some(5), Some(0)]);
    assert_eq!(rows.scopes[0].counter, [Some(900), Some(4)]);
    assert_eq!(tally.counting, Counting { threads: 1, ..Counting::default() });
}

#[test]
fn without_the_kernel_there_are_counts_and_of_one_counter_there_is_one() {
    let found = of_scopes(
        "10 count a 5 100 -1
         10 open a
         20 count a 5 170 -1
         20 close a",
    );
    assert_eq!(found, [[Some(70), None]]);
}

#[test]
fn what_was_not_read_at_both_ends_or_in_one_stretch_is_not_known() {
    let found = of_scopes(
        // Not at the end, but shortly before; not at the begin.
        "10 count a 5 100 7
         10 open a
         19 count a 5 110 7
         20 close a
         30 open a
         40 count a 5 120 7
         40 close a
         50 count a 5 100 7
         50 open a
         60 count a 6 170 8
         60 close a
         70 count a 6 180 9
         70 open a
         80 count a 6 190 9
         80 close a",
    );
    // The processor had no room for a counter in the third one.
    assert_eq!(found, [[None; 2], [None; 2], [None; 2], [Some(10), Some(0)]]);
}

#[test]
fn a_task_has_what_was_counted_in_all_of_its_polls() {
    let (rows, _) = run(
        false,
        "5 make a 7 3
         6 make a 8 4
         7 make a 9 4
         10 count a 5 100 7
         10 run a 7
         20 count a 5 150 9
         20 ran a 7 0
         30 count b 1 1000 9
         30 run b 7
         40 count b 1 1003 9
         40 ran b 7 1
         50 count b 1 1010 9
         50 run b 8
         60 count b 1 1020 9
         60 ran b 8 0
         70 run b 8
         80 count b 1 1030 9
         80 ran b 8 1
         90 cancel b 9",
    );
    let found: Vec<_> = rows.async_tasks.iter().map(|task| task.counter).collect();
    // Of a poll of 8 nobody knows, and 9 had none.
    assert_eq!(found, [[Some(53), Some(2)], [None; 2], [None; 2]]);
}

#[test]
fn what_cannot_be_is_not_known_and_other_threads_have_their_own() {
    let far = i64::MAX;
    let found = of_scopes(&format!(
        "10 count a 5 100 7
         10 open a
         11 count b 5 20 20
         11 open b
         20 count a 5 90 {far}
         20 close a
         21 count b 5 25 26
         21 close b
         30 count a 5 -9 7
         30 open a
         40 count a 5 {far} 8
         40 close a"
    ));
    assert_eq!(found, [[None, Some(far - 7)], [Some(5), Some(6)], [None, Some(1)]]);
}

#[test]
fn a_function_has_what_was_counted_in_none_that_it_called() {
    let (rows, _) = run(
        false,
        "10 count a 5 100 0
         10 in a F 90
         20 count a 5 130 1
         20 into a
         30 count a 5 135 3
         30 out-of a
         40 count a 5 175 3
         40 out a F 90
         50 in a G 90
         60 count a 5 200 9
         60 out a G 90",
    );
    let found = rows.functions.iter().map(|f| f.counter).collect::<Vec<_>>();
    assert_eq!(found, [[Some(70), Some(1)], [Some(5), Some(2)], [None; 2]]);
}

#[test]
fn what_the_kernel_refuses_is_counted_and_no_reading() {
    let (rows, tally) = run(
        false,
        "10 count a -13 1 -1
         10 open a
         20 count a -13 1 -1
         20 close a
         30 count b -9223372036854775808 0 0
         30 open b",
    );
    assert_eq!(rows.scopes[0].counter, [None; 2]);
    let refused = Counting { refused: 3, errno: i32::MAX, ..Counting::default() };
    assert_eq!(tally.counting, refused);
}
