//! Scopes that begin in tasks, which threads run by turns.

use super::*;

/// Two fibers let each other run within their scopes: neither's time is the other's, and neither is within the other.
#[test]
fn time_in_which_another_fiber_runs_is_parked() {
    check(
        "0 0 .>a S
         5 open a
         10 fiber a 1
         20 enter a
         30 fiber a 2
         31 enter a
         40 0 a>X R
         44 0 X>a S
         50 fiber a 1
         60 leave a
         70 fiber a 2
         75 leave a
         80 fiber a 0
         90 close a",
        &[
            "a inner1 20+40 run20 park20",
            "a inner1 31+44 run20 pre4 park20 by X4",
            "a outer0 5+85 run81 pre4 by X4",
        ],
        Unpaired::default(),
    );
}

/// The task of an executor, which another worker goes on with; `b` sleeps in it.
#[test]
fn a_task_takes_its_scopes_to_another_thread() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 run a 5
         12 open a
         20 ran a 5 0
         30 run a 6
         33 open a
         50 run b 5
         55 enter b
         60 1 b>X S
         70 wake X b 1
         71 1 X>b S
         75 leave b
         80 close b
         81 ran b 5 1
         85 close a
         90 ran a 6 1",
        &[
            "b inner1 55+20 run9 dis1 blk10",
            "b outer0 12+68 run27 dis1 blk10 park30",
            "a outer0 33+52 run52",
        ],
        Unpaired::default(),
    );
}

/// A task that is polled in another one's poll leaves that one its thread; and a task that is dropped ends what it began.
#[test]
fn inner_polls_are_the_outer_tasks_time_and_a_dropped_task_ends_its_scopes() {
    check(
        "0 0 .>a S
         10 run a 5
         12 open a
         20 run a 6
         22 enter a
         30 ran a 6 0
         35 ran a 5 0
         40 run a 5
         50 ran a 5 0
         60 cancel a 6
         61 leave a
         62 cancel a 5
         65 close a",
        &["a inner1 22+39 run8 park31", "a outer0 12+53 run33 park20"],
        Unpaired::default(),
    );
}

/// A record that is missing while no poll goes on leaves nothing of the task's own time in doubt; one of a poll does.
#[test]
fn a_doubt_is_that_of_the_polls_alone() {
    let exact = "a outer0 12+33 run13 park20";
    for (doubt_before, ended, doubt_between, doubt_in_the_last, expected) in [
        (false, 20, true, false, exact),
        // What is missing of the thread from before its poll is not of that, however late it ends.
        (true, 20, false, false, exact),
        (false, 37, true, false, "a outer0 12+33 run20 blk10 park3 lower bound"),
        (false, 20, false, true, "a outer0 12+33 run12 blk1 park20 lower bound"),
    ] {
        let doubt = |is: bool, at: [i64; 2]| match is {
            true => vec![(at[0], "0 a>X S".to_owned()), (at[1], "0 Y>a S".to_owned())],
            false => Vec::new(),
        };
        let mut lines = vec![(0, "0 .>a S".to_owned()), (10, "run a 5".into())];
        lines.extend([(12, "open a".into()), (ended, "ran a 5 0".into())]);
        lines.extend([(40, "run a 5".into()), (45, "close a".into()), (50, "ran a 5 1".into())]);
        lines.extend(doubt(doubt_before, [5, 9]));
        lines.extend(doubt(doubt_between, [25, 35]));
        lines.extend(doubt(doubt_in_the_last, [42, 43]));
        lines.sort_by_key(|line| line.0);
        let lines: Vec<_> = lines.iter().map(|(at, what)| format!("{at} {what}")).collect();
        check(&lines.join("\n"), &[expected], Unpaired::default());
    }
}

/// What is not known of a task is not told of its scopes.
#[test]
fn of_a_turn_without_an_end_nothing_is_explained() {
    // Another thread polls a task whose poll has no end; and a poll in a fiber goes on when that is back.
    check(
        "0 0 .>a S
         0 1 .>b S
         10 run a 5
         12 open a
         20 ran a 5 0
         30 run a 5
         40 run b 5
         50 ran b 5 0
         60 run a 5
         65 close a
         70 exit b
         75 fiber a 1
         80 run a 7
         82 open a
         90 fiber a 2
         95 fiber a 1
         97 close a",
        &["a outer0 12+53 ?53 lower bound", "a outer0 82+15 ?15 lower bound"],
        Unpaired::default(),
    );
}

#[test]
fn what_tasks_have_begun_without_an_end_is_counted_once() {
    let timeline = |end: &str| {
        format!(
            "0 0 .>a S
             0 1 .>b S
             10 fiber a 1
             12 open a
             20 fiber a 2
             22 open a
             30 {end}"
        )
    };
    let one = |n| Unpaired { begin_only: n, ..Unpaired::default() };
    check(&timeline("fiber a 0"), &[], one(2));
    check(&timeline("exec a"), &[], one(2));
    // A task that is in no poll may go on elsewhere.
    check(
        &(timeline("exit a") + "\n 40 fiber b 1\n 45 close b"),
        &["b outer0 12+33 run13 park20"],
        one(1),
    );
    check(
        &(timeline("lose ring 5 a") + "\n 40 fiber a 1\n 45 close a"),
        &[],
        Unpaired { open_at_loss: 2, end_only: 1, ..Unpaired::default() },
    );
}

#[test]
fn of_more_scopes_than_are_kept_of_tasks_the_further_ones_are_counted() {
    let mut timeline = String::from("0 0 .>a S\n");
    let max = crate::world::MAX_PARKED;
    for task in 1..=max + 3 {
        timeline += &format!("{0} run a {task}\n{0} open a\n{0} ran a {task} 0\n", 10 * task);
    }
    let (rows, tally) = run(true, &timeline);
    assert!(rows.scopes.is_empty());
    let expected = Unpaired { too_many: 3, begin_only: max as u64, ..Unpaired::default() };
    assert_eq!(tally.unpaired_scopes, expected);
}
