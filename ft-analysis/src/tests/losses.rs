//! What is said, and what is not, where records are missing.

use super::{check, run};
use crate::Mark;
use crate::timeline::run_by_agent;
use ft_trace::tables::Doubt;

#[test]
fn scheduler_records_are_lost_during_a_hold() {
    // a [==|.lost.|???|X|==]
    check(
        "0 0 .>a S
         10 acquire a L
         20 lose sched 20
         50 0 X>Y S
         60 0 Y>a S
         70 release a L
         80 acquire a M
         90 release a M",
        &["L0 10+60 run20 ?40 lower bound", "M0 80+10 run10"],
    );
}

#[test]
fn an_own_event_ends_the_doubt_after_a_loss() {
    check(
        "0 0 .>a S
         10 lose sched 5
         30 acquire a L
         50 release a L",
        &["L0 30+20 run20"],
    );
}

#[test]
fn who_came_to_a_cpu_during_a_loss_may_have_left_it_and_come_again() {
    // cpu 0: .|X|.lost..X..|??a??|a==]     the switch to X is recorded, and others behind it may be lost
    check(
        "0 0 .>a S
         5 0 a>X S
         10 lose sched 20
         20 0 Y>X S
         40 wake Z a 0
         50 0 X>a S
         60 0 a>X S
         70 wake Z a 0
         80 0 X>a S",
        &["a 40+10 cpu0 woken by 90 lower bound", "a 70+10 cpu0 woken by 90 behind X10"],
    );
}

#[test]
fn interrupt_records_are_lost_during_a_hold() {
    check(
        "0 0 .>a S
         10 acquire a L
         20 lose irq 5
         40 release a L",
        &["L0 10+30 run25 ?5 lower bound"],
    );
}

#[test]
fn a_switch_to_the_holder_was_not_recorded() {
    // cpu 0: a [===|XX??a??|YY|==]     the switch from X to a is missing
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X R
         40 0 a>Y R
         50 0 Y>a S
         60 release a L
         70 acquire a M
         80 release a M",
        &["L0 10+50 run20 pre30 by Y10 lower bound", "M0 70+10 run10"],
    );
    assert_eq!(tally.unseen_switches, 1);
}

