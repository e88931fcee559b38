//! Tasks and polls whose end is missing, records that are lost, and bounds.

use super::*;
use crate::timeline::{EXTREMES, every_payload};
use crate::{Context, Run};

#[test]
fn what_goes_on_at_the_end_of_its_process_or_of_the_trace_is_censored() {
    // Process 1 executes another program, which numbers its tasks anew; b has never had a task.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7
         12 run a 7
         14 0 a>X S
         30 exec a
         40 make' a 7
         42 run' a 7
         44 call a read 100
         45 0 a>X S
         60 exit b",
        &[
            "7 10+20 unended new2 poll18 (run2 blk16) polls1<=18 wakes0<=0 censored",
            "7 40+20 unended new2 poll18 (run3 blk15) polls1<=18 wakes0<=0 censored",
        ],
        &[
            "a 7 12+18 unended run2 blk16 for asleep 16 censored",
            "a 7 42+18 unended run3 blk15 for system call read 15 censored",
        ],
        Unpaired::default(),
    );
}

#[test]
fn tasks_end_with_the_memory_of_their_process_whoever_replaces_that() {
    // b has never recorded an event of a task.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7
         12 run a 7
         20 ran a 7 0
         25 acquire b L
         30 exec b
         40 acquire b L",
        &["7 10+20 unended new2 wait10 poll8 (run8) polls1<=8 wakes0<=0 censored"],
        &["a 7 12+8 pending run8"],
        Unpaired::default(),
    );
}

#[test]
fn a_loss_of_own_events_forgets_the_poll_and_what_the_task_does() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7
         12 run a 7
         20 lose ring 5 a
         30 rouse b 7
         34 run a 7
         40 ran a 7 0
         50 ran a 8 0
         60 run a 8
         61 ran a 8 1
         62 cancel a 7",
        &[
            "8 60+1 ready poll1 (run1) polls1<=1 wakes0<=0 lower bound",
            "7 10+52 dropped new2 queue4 wait22 poll6 ?18 (run6) polls1<=6 wakes1<=4 lower bound",
        ],
        &["a 7 34+6 pending run6 queue4 by b lower bound", "a 8 60+1 ready run1"],
        Unpaired { end_only: 1, open_at_loss: 1, ..Unpaired::default() },
    );
}

#[test]
fn who_is_polled_by_two_threads_has_lost_the_end_of_the_first_poll() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 make a 7
         10 run a 7
         20 run b 7
         26 ran b 7 0
         30 ran a 7 0
         32 ran a 7 0
         40 cancel a 7",
        &["7 10+30 dropped wait8 poll6 ?16 (run6) polls1<=6 wakes0<=0 lower bound"],
        &["b 7 20+6 pending run6"],
        Unpaired { begin_only: 1, end_only: 1, ..Unpaired::default() },
    );
}

#[test]
fn lost_records_of_the_kernel_mark_what_they_touch() {
    check(
        "0 0 .>a S
         10 make a 7
         12 run a 7
         14 lose sched 4
         20 ran a 7 0
         30 run a 7
         31 0 a>X R
         32 0 X>a S
         33 ran a 7 1",
        &["7 10+23 ready new2 wait10 poll11 (run4 pre1 ?6) polls2<=8 wakes0<=0 lower bound"],
        &["a 7 12+8 pending run2 ?6 lower bound", "a 7 30+3 ready run2 pre1 to X1"],
        Unpaired::default(),
    );
}

#[test]
fn a_number_that_is_made_a_task_again_is_another_one() {
    check(
        "0 0 .>a S
         10 make a 7
         20 make a 7
         30 cancel a 7",
        &[
            "7 10+10 unended new10 () polls0<=0 wakes0<=0 censored",
            "7 20+10 dropped new10 () polls0<=0 wakes0<=0",
        ],
        &[],
        Unpaired::default(),
    );
}

#[test]
fn without_a_kernel_there_are_states_alone() {
    let (rows, _) = run(false, "10 make a 7\n 12 run a 7\n 20 rouse a 7\n 30 ran a 7 1");
    let [poll] = &rows.async_switches[..] else { panic!("one poll") };
    assert_eq!((poll.dur, poll.parts, poll.queued_dispatch_ns), (18, None, None));
    let [task] = &rows.async_tasks[..] else { panic!("one task") };
    assert_eq!((task.unstarted_ns, task.polled_ns, task.parts), (2, 18, None));
}

#[test]
fn polls_within_each_other_are_bounded_and_counted() {
    let many: String = (0..300).map(|i| format!("{} run a {i}\n", 10 + i)).collect();
    let (rows, tally) = run(true, &format!("0 0 .>a S\n{many}400 ran a 299 0"));
    let found: Vec<_> = rows.async_switches.iter().map(|r| (r.task, r.depth)).collect();
    assert_eq!((found[0], found.len()), ((299, 255), 256));
    assert_eq!(tally.tasks.unpaired, Unpaired { too_many: 44, ..Unpaired::default() });
    let lost = rows.async_tasks.iter().filter(|r| r.unknown_ns == r.dur && r.polls == 0);
    assert_eq!(lost.count(), 44);
    sum(&rows);
}

#[test]
fn tasks_of_a_process_are_bounded_and_counted() {
    let n = MAX_TASKS as i64 + 10;
    let many: String = (0..n).map(|i| format!("{} make a {i}\n", 10 + i)).collect();
    let (rows, tally) = run(true, &format!("0 0 .>a S\n{many}"));
    assert_eq!((rows.async_tasks.len(), rows.async_tasks[0].task), (MAX_TASKS, 10));
    assert_eq!((tally.tasks.tasks, tally.tasks.too_many), (MAX_TASKS as u64, 10));
}

#[test]
fn of_what_a_thread_polled_before_the_newest_is_kept() {
    let many: String =
        (0..300).map(|i| format!("{0} run a 8\n{1} ran a 8 0\n", 20 + 2 * i, 21 + 2 * i)).collect();
    let timeline =
        format!("0 0 .>a S\n0 1 .>b S\n9 make a 7\n10 rouse b 7\n{many}900 run a 7\n901 ran a 7 1");
    let (rows, _) = run(true, &timeline);
    let last = rows.async_switches.last().expect("a poll");
    assert_eq!(
        (last.queued_ns, last.behind_ns, last.behind_polls),
        (Some(890), Some(256), Some(256))
    );
}

#[test]
fn no_payload_breaks_it() {
    for first in [0, 1 << 40, i64::MAX - 1_000_000_000] {
        let sites = timeline::sites();
        let mut run = Run::<Tasks>::of(Context::new(true, 10, &timeline::threads(), &sites, &[]));
        every_payload(first, 1).for_each(|event| run.push(&event));
        let (rows, tally) = run.finish();
        assert!(rows.async_tasks.len() >= EXTREMES.len(), "its payload says nothing of a task");
        assert_eq!(tally.tasks.polls, rows.async_switches.len() as u64);
        sum(&rows);
    }
}
