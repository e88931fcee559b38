//! Counts of holds, scopes and polls.

use super::*;
use ft_trace::tables::Counts;

#[test]
fn what_happens_to_a_thread_is_counted_in_each_interval_around_it() {
    // Of a fault before the first interval all that is told is that they are recorded.
    let (rows, _) = run(
        true,
        "0 0 .>a S
         5 fault b 1
         10 open a
         11 fault a 2 minor
         20 acquire a L
         21 fault a 2 major
         30 0 a>X S
         40 wake X a 0
         42 0 X>a S
         50 run a 7
         60 0 a>X R
         70 1 .>a S
         80 1 a>. S
         81 wake X a 1
         82 1 .>a S
         85 ran a 7 1
         86 fault a
         90 release a L
         99 close a",
    );
    let counts = |sleeps, switches, moves, faults| {
        Some(Counts { sleeps, switches, moves, faults: Some(faults) })
    };
    assert_eq!(rows.scopes[0].counts, counts(2, 1, 1, [3, 1]));
    assert_eq!(rows.critical_sections[0].counts, counts(2, 1, 1, [2, 1]));
    assert_eq!(rows.async_switches[0].counts, counts(1, 1, 1, [0, 0]));
}

#[test]
fn page_faults_are_known_where_some_were_recorded_and_none_was_lost() {
    let faults = |timeline: &str| {
        let (rows, _) = run(true, timeline);
        let scopes = rows.scopes.iter();
        scopes.map(|scope| scope.counts.expect("a kernel stream").faults).collect::<Vec<_>>()
    };
    let found = faults(
        "0 0 .>a S
         10 open a
         20 close a
         30 open a
         40 fault a 1
         50 close a
         60 open a
         62 lose calls 5
         70 close a
         80 open a
         90 close a",
    );
    assert_eq!(found, [None, Some([1, 0]), None, Some([0, 0])]);
    let (rows, _) = run(false, "10 open a\n 20 close a");
    assert_eq!(rows.scopes[0].counts, None);
}
