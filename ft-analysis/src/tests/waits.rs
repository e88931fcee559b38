//! Waits for locks: who held them meanwhile, and what the holders did.

use super::{Rows, Tally, parts, run};
use crate::Mark;
use ft_trace::tables::{LockWait, UnfinishedWait};

fn thread(tid: Option<i32>) -> String {
    tid.map_or("?".into(), |tid| (tid as u8 as char).to_string())
}

/// `b L 10+30`, holders in turn, who held longest and how long, the root when it is another, and the parts.
fn wait(r: &LockWait) -> String {
    let lock = |lock: i64| lock as u8 as char;
    let held = format!("{}:{}{}", r.holders, thread(r.holder_tid), r.holder_ns.unwrap_or(0));
    let root = match (r.root_tid, &r.root_lock) {
        (root, Some(lock)) if root != r.holder_tid || r.chain > 1 => {
            let lock = u8::from_str_radix(&lock[2..], 16).expect("an address") as char;
            format!(" ->{lock} {}{} chain{}", thread(root), r.root_ns.unwrap_or(0), r.chain)
        }
        _ => String::new(),
    };
    let own = [("none", r.no_holder_ns), ("cycle", r.cycle_ns), ("waits", r.holder_waits_ns)];
    let own = own.iter().filter(|p| p.1 != 0).map(|p| format!(" {}{}", p.0, p.1));
    let parts = r.parts.as_ref().map_or("no kernel".into(), parts);
    let touched = if r.mark == Mark::Exact { "" } else { " touched" };
    format!(
        "{} {} {}+{} by {held}{root} {parts}{}{touched}",
        thread(Some(r.tid.0)),
        lock(r.lock),
        r.ts,
        r.dur,
        own.collect::<String>()
    )
    .replace("  ", " ")
}

/// `b L 10+30 ended thread, held by a since 5`, and the number of the cycle.
fn unfinished(r: &UnfinishedWait) -> String {
    let held = match (r.holder_since, r.holder_gone) {
        (None, _) => "held by nobody".to_owned(),
        (Some(since), gone) => {
            let gone = if gone { " (gone)" } else { "" };
            format!("held by {}{gone} since {since}", thread(r.holder_tid))
        }
    };
    let cycle = r.cycle.map_or(String::new(), |c| format!(", circle of {}", thread(Some(c))));
    let lock = r.lock as u8 as char;
    format!("{} {lock} {}+{} {} ended, {held}{cycle}", thread(Some(r.tid.0)), r.ts, r.dur, r.ended)
}

/// Runs the timeline and compares its waits, first those that ended.
fn check(timeline: &str, expected: &[&str]) -> (Rows, Tally) {
    let (rows, tally) = run(true, timeline);
    let waits = rows.lock_waits.iter().map(wait);
    let found: Vec<_> = waits.chain(rows.unfinished_waits.iter().map(unfinished)).collect();
    assert_eq!(found, expected, "{timeline}");
    assert_eq!(tally.waits, rows.lock_waits.len() as u64);
    (rows, tally)
}

#[test]
fn the_holder_runs_and_hands_over() {
    // cpu 0: a [========]      released at 30
    // cpu 1: b   wwwwwwww--|   acquired at 34
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         14 wait b L
         30 release a L
         34 acquire b L
         40 release b L",
        &["b L 14+20 by 1:a16 run16 none4"],
    );
}

#[test]
fn who_held_for_no_time_is_counted_and_not_blamed() {
    // The lock is released in the nanosecond in which the wait begins, and had in between for none.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 acquire a L
         30 wait b L
         30 release a L
         32 acquire c L
         32 release c L
         34 acquire b L",
        &["b L 30+4 by 2:?0 none4"],
    );
}

#[test]
fn three_wait_in_a_chain() {
    // a holds K; b holds L and waits for K; c holds M and waits for L; d waits for M: a is the root of all.
    let (rows, _) = check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         0 3 .>d S
         10 acquire a K
         10 acquire b L
         10 acquire c M
         20 wait b K
         25 1 b>. S
         30 wait c L
         40 wait d M
         60 irq a hard 4
         70 release a K
         71 wake a b 1
         72 1 .>b S
         75 acquire b K
         80 release b K
         81 release b L
         85 acquire c L
         86 release c M
         88 acquire d M",
        &[
            "b K 20+55 by 1:a50 run46 hard4 none5",
            "c L 30+55 by 1:b51 ->K a40 chain2 run42 hard4 none9 waits45",
            "d M 40+48 by 1:c46 ->K a30 chain3 run33 hard4 none11 waits45",
        ],
    );
    assert_eq!(rows.lock_waits[2].root_comm.as_deref(), Some("a"));
}

#[test]
fn three_wait_for_one_lock_and_get_it_in_turn() {
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         0 3 .>d S
         10 acquire a L
         11 wait b L
         12 wait c L
         13 wait d L
         20 release a L
         21 acquire b L
         61 release b L
         62 acquire c L
         70 release c L
         71 acquire d L",
        &[
            "b L 11+10 by 1:a9 run9 none1",
            "c L 12+50 by 2:b40 run48 none2",
            "d L 13+58 by 3:b40 run55 none3",
        ],
    );
}

