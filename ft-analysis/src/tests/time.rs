//! Where all the time of a thread went: timelines in, rows of `thread_time` out.

use super::run;
use ft_trace::tables::ThreadTime;

/// The rows of one thread in words.
fn of_thread(rows: &[ThreadTime], name: char) -> Vec<String> {
    let mine = rows.iter().filter(|r| r.tid.0 == name as i32);
    let text = |r: &ThreadTime| {
        let culprit = r.culprit.as_ref().map_or(String::new(), |c| format!(" {c}"));
        format!("{}{culprit} {}", r.part, r.spent_ns)
    };
    mine.map(text).collect()
}

/// Runs the timeline; every balance must hold, and thread `a` have these rows, this wall time and mark.
fn check(timeline: &str, expected: &[&str], wall_ns: i64, mark: &str) {
    let (rows, _) = run(true, timeline);
    balanced(&rows.thread_time);
    assert_eq!(of_thread(&rows.thread_time, 'a'), expected, "{timeline}");
    let row = rows.thread_time.iter().find(|r| r.tid.0 == 'a' as i32).expect("a row");
    assert_eq!((row.wall_ns, row.mark.word()), (wall_ns, mark), "{timeline}");
}

/// The rows of each thread sum to its wall time.
pub(super) fn balanced(rows: &[ThreadTime]) {
    for row in rows {
        let same = |r: &&ThreadTime| (r.tid, r.ts, r.wall_ns) == (row.tid, row.ts, row.wall_ns);
        let sum: i64 = rows.iter().filter(same).map(|r| r.spent_ns).sum();
        assert_eq!(sum, row.wall_ns, "{row:?}");
        assert!(row.spent_ns > 0 && row.stretches > 0, "{row:?}");
    }
}

#[test]
fn preemption_and_dispatch_are_told_apart() {
    // a ==|XXX|YY|==|bbbb|ZZZ|=| exit
    check(
        "0 0 .>Z R
         5 new Z a 0
         8 0 Z>a R
         10 0 a>X R+
         40 0 X>Y S
         60 0 Y>a S
         80 0 a>Z S
         120 wake X a 0
         150 0 Z>a R
         160 0 a>X X",
        &["running 32", "preempted X 30", "preempted Y 20", "dispatch Z 33", "blocked asleep 40"],
        155,
        "exact",
    );
}

#[test]
fn a_thread_that_comes_without_having_been_woken_may_have_waited_for_the_cpu() {
    // a ==|bbbb or dddd|= exit
    check(
        "0 0 .>Z R
         5 new Z a 0
         8 0 Z>a R
         10 0 a>Z S
         50 0 Z>a R
         60 0 a>Z X",
        &["running 12", "dispatch Z 3", "blocked asleep 40"],
        55,
        "lower bound",
    );
}

#[test]
fn waits_for_what_nobody_holds_have_their_names() {
    // a =|bbb|==|bbbbb|=| exit: at a barrier, then for a value of a channel; neither is a wait for a lock.
    let timeline = "0 0 .>Z R
         0 new Z a 0
         1 0 Z>a R
         5 barrier a B
         10 0 a>Z S
         40 wake Z a 0
         40 0 Z>a R
         45 passed a B
         50 receive a C
         60 0 a>Z S
         110 wake Z a 0
         110 0 Z>a R
         115 passed a C
         120 0 a>Z X";
    check(
        timeline,
        &["running 39", "dispatch Z 1", "blocked receive from 0x43 50", "blocked barrier 0x42 30"],
        120,
        "exact",
    );
    let (rows, tally) = run(true, timeline);
    assert_eq!((rows.lock_waits.len(), tally.incomplete), (0, Default::default()));
}

#[test]
fn interrupts_have_their_names() {
    check(
        "0 0 .>a S
         10 irq a soft 40
         20 irq a hard 10
         60 irq a vector 5
         100 0 a>X Z",
        &["running 55", "hardirq hard-name 10", "softirq soft-name 30", "vector vector-name 5"],
        100,
        "censored",
    );
}

#[test]
fn a_blocked_thread_says_what_it_waits_for() {
    check(
        "0 0 .>a S
         10 call a read 90
         20 0 a>. S
         50 wake X a 0
         50 0 .>a S
         60 contend a mutex 21
         60 0 a>. D
         80 wake X a 0
         80 0 .>a S
         110 fault a
         110 0 a>. D
         130 wake X a 0
         130 0 .>a S
         140 wait a L
         140 0 a>. S
         180 wake X a 0
         180 0 .>a S
         190 acquire a L
         190 0 a>. S
         195 wake X a 0
         195 0 .>a S
         200 0 a>. X",
        &[
            "running 85",
            "blocked lock 0x4c 40",
            "blocked system call read 30",
            "blocked kernel lock mutex 20",
            "blocked page fault 20",
            "blocked asleep 5",
        ],
        200,
        "censored",
    );
}

#[test]
fn what_the_kernel_said_last_holds_until_the_trace_ends() {
    check(
        "0 0 .>a S\n 10 0 a>X S\n 500 0 X>. S",
        &["running 10", "blocked asleep 490"],
        500,
        "censored",
    );
    check(
        "0 0 .>a S\n 10 0 a>X R\n 500 0 X>Y S\n 600 0 Y>X S",
        &["running 10", "preempted X 490", "preempted Y 100"],
        600,
        "censored",
    );
}

#[test]
fn lost_records_make_lower_bounds() {
    check(
        "0 0 .>a S
         10 0 a>X R
         30 lose sched 20
         70 0 X>Y S
         80 0 Y>a S
         90 0 a>X X",
        &["running 20", "preempted X 20", "unexplained no record 50"],
        90,
        "lower bound",
    );
}

#[test]
fn who_leaves_a_cpu_that_nobody_had_came_unseen() {
    // b has left cpu 0 unseen, for it comes to cpu 1; and a, which waits there, leaves it.
    check(
        "0 0 .>a S
         2 0 a>b S
         5 wake b a 0
         20 1 .>b S
         40 0 a>. X",
        &["running 2", "dispatch not known 35", "blocked asleep 3"],
        40,
        "lower bound",
    );
}

#[test]
fn a_sleep_of_which_nothing_is_told_is_not_the_one_before() {
    // The switch that ends its first sleep, and what is told of the second, are missing.
    check(
        "0 0 .>a S
         10 asleep a read 3
         10 0 a>X S
         20 wake X a 0
         40 0 a>X S
         70 wake X a 0
         75 0 X>a S
         80 0 a>. X",
        &[
            "running 15",
            "dispatch not known 20",
            "dispatch X 5",
            "blocked asleep 30",
            "blocked system call read 10",
        ],
        80,
        "lower bound",
    );
}

#[test]
fn lost_interrupts_hide_nothing_of_a_thread_that_sleeps() {
    check(
        "0 0 .>a S\n 10 0 a>. S\n 20 lose irq 30\n 60 wake X a 0\n 60 0 .>a S\n 90 0 a>. X",
        &["running 40", "blocked asleep 50"],
        90,
        "lower bound",
    );
}

#[test]
fn in_its_gaps_a_polling_thread_did_not_run() {
    check(
        "0 0 .>a S
         10 poll a 0
         100 irq a vector 30
         200 gap a 0 95 150
         300 gap a 0 250 290
         400 0 a>. X",
        &["running 305", "vector vector-name 30", "unexplained in gaps 65"],
        400,
        "censored",
    );
}

#[test]
fn without_a_kernel_stream_nothing_is_said() {
    let (rows, _) = run(false, "0 acquire a L\n 10 release a L");
    assert!(rows.thread_time.is_empty());
}
