use crate::timeline::{nonsense, run};
use ft_trace::Mark;
use ft_trace::tables::FutexWait;

/// `thread kind@address ts+dur end`, and what is not 0 or not usual.
fn text(r: &FutexWait) -> String {
    let letter = |n: i32| if n == 0 { '.' } else { char::from(n as u8) };
    let p = r.parts.expect("a kernel stream");
    let parts = [("run", p.running_ns), ("pre", p.preempted_ns), ("dis", p.dispatch_ns)];
    let parts = [&parts[..], &[("slp", p.blocked_ns), ("?", p.unexplained_ns)]].concat();
    let parts: String =
        parts.iter().filter(|(_, ns)| *ns != 0).map(|(what, ns)| format!(" {what}{ns}")).collect();
    let woken = r.woken_ns.map_or(String::new(), |ns| {
        let (who, call) = (letter(r.waker_tid.unwrap()), r.waker_call.map_or("-", |c| c.word()));
        format!(" by {who}:{call} after {ns}")
    });
    let behind = match (r.behind_tid, r.behind_ns) {
        (Some(tid), Some(ns)) => format!(" behind {}{ns}", letter(tid)),
        _ => String::new(),
    };
    let owner = r.owner_tid.map_or(String::new(), |tid| format!(" of {tid}"));
    let again = if r.again { " again" } else { "" };
    let stacks = match (r.stack, r.waker_stack) {
        (None, None) => String::new(),
        (at, by) => format!(" at {} from {}", at.unwrap_or(0), by.unwrap_or(0)),
    };
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    let (thread, at) = (letter(r.tid.0), char::from(r.address as u8));
    let head = format!("{thread} {}@{at} {}+{} {}", r.kind, r.ts, r.dur, r.end);
    format!("{head}{parts}{woken}{behind}{owner}{again}{stacks}{mark}")
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows.futex_waits.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
    assert_eq!(tally.futex_waits, rows.futex_waits.len() as u64);
    for r in &rows.futex_waits {
        assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.dur);
    }
}

#[test]
fn who_wakes_is_told_with_the_call_and_behind_whom_the_thread_then_waits() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 futex a wait L 90 done
         15 0 a>X S
         40 futex b wake L 10 done
         42 wake b a 0
         70 0 X>a R
         130 0 a>. S",
        &["a wait@L 10+90 woken run35 dis28 slp27 by b:wake after 32 behind X28"],
    );
}

#[test]
fn what_ends_without_a_waker_has_none() {
    check(
        "0 0 .>a S
         10 futex a wait L 20 timed-out
         12 0 a>. S
         26 wake . a 0
         28 0 .>a S
         40 futex a wait L 5 changed
         50 futex a lock-pi M 5 done 77
         60 futex a semaphore-wait N 5 done
         70 0 a>. S",
        &[
            "a wait@L 10+20 timed-out run4 dis2 slp14 behind .2",
            "a wait@L 40+5 changed run5",
            "a lock-pi@M 50+5 at-once run5 of 77",
            "a semaphore-wait@N 60+5 at-once run5",
        ],
    );
}

#[test]
fn a_timer_is_nobody_even_where_the_call_says_woken() {
    // The timer strikes whoever runs, and the lock is released before the waiter has a CPU; then in time.
    check(
        "0 0 .>a S
         0 7 .>b S
         10 futex a wait L 40 done - 15
         12 0 a>. S
         26 wake b a 0
         30 futex b wake L 5 done
         35 0 .>a S
         60 futex a wait L 30 done - 15
         62 0 a>. S
         70 wake b a 0
         80 0 .>a S
         100 0 a>. S",
        &[
            "a wait@L 10+40 woken run17 dis9 slp14 behind .9",
            "a wait@L 60+30 woken run12 dis10 slp8 by b:- after 10 behind .10 again",
        ],
    );
}

#[test]
fn a_timer_that_strikes_who_wakes_at_another_futex_is_nobody() {
    for (futex, expected) in [
        ("M", "a wait@L 10+40 woken run17 dis9 slp14 behind .9"),
        ("L", "a wait@L 10+40 woken run17 dis9 slp14 by b:wake after 16 behind .9"),
    ] {
        let lines = format!(
            "0 0 .>a S
             0 7 .>b S
             10 futex a wait L 40 done - 15
             12 0 a>. S
             25 futex b wake {futex} 5 done
             26 wake b a 0
             35 0 .>a S
             60 0 a>. S"
        );
        check(&lines, &[expected]);
    }
}