/// Each way in which records are found missing: since when, until when, of whom.
#[test]
fn what_is_missing_is_told_with_its_place() {
    let doubts = |timeline: &str| -> Vec<String> {
        let say = |d: &Doubt| {
            let (cpu, tid) = (d.cpu, d.tid.map(|t| t as u8 as char));
            format!("{} {} {}+{} {cpu:?} {tid:?} {}", d.why, d.missing, d.ts, d.dur, d.what)
        };
        run(true, timeline).0.doubts.iter().map(say).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(doubts("0 0 .>a S\n 20 0 a>X R\n 40 0 X>a S"), none);
    let unseen = doubts("0 0 .>a S\n 20 0 a>X R\n 40 0 a>Y S");
    assert_eq!(unseen, ["switch switches 20+20 Some(0) Some('X') X"]);
    let ran = doubts("0 0 .>a S\n 20 0 a>X R\n 100 acquire a M");
    assert_eq!(ran, ["ran switches 20+80 None Some('a') a"]);
    let left = "0 0 .>a S\n 2 0 a>b S\n 5 wake b a 0\n 20 1 .>b S\n 40 0 a>. X";
    let unseen = ["switch switches 2+18 Some(0) Some('b') b", "ran switches 2+38 None Some('a') a"];
    assert_eq!(doubts(left), unseen);
    let elsewhere = doubts("0 0 .>a S\n 10 1 a>. S");
    assert_eq!(elsewhere, ["ran switches 0+10 None Some('a') a"]);
    let unwoken = doubts("0 0 .>a S\n 20 0 a>X S\n 60 0 X>a S");
    assert_eq!(unwoken, ["wakeup switches 20+40 None Some('a') a"]);
    let moved = doubts("0 0 a>X S\n 10 wake X a 0\n 35 1 Y>a S");
    assert_eq!(moved, ["wakeup switches 0+35 None Some('a') a"]);
    let lost = doubts("0 0 .>a S\n 10 lose sched 5\n 20 lose irq 5\n 30 lose ring 5 a");
    assert_eq!(
        lost,
        [
            "loss switches 10+5 None None sched_switch",
            "loss interrupts 20+5 None None softirq_exit",
            "loss events 30+5 None Some('a') full",
        ]
    );
}

#[test]
fn a_switch_away_from_the_holder_was_not_recorded() {
    // cpu 0: a [===|??X|YY|==]     the switch from a to X is missing
    check(
        "0 0 .>a S
         10 acquire a L
         20 0 X>Y S
         30 0 Y>a S
         40 release a L",
        &["L0 10+30 run20 ?10 lower bound"],
    );
    // It went to another CPU in the meantime: what is known of it there holds.
    check(
        "0 0 .>a S
         5 1 X>a S
         10 acquire a L
         20 0 X>Y S
         40 release a L",
        &["L0 10+30 run30"],
    );
}

#[test]
fn an_own_event_shows_that_a_thread_runs_unseen() {
    // a [===|XX??a??|      its own lock M is taken and released while the kernel says it waits
    let tally = check(
        "0 0 .>a S
         10 acquire a L
         20 0 a>X R
         25 acquire a K
         100 acquire a M
         120 release a M
         130 release a L",
        &["M2 100+20 run20 lower bound", "L0 10+120 run40 pre80 lower bound"],
    );
    assert_eq!(tally.ran_unseen, 1, "at 25, the clocks may differ; at 100, they cannot");
}

#[test]
fn a_gap_that_ended_unseen_has_who_was_seen_in_it() {
    // X has the CPU; of the switch back to a, only its own event tells.
    let trace = "0 0 .>a S\n 10 poll a 0\n 20 0 a>X R\n 100 gap a 0 20 95";
    let (rows, _) = run_by_agent(trace);
    let [gap] = &rows.gaps[..] else { panic!("{:?}", rows.gaps) };
    let preempted = gap.parts.map(|parts| parts.preempted_ns);
    assert_eq!((preempted, gap.agent_ns), (Some(75), Some(75)), "{gap:?}");
    assert_eq!((gap.culprit.as_deref(), gap.mark), (Some("X"), Mark::LowerBound));
}

#[test]
fn who_comes_on_another_cpu_than_it_waited_for_was_moved_unseen() {
    check(
        "0 0 a>X S\n 10 wake X a 0\n 35 1 Y>a S\n 40 1 a>Y S\n 50 wake Y a 1\n 60 1 Y>a S",
        &[
            "a 10+25 cpu1 woken by 88 behind X25 migrated lower bound",
            "a 50+10 cpu1 woken by 89 behind Y10",
        ],
    );
}

#[test]
fn a_wake_up_that_ended_unseen_has_no_row() {
    let tally = check("0 0 a>X S\n 10 wake X a 0\n 50 0 a>Y S", &[]);
    assert_eq!((tally.unseen_switches, tally.races.never_dispatched), (1, 1));
}

#[test]
fn an_idle_thread_that_wakes_has_its_name_also_where_no_switch_to_it_was_recorded() {
    let (rows, _) = run(true, "0 0 a>X S\n 10 wake . a 0\n 20 0 X>a S");
    assert_eq!(&*rows.dispatch_latency[0].waker_comm, "swapper/7");
}

#[test]
fn events_of_one_thread_are_lost() {
    let tally = check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         11 acquire b M
         20 lose ring 5 a
         30 release a L
         31 release b M
         40 acquire a L
         50 release a L",
        &["M0 11+20 run20", "L>=0 40+10 run10"],
    );
    assert_eq!((tally.incomplete.held_at_loss, tally.incomplete.release_only), (1, 1));
    assert_eq!(tally.lost_user_events, 3);
}

#[test]
fn depth_is_a_lower_bound_from_a_loss_on() {
    // M is acquired in the loss and released long after it: L has depth 1, and nothing before 80 shows it.
    check(
        "0 0 .>a S
         10 acquire a K
         15 release a K
         20 lose ring 5 a
         40 acquire a L
         50 release a L
         60 acquire a L
         65 acquire a K
         70 release a K
         75 release a L
         80 release a M
         85 acquire a L
         90 release a L",
        &[
            "K0 10+5 run5",
            "L>=0 40+10 run10",
            "K>=1 65+5 run5",
            "L>=0 60+15 run15",
            "L>=0 85+5 run5",
        ],
    );
    let (rows, _) = run(
        true,
        "0 0 .>a S
         5 lose ring 5 a
         20 acquire a L
         22 wait a M
         24 acquire a M
         30 0 a>X R
         40 0 X>a S
         50 release a M",
    );
    let marks = [&rows.lock_waits[0].depth_mark, &rows.lock_preemptions[0].depth_mark];
    assert_eq!(marks.map(|mark| *mark), [Mark::LowerBound; 2]);
}

#[test]
fn what_a_thread_did_not_do_is_not_lost_to_it() {
    // a was lost before it was seen; b begins after the loss, and c never lost anything; an exec frees all locks.
    check(
        "0 lose ring 5 a
         10 0 .>a S
         11 1 .>c S
         12 acquire a L
         14 release a L
         15 acquire c M
         16 release c M
         20 exec a
         21 acquire a L
         22 release a L",
        &["L>=0 12+2 run2", "M0 15+1 run1", "L0 21+1 run1"],
    );
}