#[test]
fn a_holder_is_preempted_and_blocks_while_others_wait() {
    // cpu 0: a [==|XXX|==|....|rr|=]     preempted 20..40, blocked 50..80, woken 80..85
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 0 a>X R+
         40 0 X>a S
         50 0 a>Y S
         80 wake X a 0
         85 0 Y>a R
         90 release a L
         90 acquire b L",
        &["b L 15+75 by 1:a75 run20 pre20 dis5 blk30"],
    );
}

#[test]
fn readers_share_and_the_first_is_blamed() {
    // a reads 10..30, b reads 15..50: a is blamed up to 30, b from then on.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 read a L
         15 read b L
         20 wait c L
         30 release a L
         35 1 b>X R
         45 1 X>b S
         50 release b L
         51 acquire c L
         55 wait-read a L
         60 release c L
         61 read a L",
        &["c L 20+31 by 2:b20 run20 pre10 none1", "a L 55+6 by 1:c5 run5 none1"],
    );
}

#[test]
fn a_deadlock_is_told_at_the_end() {
    // a holds K and wants L, b holds L and wants K; c waits outside of the circle.
    let (rows, tally) = check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 acquire a K 1
         11 acquire b L 2
         20 wait a L 3
         21 wait b K 4
         25 wait c K
         30 0 a>. S
         40 irq c hard 1",
        &[
            "a L 20+20 trace ended, held by b since 11, circle of a",
            "b K 21+19 trace ended, held by a since 10, circle of a",
            "c K 25+15 trace ended, held by a since 10",
        ],
    );
    let places = |r: &UnfinishedWait| (r.place.to_string(), r.holder_place.clone());
    assert_eq!(places(&rows.unfinished_waits[0]), ("x.rs:3".into(), Some("x.rs:2".into())));
    assert_eq!((tally.incomplete.wait_only, tally.incomplete.never_released), (3, 2));
}

#[test]
fn a_deadlock_that_was_killed_is_told() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a K
         11 acquire b L
         20 wait a L
         21 wait b K
         50 exit a
         51 exit b
         60 0 a>. X
         60 1 b>. X",
        &[
            "a L 20+30 thread ended, held by b since 11, circle of a",
            "b K 21+30 thread ended, held by a (gone) since 10, circle of a",
        ],
    );
}

#[test]
fn a_thread_that_waits_for_what_it_holds_is_a_circle() {
    check(
        "0 0 .>a S
         10 acquire a L
         20 wait a L
         30 0 a>. S",
        &["a L 20+10 trace ended, held by a since 10, circle of a"],
    );
}

#[test]
fn a_circle_opens_when_one_gives_up() {
    // b gives up at 40; a gets L when b releases it. c, which waits for K, was behind the circle from 21 to 40.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 acquire a K
         11 acquire b L
         15 wait c K
         20 wait a L
         21 wait b K
         40 abandon b K
         50 release b L
         51 acquire a L
         60 release a K
         61 acquire c K",
        &[
            "a L 20+31 by 1:b30 run11 none1 cycle19 waits19",
            "c K 15+46 by 1:a45 ->K a14 chain2 run25 none2 cycle19 waits31",
        ],
    );
}

#[test]
fn a_holder_that_ended_is_named_and_not_blamed() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         20 exit a
         21 0 a>. X
         30 wait b L
         50 irq b hard 1",
        &["b L 30+20 trace ended, held by a (gone) since 10"],
    );
}

#[test]
fn holds_before_the_trace_and_in_a_loss_are_nobodys() {
    let (_, tally) = check(
        "0 0 .>a S
         0 1 .>b S
         10 wait b L
         20 acquire b L
         25 release b L
         30 acquire a L
         35 wait b L
         40 lose ring 5 a
         50 acquire b L",
        &["b L 10+10 by 0:?0 none10", "b L 35+15 by 1:a5 run5 none10 touched"],
    );
    assert_eq!(tally.incomplete.held_at_loss, 1);
}

#[test]
fn a_holder_whose_switches_were_lost_is_marked() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         20 wait b L
         30 lose sched 10
         50 irq a hard 1
         60 release a L
         61 acquire b L",
        &["b L 20+41 by 1:a40 run19 hard1 ?20 none1 touched"],
    );
}

#[test]
fn a_wait_that_is_given_up_or_replaced_has_no_row() {
    let (_, tally) = check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         11 wait b L
         12 abandon b L
         13 wait b L
         14 wait b L
         15 wait b M
         16 acquire b K",
        &[],
    );
    assert_eq!((tally.incomplete.abandoned, tally.incomplete.wait_only), (1, 3));
}

#[test]
fn a_condition_wait_gives_the_lock_back() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 park a L
         21 acquire b L
         30 release b L
         31 unpark a L
         40 release a L",
        &["b L 15+6 by 1:a5 run5 none1"],
    );
}

#[test]
fn exec_ends_what_was_held_and_waited_for() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 exec b 1
         30 acquire b L",
        &["b L 15+5 exec ended, held by a since 10"],
    );
}

#[test]
fn without_a_kernel_stream_the_holders_are_known() {
    let (rows, _) = run(
        false,
        "10 acquire a L\n 15 wait b L\n 20 release a L\n 22 acquire b L\n 30 release b L",
    );
    assert_eq!(
        rows.lock_waits.iter().map(wait).collect::<Vec<_>>(),
        ["b L 15+7 by 1:a5 no kernel none2"]
    );
}