#[test]
fn who_wakes_without_a_call_and_a_wait_that_follows_a_wait() {
    // The waker ends, and the kernel wakes who joins it; then the thread waits there once more, and elsewhere.
    check(
        "0 0 .>a S
         10 futex a wait L 20 done
         12 0 a>. S
         24 wake b a 0
         26 0 .>a S
         40 futex a wait L 10 changed
         60 futex a wait L 10 interrupted
         70 0 a>. S",
        &[
            "a wait@L 10+20 woken run6 dis2 slp12 by b:- after 14 behind .2",
            "a wait@L 40+10 changed run10 again",
            "a wait@L 60+10 interrupted run10",
        ],
    );
}

#[test]
fn the_wake_up_that_counts_is_the_one_after_which_it_did_not_sleep_again() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 futex a wait L 60 done
         12 0 a>. S
         20 wake X a 0
         22 0 .>a S
         24 0 a>. S
         40 futex b requeue L 10 done
         44 wake b a 0
         45 wake X a 0
         60 0 .>a S
         90 0 a>. S",
        &["a wait@L 10+60 woken run14 dis18 slp28 by b:requeue after 34 behind .18"],
    );
}

#[test]
fn a_waking_after_one_on_the_way_to_sleep_shows_that_it_slept() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 futex a wait L 60 done
         15 wake X a 0
         20 0 a>. S!
         50 wake b a 0
         60 0 .>a S
         90 0 a>. S",
        &["a wait@L 10+60 woken run20 dis40 by b:- after 40 behind .10 lower bound"],
    );
}

#[test]
fn a_wait_that_does_not_return_ends_with_its_thread_or_the_trace() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 futex a wait L 999 unfinished
         12 0 a>. S
         20 futex b wait M 999 unfinished
         22 7 b>. S
         50 exit a
         60 0 .>X S",
        &["a wait@L 10+40 thread run2 slp38", "b wait@M 20+40 trace run2 slp38 censored"],
    );
}

#[test]
fn a_loss_makes_the_parts_lower_bounds_and_nobody_had_it_at_once() {
    check(
        "0 0 .>a S
         10 futex a semaphore-wait L 40 done
         12 0 a>. S
         20 lose sched 5
         60 0 .>a S",
        &["a semaphore-wait@L 10+40 woken run2 slp8 ?30 lower bound"],
    );
}

#[test]
fn interrupts_that_are_missing_while_it_runs_make_the_parts_lower_bounds() {
    check(
        "0 0 .>a S
         5 lose irq 7
         10 futex a wait L 40 done
         20 0 a>. S
         30 wake . a 0
         40 0 .>a S
         60 0 a>. S",
        &["a wait@L 10+40 woken run18 dis10 slp10 ?2 by .:- after 20 behind .10 lower bound"],
    );
}

#[test]
fn chains_of_the_waiter_and_the_waker_belong_to_the_wait() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 futex a wait L 90 done
         15 0 a>. S
         16 chain a wait 1
         40 futex b wake L 10 done
         42 wake b a 0
         43 chain b wake 2 a
         70 0 .>a R
         130 0 a>. S",
        &["a wait@L 10+90 woken run35 dis28 slp27 by b:wake after 32 behind .28 at 1 from 2"],
    );
}

#[test]
fn what_the_thread_says_itself_stands_beside_the_futex() {
    let (rows, _) = run(
        true,
        "0 0 .>a S
         5 wait a L
         10 futex a wait L 20 done
         40 acquire a L
         50 release a L
         60 futex a wait L 20 changed
         90 0 a>. S",
    );
    let own: Vec<_> =
        rows.futex_waits.iter().map(|r| (r.own_kind.as_deref(), r.own_name.as_deref())).collect();
    assert_eq!(own, [(Some("lock"), Some("0x4c")), (None, None)]);
}

#[test]
fn parts_sum_whatever_the_records_say() {
    for seed in 0..200 {
        let timeline = nonsense(seed);
        let (rows, _) = run(true, &timeline);
        for r in &rows.futex_waits {
            let parts = r.parts.expect("a kernel stream");
            assert_eq!(parts.total_ns(), r.dur, "{r:?}\n{timeline}");
            assert!(parts.to_array().iter().all(|ns| *ns >= 0), "{r:?}\n{timeline}");
            assert!(r.woken_ns.is_none_or(|ns| (0..=r.dur).contains(&ns)), "{r:?}\n{timeline}");
        }
    }
}
