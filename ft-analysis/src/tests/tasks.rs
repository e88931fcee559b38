//! What tasks hold and wait for, which threads run by turns.

use super::*;

#[test]
fn a_fiber_holds_its_locks_while_another_one_runs() {
    // Fiber 2 neither is within the hold of L, nor takes M behind it.
    let tally = check(
        "0 0 .>a S
         5 acquire a K
         10 fiber a 1
         20 acquire a L
         30 fiber a 2
         35 acquire a M
         40 fiber a 1
         45 acquire a N
         50 release a N
         60 release a L
         70 fiber a 2
         75 release a M
         80 fiber a 0
         90 release a K",
        &["N2 45+5 run5", "L1 20+40 run30 park10", "M1 35+40 run10 park30", "K0 5+85 run85"],
    );
    assert_eq!(tally.incomplete, Incomplete::default());
    assert_eq!(tally.out_of_order_releases, 0);
}

#[test]
fn locks_of_fibers_of_one_thread_are_not_taken_behind_each_other() {
    let orders = |timeline: &str| {
        let (rows, _) = run(true, timeline);
        rows.lock_order.len()
    };
    let own = "0 0 .>a S\n 10 acquire a L\n 20 acquire a M\n 30 release a M\n 40 release a L";
    assert_eq!(orders(own), 1);
    let others = "0 0 .>a S
         5 fiber a 1
         10 acquire a L
         15 fiber a 2
         20 acquire a M
         30 release a M
         35 fiber a 1
         40 release a L";
    assert_eq!(orders(others), 0);
}

/// A task takes a lock to another thread, which waits for a CPU then; and who waits for the lock, waits for that one.
#[test]
fn a_task_takes_a_lock_to_another_thread() {
    let timeline = "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         10 run a 5
         12 acquire a L
         14 0 a>X R
         16 0 X>a S
         20 ran a 5 0
         22 wait c L
         23 2 c>. S
         25 acquire a M
         28 release a M
         30 run b 5
         40 1 b>X R
         50 1 X>b S
         55 release b L
         56 wake b c 2
         57 2 .>c S
         58 acquire c L
         60 release c L
         70 ran b 5 1";
    let tally = check(
        timeline,
        &[
            "M0 25+3 run3",
            "L0 12+43 run21 pre12 park10 by X12",
            "L0 58+2 run2 wait36",
            "c 56+1 cpu2 woken by 98 behind .1",
        ],
    );
    assert_eq!(tally.incomplete, Incomplete::default());
    let (rows, _) = run(true, timeline);
    let wait = &rows.lock_waits[0];
    assert_eq!((wait.tid.0 as u8, wait.holder_tid.map(|tid| tid as u8)), (b'c', Some(b'b')));
}

/// A lock that one fiber waits for and another one takes: neither wait nor queue is the other one's.
#[test]
fn a_fiber_that_waits_leaves_its_wait_to_no_other() {
    let timeline = "0 0 .>a S
         5 fiber a 1
         10 wait a L
         20 fiber a 2
         30 acquire a L
         40 release a L
         45 wait a L
         50 acquire a L
         60 release a L
         70 fiber a 1
         75 acquire a L
         80 release a L";
    let tally = check(timeline, &["L0 30+10 run10", "L0 50+10 run10 wait5", "L0 75+5 run5"]);
    assert_eq!(tally.incomplete, Incomplete { wait_only: 1, ..Incomplete::default() });
    let waits: Vec<_> = run(true, timeline).0.lock_waits.iter().map(|w| (w.ts.0, w.dur)).collect();
    assert_eq!(waits, [(45, 5)]);
}

/// Another task of the thread releases what a task holds that does not run.
#[test]
fn a_lock_is_released_by_another_fiber_of_its_thread() {
    let tally = check(
        "0 0 .>a S
         5 fiber a 1
         10 acquire a L
         20 fiber a 2
         30 release a L
         40 fiber a 0",
        &["L0 10+20 run10 park10"],
    );
    assert_eq!(tally.incomplete, Incomplete::default());
}