#[test]
fn a_wake_up_across_a_loss_is_censored() {
    check(
        "0 0 a>X S
         10 wake X a 0
         15 lose sched 5
         40 0 X>a S",
        &["a 10+30 cpu0 woken by 88 censored"],
    );
}

#[test]
fn a_loss_of_interrupts_does_not_touch_a_wake_up() {
    check(
        "0 0 a>X S\n 10 wake X a 0\n 15 lose irq 5\n 40 0 X>a S",
        &["a 10+30 cpu0 woken by 88 behind X30"],
    );
}

#[test]
fn an_occupant_is_not_blamed_for_what_a_missing_switch_hides() {
    // cpu 0: X (0..)  seen at 14  ?????  Y|a      c waits there, too, and is moved at 20
    let tally = check(
        "0 0 a>X S
         1 1 c>. S
         10 wake X a 0
         12 wake W c 0
         14 irq X soft 1
         20 move c 0 1
         25 1 .>c S
         30 0 Y>a S",
        &[
            "c 12+13 cpu1 woken by 87 behind X8 migrated",
            "a 10+20 cpu0 woken by 88 behind X4 lower bound",
        ],
    );
    assert_eq!((tally.unseen_switches, tally.doubtful_shares), (1, 1), "c was told too early");
}

#[test]
fn a_wait_that_began_after_the_doubtful_one_is_not_in_doubt() {
    // As above, but c has slept and is woken again when the missing switch is noticed at 30.
    check(
        "0 0 a>X S
         1 1 c>. S
         10 wake X a 0
         12 wake W c 0
         14 irq X soft 1
         20 move c 0 1
         25 1 .>c S
         26 1 c>Z S
         28 wake Z c 1
         30 0 Y>a S
         35 1 Z>c S",
        &[
            "c 12+13 cpu1 woken by 87 behind X8 migrated",
            "a 10+20 cpu0 woken by 88 behind X4 lower bound",
            "c 28+7 cpu1 woken by 90 behind Z7",
        ],
    );
}

#[test]
fn a_share_that_is_in_doubt_later_marks_what_goes_on() {
    // c holds L, is preempted, moves away from the CPU on which X is said to run, and that was not so.
    check(
        "0 0 .>c S
         5 acquire c L
         10 0 c>X R
         20 move c 0 1
         22 1 .>c S
         30 0 Y>. S
         40 release c L",
        &["L0 5+35 run23 pre12 by X10 lower bound"],
    );
}

#[test]
fn a_thread_that_is_seen_on_another_cpu_has_left_the_first_unseen() {
    let tally = check(
        "0 0 .>a S
         1 1 b>X S
         2 wake X b 0
         6 1 X>a S
         10 0 .>b S",
        &["b 2+8 cpu0 woken by 88 lower bound"],
    );
    assert_eq!((tally.unseen_switches, tally.ran_unseen), (1, 0));
}

#[test]
fn who_came_unseen_and_is_woken_on_its_way_to_sleep_waits_from_its_leaving_for_sure() {
    // cpu 0: X, then a, unseen
    let tally = check(
        "0 0 a>X S
         25 begin a 7
         28 wake W a 0
         30 0 a>Y S!
         50 0 Y>a S",
        &["a 30+20 cpu0 woken by 87 behind Y20"],
    );
    assert_eq!((tally.unseen_switches, tally.ran_unseen), (1, 1));
}

/// What a loss hid of a thread stays unknown until its next record, be the loss over or not.
#[test]
fn a_wait_for_one_of_whom_nothing_is_known_since_a_loss_is_in_doubt() {
    // a: [=|.lost.|???????????|==]
    // b:             [wait for a  ==]
    let (rows, _) = run(
        true,
        "0 0 .>a S
         0 1 .>b S
         5 acquire a L
         10 lose sched 10
         30 1 .>b S
         40 wait b L
         90 0 X>a S
         100 release a L
         102 acquire b L",
    );
    let wait = &rows.lock_waits[0];
    assert_eq!((wait.dur, wait.no_holder_ns), (62, 2));
    assert_eq!(wait.parts.map(|p| (p.unexplained_ns, p.running_ns)), Some((50, 10)));
    assert_eq!(wait.mark.word(), "lower bound");
}

#[test]
fn a_gap_of_which_nothing_is_known_since_a_loss_is_in_doubt() {
    let (rows, _) = run(
        true,
        "0 0 .>a S
         5 poll a 0
         10 lose sched 10
         90 0 X>a S
         100 gap a 0 40 100
         150 irq a soft 10
         200 gap a 0 140 190",
    );
    let marks: Vec<&str> = rows.gaps.iter().map(|gap| gap.mark.word()).collect();
    assert_eq!(marks, ["lower bound", "exact"]);
}
