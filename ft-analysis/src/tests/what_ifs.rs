//! Holds whose waits could have been shorter, by how much being known.

mod chains;

use super::run;
use crate::Mark;
use ft_trace::tables::WhatIf;

/// `a L 20+60 x2 ran 30 nothing: 2 waited 70, 40 run on, 50 prio, 55 own`, `?` where nobody is let in; behind `!` those of
/// real time, what they waited, and what they can be spared; `~` when not exact.
fn told(r: &WhatIf) -> String {
    let figures = [r.waited_ns, r.run_on_ns, r.prioritized_ns, r.own_cpu_ns, r.inherited_ns];
    let waits = match (r.waiters, figures) {
        (Some(waiters), [Some(waited), Some(run_on), Some(prio), Some(own), Some(_)]) => {
            format!("{waiters} waited {waited}, {run_on} run on, {prio} prio, {own} own")
        }
        (None, [None, None, None, None, None]) => "?".to_owned(),
        found => panic!("{found:?}"),
    };
    let urgent = match (r.urgent, r.urgent_ns, r.inherited_ns) {
        (Some(0) | None, ..) => String::new(),
        (Some(n), Some(ns), Some(spared)) => format!(" !{n} {ns} {spared}"),
        found => panic!("{found:?}"),
    };
    format!(
        "{} {} {}+{} x{} ran {} {}: {waits}{urgent}{}",
        r.tid.0 as u8 as char,
        r.lock as u8 as char,
        r.ts,
        r.dur,
        r.times,
        r.parts.expect("parts").running_ns,
        r.bar,
        if r.mark == Mark::Exact { "" } else { " ~" }
    )
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    let found: Vec<_> = rows.what_ifs.iter().map(told).collect();
    assert_eq!(found, expected, "{timeline}");
}

#[test]
fn what_would_have_been_waited_all_the_same_is_not_spared() {
    // cpu 0: a [==|XXXXXXXX|=i=], off the CPU from 20 to 50. It runs 12 more, beside 3 of an interrupt, and releases at 65.
    // Had it run on, it had ended at 32: b, there since 15, is spared 33, and c, which comes at 40, all of its 25. With a
    // CPU of its own it had ended at 35.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 acquire a L
         15 wait b L
         20 0 a>X R
         40 wait c L
         50 0 X>a S
         55 irq a soft 3
         65 release a L
         66 acquire b L",
        &["a L 20+45 x1 ran 12 nothing: 2 waited 70, 58 run on, 55 prio, 55 own"],
    );
}

#[test]
fn what_is_left_of_a_hold_ends_behind_its_last_preemption() {
    // It runs 10 between, and 5 at the end.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         20 0 a>X R
         25 wait b L
         40 0 X>a S
         50 0 a>Y R
         80 0 Y>a S
         85 release a L",
        &["a L 20+65 x2 ran 15 nothing: 1 waited 60, 50 run on, 50 prio, 50 own"],
    );
}

#[test]
fn a_grant_ends_with_a_sleep_a_call_and_in_the_kernel() {
    // Something that concerns nobody.
    const QUIET: &str = "31 wake X X 0";
    let bar = |leaves: &str, then: &str| {
        let text = format!(
            "0 0 .>a S
             0 call a read 1
             10 acquire a L
             {leaves}
             30 0 X>a S
             {then}
             60 release a L"
        );
        let (rows, _) = run(true, text.trim());
        assert_eq!(rows.what_ifs.len(), 1, "{text}");
        rows.what_ifs[0].bar.to_string()
    };
    assert_eq!(bar("20 0 a>X R", QUIET), "nothing");
    assert_eq!(bar("12 call a getpid 2\n 20 0 a>X R", QUIET), "nothing", "it was over");
    assert_eq!(bar("20 0 a>X R", "40 call a getpid 2"), "call");
    assert_eq!(bar("15 call a getpid 20\n 20 0 a>X R", QUIET), "kernel");
    assert_eq!(bar("15 fault a 20 minor\n 20 0 a>X R", QUIET), "kernel");
    assert_eq!(bar("20 0 a>X R+", QUIET), "kernel", "its own code was preempted");
    assert_eq!(bar("20 0 a>X R", "40 0 a>X S\n 45 wake X a 0\n 50 0 X>a S"), "sleep");
    assert_eq!(bar("20 0 a>X S\n 25 wake X a 0", QUIET), "sleep", "before it");
}

