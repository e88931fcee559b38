//! Functions of fibers whose switches are told.

use super::check;

/// F calls H twice, and each H lets another fiber run, in which G never returns. Their stacks lie beside each other.
#[test]
fn calls_are_those_of_the_fiber_in_which_they_were_made() {
    check(
        "0 0 .>a S
         10 in a F 50
         10 fiber a 1
         15 in a H 40
         18 in a G 60
         18 fiber a 2
         20 fiber a 1
         23 out a H 40
         28 in a H 40
         31 fiber a 2
         33 fiber a 1
         36 out a H 40
         40 fiber a 0
         50 exit a",
        &[
            "a F 1x total26 self14 run14 open1 censored",
            "a H 2x total12 self12 run12",
            "a G 1x total4 self4 run4 open1 censored",
        ],
    );
}

/// Where the switch is told before it is made, by a function that is called for it.
#[test]
fn who_tells_the_switch_before_it_is_made_stays_in_its_fiber() {
    check(
        "0 0 .>a S
         5 fiber a 1
         10 in a F 500
         15 in a Y 490
         16 fiber a 2
         20 in a G 700
         28 in a Y 690
         29 fiber a 1
         30 out a Y 490
         35 out a F 500
         36 fiber a 2
         37 out a Y 690
         40 out a G 700
         50 exit a",
        &["a F 1x total12 self10 run10", "a Y 2x total4 self4 run4", "a G 1x total13 self11 run11"],
    );
}

/// What a fiber has taken on one thread stays there; what it takes on another is that one's.
#[test]
fn a_fiber_takes_its_calls_to_another_thread() {
    check(
        "0 0 .>a S
         0 1 .>b S
         5 fiber a 1
         10 in a F 50
         20 in a G 40
         30 fiber a 0
         40 fiber b 1
         45 out b G 40
         60 out b F 50
         70 exit a
         80 exit b",
        &[
            "a F 1x total20 self10 run10",
            "a G 1x total10 self10 run10",
            "b F 0x total20 self15 run15",
            "b G 0x total5 self5 run5",
        ],
    );
}

#[test]
fn a_call_above_another_that_no_switch_follows_has_taken_its_place() {
    check(
        "0 0 .>a S
         10 in a F 90
         20 in a G 50
         30 in a H 70
         40 out a H 70
         50 out a F 90
         60 exit a",
        &[
            "a F 1x total40 self20 run20 lower bound",
            "a G 1x total0 self0 left1 censored",
            "a H 1x total10 self10 run10",
            "a (unknown) 0x total10 self10 run10",
        ],
    );
}

#[test]
fn events_that_are_lost_end_the_calls_of_all_fibers() {
    check(
        "0 0 .>a S
         5 fiber a 1
         10 in a F 50
         20 fiber a 2
         21 in a G 60
         30 lose ring 5 a
         40 out a F 50
         50 exit a",
        &[
            "a F 1x total10 self10 run10 open1 before1 censored",
            "a G 1x total9 self9 run9 open1 censored",
        ],
    );
}
