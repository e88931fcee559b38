//! Requests of tasks: their paths follow the task, whichever thread polls it.

use super::*;
use crate::requests::tasks::MAX_FOLLOWED;

#[test]
fn a_task_that_is_pending_waits_for_the_task_that_wakes_it_and_is_queued_behind_another() {
    check(
        "0 0 .>a S
         5 irq a soft 1
         7 make a 7 3
         8 make a 8 4
         8 make a 9 5
         10 run a 7
         12 open a
         20 ran a 7 0
         22 run a 8
         40 rouse a 7
         44 ran a 8 0
         46 run a 9
         50 0 a>X R
         60 0 X>a S
         64 ran a 9 0
         66 run a 7
         70 close a
         72 ran a 7 1",
        &[
            "a 12+8 running",
            ">>a 20+2 running of a for task x.rs:4 unstarted",
            ">a 22+18 running of a for task x.rs:3 pending",
            ">a 40+4 running of a for task x.rs:3 queued behind x.rs:4",
            ">a 44+2 running of a for task x.rs:3 queued",
            ">a 46+4 running of a for task x.rs:3 queued behind x.rs:5",
            ">a 50+10 preempted by X of a for task x.rs:3 queued behind x.rs:5",
            ">a 60+4 running of a for task x.rs:3 queued behind x.rs:5",
            ">a 64+2 running of a for task x.rs:3 queued",
            "a 66+4 running",
        ],
    );
}

#[test]
fn who_wakes_is_followed_as_a_task_from_thread_to_thread() {
    // 7 waits for 8, which b polls, and before that a; c, in no task, has woken that.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         5 irq a soft 1
         7 make a 7 3
         8 make a 8 4
         10 run a 7
         12 open a
         20 ran a 7 0
         20 run a 8
         30 ran a 8 0
         31 0 a>. S
         40 rouse c 8
         45 run b 8
         50 1 b>. S
         56 wake c b 1 2
         58 1 .>b S
         60 rouse b 7
         61 wake b a 0 1
         63 ran b 8 1
         64 0 .>a S
         66 run a 7
         70 close a
         72 ran a 7 1",
        &[
            "a 12+8 running",
            ">a 20+10 running of a for task x.rs:3 pending",
            ">>c 30+10 running of b for task x.rs:4 pending",
            ">>b 40+5 running of b for task x.rs:4 queued",
            ">b 45+5 running of a for task x.rs:3 pending",
            ">>c 50+6 running of b for asleep",
            ">b 56+2 dispatch by . of a for task x.rs:3 pending",
            ">b 58+2 running of a for task x.rs:3 pending",
            ">>b 60+1 running of a for asleep",
            ">a 61+3 dispatch by . of a for task x.rs:3 queued",
            ">a 64+2 running of a for task x.rs:3 queued",
            "a 66+4 running",
        ],
    );
}

#[test]
fn what_is_not_known_of_a_task_is_said() {
    // Nobody has woken 7; of what was lost then, all of it is a lower bound.
    check(
        "0 0 .>a S
         5 irq a soft 1
         10 run a 7
         12 open a
         20 ran a 7 0
         30 run a 7
         40 close a",
        &[
            "a 12+8 running",
            "a 20+10 unknown by no waking of a for task pending lower bound",
            "a 30+10 running",
        ],
    );
    check(
        "0 0 .>a S
         0 1 .>b S
         5 irq a soft 1
         10 run a 7
         12 open a
         20 ran a 7 0
         22 lose ring 1 b
         24 rouse b 7
         30 run a 7
         40 close a",
        &[
            "a 12+8 running",
            ">b 20+4 running of a for task pending lower bound",
            ">a 24+6 running of a for task queued lower bound",
            "a 30+10 running",
        ],
    );
}

/// Whatever other requests go on: 7 is dropped in its poll, as one is that cancels itself, and woken too late.
#[test]
fn a_task_that_is_dropped_in_its_poll_is_followed_to_the_end_of_the_poll() {
    for other in ["", "2 open b"] {
        check(
            &format!(
                "0 0 .>a S
                 0 1 .>b S
                 5 irq a soft 1
                 {other}
                 10 run a 7
                 12 cancel a 7
                 14 rouse b 7
                 20 open a
                 30 close a
                 32 ran a 7 0
                 40 run a 7
                 42 open a
                 50 close a"
            ),
            &["a 20+10 running", "a 42+8 running"],
        );
    }
}