#[test]
fn what_tasks_hold_to_no_end_is_counted() {
    let held = |end: &str| {
        let timeline = format!(
            "0 0 .>a S
             0 1 .>b S
             5 fiber a 1
             10 acquire a L
             20 fiber a 2
             25 acquire a M
             30 fiber a 0
             {end}"
        );
        run(true, &timeline).1.incomplete
    };
    let never = Incomplete { never_released: 2, ..Incomplete::default() };
    for end in ["", "40 exec a", "40 exit a\n 50 exit b"] {
        assert_eq!(held(end), never, "{end}");
    }
    let lost = Incomplete { held_at_loss: 2, release_only: 1, ..Incomplete::default() };
    assert_eq!(held("40 lose ring 5 a\n 50 release a L"), lost);
    // What it begins on another thread is released there.
    let other = Incomplete { never_released: 1, ..Incomplete::default() };
    assert_eq!(held("40 exit a\n 45 fiber b 1\n 50 release b L"), other);
}

/// Whatever events of tasks, locks and scopes say: parts sum to their intervals, and each hold ends once.
#[test]
fn parts_of_tasks_sum_to_their_intervals_whatever_happens() {
    for seed in 0..400_u64 {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % n
        };
        let mut timeline = String::from("0 0 .>a S\n0 1 .>b S\n");
        for t in 1..200 {
            let thread = if next(2) == 0 { "a" } else { "b" };
            let (task, lock) = (next(4), ["K", "L", "M"][next(3) as usize]);
            timeline += &match next(14) {
                0 | 1 => format!("{t} fiber {thread} {task}\n"),
                2 | 3 => format!("{t} run {thread} {}\n", task + 4),
                4 | 5 => format!("{t} ran {thread} {} {}\n", task + 4, next(3)),
                6 => format!("{t} open {thread}\n"),
                7 => format!("{t} close {thread}\n"),
                8 | 9 => format!("{t} acquire {thread} {lock}\n"),
                10 | 11 => format!("{t} release {thread} {lock}\n"),
                12 => format!("{t} cancel {thread} {}\n", task + 4),
                _ => format!("{t} lose ring 1 {thread}\n"),
            };
        }
        let (rows, tally) = run(true, &timeline);
        for r in &rows.scopes {
            let parts = r.parts.expect("a kernel stream");
            assert!(parts.to_array().iter().all(|ns| *ns >= 0), "{r:?}\n{timeline}");
            assert_eq!(parts.total_ns(), r.dur, "{r:?}\n{timeline}");
        }
        for r in &rows.critical_sections {
            let parts = r.parts.expect("a kernel stream");
            assert!(parts.to_array().iter().all(|ns| *ns >= 0), "{r:?}\n{timeline}");
            assert_eq!(parts.total_ns(), r.dur, "{r:?}\n{timeline}");
        }
        let parts = rows.requests.iter().filter_map(|r| Some((r.parts?, r.dur)));
        parts.for_each(|(parts, dur)| assert_eq!(parts.total_ns(), dur, "{timeline}"));
        let count = |word: &str| timeline.lines().filter(|l| l.contains(word)).count() as u64;
        let bad = tally.incomplete;
        let ended = bad.never_released + bad.held_at_loss + bad.acquired_again + bad.too_many;
        assert_eq!(tally.holds + ended, count(" acquire "), "{timeline}");
        assert_eq!(tally.holds + bad.release_only, count(" release "), "{timeline}");
        let scopes = tally.unpaired_scopes;
        let ended = scopes.begin_only + scopes.open_at_loss + scopes.too_many;
        assert_eq!(tally.scopes + ended, count(" open "), "{timeline}");
        assert_eq!(tally.scopes + scopes.end_only, count(" close "), "{timeline}");
    }
}
