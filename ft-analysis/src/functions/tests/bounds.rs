//! Calls whose begin or end is missing, records that are lost, and bounds.

use super::*;
use crate::timeline::{EXTREMES, every_payload};
use crate::{Context, Run};
use ft_trace::ids::Nanos;

#[test]
fn ends_without_a_begin_and_begins_without_an_end_are_told() {
    for end in ["", "70 exit a", "70 exec a"] {
        let at = if end.is_empty() { "70 0 a>X S" } else { end };
        check(
            &format!(
                "0 0 .>a S
                 20 out a F 80
                 30 in a F 80
                 40 in a G 70
                 50 out a G 70
                 {at}"
            ),
            &["a F 1x total40 self30 run30 open1 before1 censored", "a G 1x total10 self10 run10"],
        );
    }
}

#[test]
fn a_loss_of_own_events_ends_what_is_known() {
    check(
        "0 0 .>a S
         10 in a F 80
         20 in a G 70
         30 lose ring 10 a
         50 out a F 80
         60 in a F 80
         70 out a F 80",
        &[
            "a F 2x total30 self20 run20 open1 before1 censored",
            "a G 1x total10 self10 run10 open1 censored",
        ],
    );
}

#[test]
fn a_loss_of_the_kernels_records_marks_what_it_touches() {
    check(
        "0 0 .>a S
         10 in a F 80
         30 lose sched 10
         50 0 a>X R
         60 0 X>a R
         80 out a F 80",
        &["a F 1x total70 self70 run40 pre10 ?20 lower bound"],
    );
}

#[test]
fn what_the_kernel_hid_before_a_functions_first_call_does_not_touch_it() {
    // A switch to a is missing: it left at 40, where another thread had come.
    let hidden = "30 0 a>X R
         40 0 a>X R
         50 0 X>a R";
    for missing in [hidden, "30 lose sched 10\n 45 0 a>X R\n 50 0 X>a R"] {
        let (rows, _) = run(
            true,
            &format!(
                "0 0 .>a S
                 10 in a F 80
                 20 in a G 70
                 25 out a G 70
                 {missing}
                 60 in a H 70
                 70 out a H 70
                 80 out a F 80"
            ),
        );
        let marks: Vec<_> = rows.functions.iter().map(|r| (r.address, r.mark.word())).collect();
        let expected = [(b'F', "lower bound"), (b'G', "lower bound"), (b'H', "exact")];
        let expected = expected.map(|(name, mark)| (Some(i64::from(name)), mark));
        assert_eq!(marks, expected, "{missing}");
    }
}

#[test]
fn calls_may_be_among_events_that_were_lost_before_the_first_known_one() {
    check(
        "0 0 .>a S
         10 in a F 80
         20 out a F 80
         30 lose ring 10 a
         50 in a G 80
         60 out a G 80",
        &["a F 1x total10 self10 run10 lower bound", "a G 1x total10 self10 run10 lower bound"],
    );
}

#[test]
fn a_wait_for_room_in_the_ring_marks_the_function() {
    check(
        "0 0 .>a S
         10 in a F 80
         20 full a 30
         40 out a F 80",
        &["a F 1x total30 self30 run30 disturbed"],
    );
}

#[test]
fn a_stack_that_changes_its_place_is_counted() {
    // A fiber above: F is taken for left, its end has no begin.
    let (rows, tally) =
        run(true, "0 0 .>a S\n 10 in a F 80\n 20 in a G 900\n 30 out a G 900\n 40 out a F 80");
    assert_eq!(
        rows.functions.iter().map(text).collect::<Vec<_>>(),
        [
            "a F 1x total0 self0 left1 before1 censored",
            "a G 1x total10 self10 run10",
            "a (unknown) 0x total10 self10 run10",
        ]
    );
    let expected = FunctionCounts { calls: 2, left: 1, begun_before: 1, ..Default::default() };
    assert_eq!(tally.functions, expected);
}

#[test]
fn without_a_kernel_there_are_lengths_alone() {
    let (rows, _) = run(false, "10 in a F 80\n 30 out a F 80");
    let found = rows.functions.iter().map(|r| (r.total_ns, r.self_ns, r.self_running_ns));
    assert_eq!(found.collect::<Vec<_>>(), [(20, 20, None)]);
}

#[test]
fn calls_and_functions_are_bounded_and_say_so() {
    let deep = MAX_CALLS + 10;
    let mut text: String = "0 0 .>a S\n".into();
    (0..deep).for_each(|i| text += &format!("{} in a F {}\n", 1 + i, 1_000_000 - i));
    text += &format!("{} in a G 5\n", deep + 1);
    let (rows, tally) = run(true, &text);
    assert_eq!(tally.functions.too_many, 11);
    let all = tally.functions.calls;
    assert_eq!((all, tally.functions.unfinished), (deep as u64 + 1, MAX_CALLS as u64));
    let total = rows.functions.iter().map(|r| r.self_ns).sum::<i64>();
    assert_eq!((total, rows.functions[0].total_ns), (deep as i64, deep as i64));

    let mut machine = Run::<Functions>::of(Context::new(
        false,
        10,
        &timeline::threads(),
        &timeline::sites(),
        &[],
    ));
    let in_and_out = timeline::events("10 in a F 80\n 10 out a F 80").collect::<Vec<_>>();
    for i in 0..MAX_FUNCTIONS as i64 + 5 {
        for event in &in_and_out {
            let ft_trace::event::Event::User(mut event) = event.clone() else { unreachable!() };
            (event.ts, event.arg[0]) = (Nanos(10 + i), i);
            machine.push(&ft_trace::event::Event::User(event));
        }
    }
    let (rows, _) = machine.finish();
    assert_eq!(rows.functions.len(), MAX_FUNCTIONS + 1);
    let others = rows.functions.last().unwrap();
    assert_eq!((&*others.function, others.calls), ("(others)", 5));
}

#[test]
fn no_payload_breaks_it() {
    for first in [0, 1 << 40, i64::MAX - 1_000_000_000] {
        let sites = timeline::sites();
        let mut run =
            Run::<Functions>::of(Context::new(true, 10, &timeline::threads(), &sites, &[]));
        every_payload(first, 1).for_each(|event| run.push(&event));
        let (rows, tally) = run.finish();
        assert!(tally.functions.calls >= EXTREMES.len().pow(3) as u64);
        assert!(rows.functions.iter().all(|r| 0 <= r.self_ns && r.self_ns <= r.total_ns));
    }
}