#[test]
fn what_begins_outside_of_tasks_or_ends_there_is_its_threads() {
    let timeline = |begin: &str, end: &str| {
        format!(
            "0 0 .>a S
             5 irq a soft 1
             {begin}
             20 ran a 7 0
             30 run a 7
             {end}"
        )
    };
    check(&timeline("9 open a\n10 run a 7", "40 close a"), &["a 9+31 running"]);
    check(&timeline("10 run a 7\n11 open a", "40 ran a 7 0\n41 close a"), &["a 11+30 running"]);
}

#[test]
fn a_task_that_is_made_meanwhile_leads_to_its_maker() {
    check(
        "0 0 .>a S
         5 irq a soft 1
         10 run a 7
         12 open a
         14 make a 8 3
         20 ran a 7 0
         26 rouse a 8
         30 run a 8
         40 close a",
        &[
            ">a 12+2 running of a for its birth",
            ">a 14+12 running of a for task x.rs:3 pending",
            ">a 26+4 running of a for task x.rs:3 queued",
            "a 30+10 running",
        ],
    );
}

#[test]
fn tasks_that_are_not_followed_are_unknown() {
    let n = MAX_FOLLOWED as i64;
    let many: String = (0..n).map(|i| format!("9 make a {}\n", 1000 + i)).collect();
    check(
        &format!("0 0 .>a S\n{many}10 run a 7\n12 open a\n20 ran a 7 0\n30 run a 7\n40 close a"),
        &["a 12+28 unknown by no record lower bound"],
    );
}

#[test]
fn polls_at_random_tile_too() {
    let mut pieces = 0;
    for seed in 1..=60u64 {
        let mut random = crate::timeline::random(seed);
        let (mut t, mut text) = (0, "0 irq . soft 0\n".to_owned());
        for _ in 0..500 {
            t += random(9);
            let a = ["a", "b", "c"][random(3) as usize];
            let (task, on) = (random(5), random(2));
            text += &match random(14) {
                0 => format!("{t} make {a} {task}\n"),
                1..=3 => format!("{t} run {a} {task}\n"),
                4..=5 => format!("{t} ran {a} {task} {}\n", random(4)),
                6..=7 => format!("{t} rouse {a} {task}\n"),
                8 => format!("{t} {on} {a}>X {}\n", ["R", "S"][random(2) as usize]),
                9 => format!("{t} {on} X>{a} R\n"),
                10 => format!("{t} wake b {a} {on} 0\n"),
                11 => format!("{t} open {a}\n"),
                12 => format!("{t} close {a}\n"),
                _ => match random(6) {
                    0 => format!("{t} cancel {a} {task}\n"),
                    1 => format!("{t} lose ring {} {a}\n", random(9)),
                    2 => format!("{t} exec {a}\n"),
                    _ => format!("{t} fiber {a} {task}\n"),
                },
            };
        }
        let (rows, _) = run(true, &text);
        tiles(&rows);
        let for_tasks =
            |p: &&PathPiece| p.wait.as_ref().is_some_and(|what| what.starts_with("task"));
        pieces += rows.critical_path.iter().filter(for_tasks).count();
    }
    assert!(pieces > 60, "{pieces}");
}

/// Two fibers of one thread: each one's scope is a request, and what it was parked is no other one's time.
#[test]
fn scopes_of_fibers_are_requests_of_their_own() {
    let (rows, tally) = run(
        true,
        "0 0 .>a S
         0 1 .>b S
         10 fiber a 1
         20 open a
         30 fiber a 2
         32 open a
         45 fiber a 1
         60 close a
         70 fiber a 0
         80 fiber b 2
         90 close b",
    );
    let found = rows.requests.iter().map(|r| {
        let parts = r.parts.expect("a kernel stream");
        (r.tid.0 as u8, r.end_tid.0 as u8, r.ts.0, r.dur, parts.running_ns, parts.parked_ns)
    });
    let expected = [(b'a', b'a', 20, 40, 25, 15), (b'a', b'b', 32, 58, 23, 35)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert!(rows.requests.iter().all(|r| r.mark == Mark::Exact), "{:?}", rows.requests);
    assert_eq!(tally.requests.unpaired, crate::Unpaired::default());
}