#[test]
fn who_is_woken_and_kept_waiting_counts_from_its_wake_up_on() {
    // Asleep from 20 to 40, then behind X until 55: no grant, but a CPU of its own would have let it end at 45.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 0 a>X S
         40 wake X a 0
         55 0 X>a S
         60 release a L",
        &["a L 40+20 x1 ran 5 sleep: 1 waited 20, 15 run on, 15 prio, 15 own"],
    );
}

#[test]
fn a_priority_helps_against_ordinary_threads_alone() {
    // X has a real-time priority, Y an ordinary one, and from 50 to 60 the CPU is idle.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 0 a>X@49 R
         30 0 X@49>Y R
         50 0 Y>. S
         60 0 .>a S
         65 release a L",
        &["a L 20+45 x1 ran 5 nothing: 1 waited 45, 40 run on, 20 prio, 40 own"],
    );
}

#[test]
fn only_waiters_of_higher_real_time_priority_hand_theirs_on() {
    // Of the 40 that a has no CPU, Z (9, first of all) has 10, Y (80) 20, and X, which is ordinary, 10.
    let timeline = |b: &str| {
        format!(
            "0 0 .>a S
             0 1 .>{b} S
             0 2 .>c S
             10 acquire a L
             20 0 a>Z@9 R
             30 0 Z@9>Y@80 R
             35 wait b L
             36 wait c L
             50 0 Y@80>X R
             60 0 X>a S
             65 release a L"
        )
    };
    let plain = "a L 20+45 x1 ran 5 nothing: 2 waited 59, 59 run on, 20 prio, 59 own";
    check(&timeline("b"), &[plain]);
    // Before both Y and X: but it was there for 25 of their 30 alone.
    check(&timeline("b@49"), &[&format!("{plain} !1 30 25")]);
    check(&timeline("b@99"), &[&format!("{plain} !1 30 10")]);
    check(&timeline("b@9"), &[&format!("{plain} !1 30 25")]);
}

#[test]
fn a_holder_of_the_same_priority_inherits_nothing() {
    let (rows, _) = run(
        true,
        "0 0 .>a@49 S
         0 1 .>b@49 S
         10 acquire a L
         15 wait b L
         20 0 a@49>X R
         30 0 X>a@49 S
         40 release a L",
    );
    assert_eq!((rows.what_ifs[0].prio, rows.what_ifs[0].urgent), (Some(49), Some(0)));
}

#[test]
fn a_reader_that_goes_may_let_nobody_in() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 read a L
         15 wait b L
         20 0 a>X R
         30 0 X>a S
         40 release a L",
        &["a L 20+20 x1 ran 10 nothing: ?"],
    );
}

#[test]
fn who_gave_up_and_what_is_not_released_count_for_nothing() {
    let text = "0 0 .>a S
         0 1 .>b S
         5 acquire a K
         10 acquire a L
         15 wait b L
         20 0 a>X R
         30 0 X>a S
         35 abandon b L
         40 release a L";
    let (rows, tally) = run(true, text);
    let found: Vec<_> = rows.what_ifs.iter().map(told).collect();
    let expected = "a L 20+20 x1 ran 10 nothing: 0 waited 0, 0 run on, 0 prio, 0 own";
    assert_eq!((found, tally.unreleased_held_up), (vec![expected.to_owned()], 1));
}

#[test]
fn what_a_loss_hides_is_no_upper_bound() {
    let timeline = |loss: &str| {
        format!(
            "0 0 .>a S
             0 1 .>b S
             10 acquire a L
             15 wait b L
             20 0 a>X R
             30 0 X>a S
             35 {loss}
             40 release a L"
        )
    };
    let exact = "a L 20+20 x1 ran 10 nothing: 1 waited 20, 10 run on, 10 prio, 10 own";
    check(&timeline("call b getpid 1"), &[exact]);
    check(&timeline("lose calls 2"), &[&format!("{exact} ~")]);
}
