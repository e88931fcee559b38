//! Cycles of drawn timelines, and their deadlines.

use super::*;
use crate::requests::cycles::MAX_MISSED_PATHS;
use crate::requests::{Deadline, Recorded};

fn within(ns: i64) -> RequestKind {
    RequestKind::deadline("a", ns).expect("a deadline")
}

/// `begin+length` of each, with its mark.
fn cycles(rows: &Rows) -> Vec<String> {
    let row = |r: &Request| {
        assert!(r.parts.is_none() && r.tid == r.end_tid, "{r:?}");
        let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
        format!("{} {}+{}{mark}", r.kind, r.ts, r.dur)
    };
    rows.requests.iter().map(row).collect()
}

/// Cycles, missed, doubtful, by interrupt, not over.
fn counts(tally: &Tally) -> Vec<[u64; 5]> {
    let of = |d: &Deadline| [d.cycles, d.missed, d.doubtful, d.by_interrupt, d.not_over];
    tally.requests.deadlines.iter().map(of).collect()
}

/// a sleeps until 100, is woken late and has no CPU until 130; it sleeps until 200, waits for b, and exits behind 300.
const LATE: &str = "0 0 .>a S
     0 1 .>b S
     1 irq b soft 1 1
     50 asleep a clock_nanosleep 1 - 100
     50 0 a>X S
     108 irq X vector 4 0 local_timer
     110 wake X a 0 0
     130 0 X>a R
     160 asleep a clock_nanosleep 1 - 200
     160 0 a>. S
     198 irq . vector 4 0 local_timer
     201 wake . a 0 0
     202 0 .>a S
     210 asleep a futex 4096 b
     210 0 a>. S
     260 wake b a 0 1
     262 0 .>a S
     270 asleep a nanosleep 1 - 300
     270 0 a>. S
     301 irq . vector 4 0 local_timer
     302 wake . a 0 0
     303 0 .>a S
     310 exit a";

#[test]
fn a_cycle_lasts_from_its_time_until_the_thread_sleeps_again() {
    let (rows, tally) = path_of(
        &[within(60)],
        LATE,
        &[
            "a 100+10 timer by local_timer of a for system call clock_nanosleep",
            "a 110+20 dispatch by X",
            "a 130+30 running",
            "a 200+1 timer by local_timer of a for system call clock_nanosleep",
            "a 201+1 dispatch by .",
            "a 202+8 running",
            ">b 210+50 running of a for system call futex",
            "a 260+2 dispatch by .",
            "a 262+8 running",
        ],
    );
    assert_eq!(cycles(&rows), ["a=60ns 100+60", "a=60ns 200+70"]);
    assert_eq!(counts(&tally), [[2, 1, 0, 0, 1]]);
    assert_eq!(tally.requests.unpaired, Unpaired::default());
}

#[test]
fn each_deadline_that_was_asked_for_has_its_own_counts() {
    let any = RequestKind::deadline("?", 69).expect("a deadline");
    let (rows, tally) = run_asking(&[within(59), any, within(70)], LATE);
    tiles(&rows);
    assert_eq!(counts(&tally), [[2, 2, 0, 0, 1], [2, 1, 0, 0, 1], [2, 0, 0, 0, 1]]);
    let nobody = RequestKind::deadline("zz", 69).expect("a deadline");
    let (rows, tally) = run_asking(&[nobody], LATE);
    assert_eq!((rows.requests.len(), counts(&tally)), (0, vec![[0; 5]]));
    assert!(run_asking(&[], LATE).1.requests.deadlines.is_empty());
}

#[test]
fn a_cycle_that_is_not_over_and_has_taken_too_long_has_missed_its_deadline() {
    let last = |timeline: &str, ns| {
        let (_, tally) = run_asking(&[within(ns)], timeline);
        let [d] = &tally.requests.deadlines[..] else { panic!("{tally:?}") };
        (d.not_over, d.not_over_missed, d.not_over_alive, d.not_over_ns)
    };
    assert_eq!(last(LATE, 9), (1, 1, 1, 10));
    assert_eq!(last(LATE, 10), (1, 0, 0, 0));
    // The thread has exited: it may have done something else behind its last cycle.
    let exited = format!("{LATE}\n 312 0 a>. X");
    assert_eq!(last(&exited, 9), (1, 1, 0, 12));
}

#[test]
fn of_a_timer_that_is_read_a_cycle_begins_with_its_interrupt() {
    let (rows, tally) = path_of(
        &[within(60)],
        "0 0 .>a S
         50 asleep a read-timerfd 3
         50 0 a>X S
         108 irq X vector 4 0 local_timer
         110 wake X a 0 0
         130 0 X>a R
         180 asleep a read-timerfd 3
         180 0 a>. S
         190 wake . a 0 0
         191 0 .>a S
         195 asleep a read 4
         195 0 a>. S",
        &[
            "a 108+2 timer by local_timer of a for system call read",
            "a 110+20 dispatch by X",
            "a 130+50 running",
        ],
    );
    assert_eq!(cycles(&rows), ["a=60ns 108+72"]);
    assert_eq!(counts(&tally), [[1, 1, 0, 1, 1]]);
}

#[test]
fn who_is_woken_before_its_time_and_sleeps_again_has_no_cycle() {
    let (rows, tally) = run_asking(
        &[within(60)],
        "0 0 .>a S
         50 asleep a nanosleep 1 - 100
         50 0 a>. S
         60 wake . a 0 0
         61 0 .>a S
         70 asleep a nanosleep 1 - 100
         70 0 a>. S
         101 wake . a 0 0
         102 0 .>a S
         120 0 a>X R
         140 0 X>a S
         150 asleep a nanosleep 1 - 190
         150 0 a>. S",
    );
    tiles(&rows);
    assert_eq!(cycles(&rows), ["a=60ns 100+50"]);
    assert_eq!(counts(&tally), [[1, 0, 0, 0, 0]]);
}

#[test]
fn where_records_are_missing_several_cycles_may_be_one() {
    let (rows, tally) = run_asking(
        &[within(60)],
        "0 0 .>a S
         50 asleep a nanosleep 1 - 100
         50 0 a>. S
         90 lose sched 50
         201 wake . a 0 0
         202 0 .>a S
         210 asleep a nanosleep 1 - 250
         210 0 a>. S",
    );
    tiles(&rows);
    assert_eq!(cycles(&rows), ["a=60ns 100+110 lower bound"]);
    assert_eq!(counts(&tally), [[1, 1, 1, 0, 0]]);
}

#[test]
fn the_paths_of_missed_cycles_are_stored_up_to_a_bound() {
    let missed = MAX_MISSED_PATHS as i64 + 30;
    let mut timeline = String::from("0 0 .>a S\n");
    // The first are the longest, so that none behind them is among the slowest.
    for i in 0..missed {
        let (t, long) = (10 + i * 2000, 1900 - i);
        let (due, wakes, ends) = (t + 5, t + 6, t + 5 + long);
        timeline += &format!("{t} asleep a nanosleep 1 - {due}\n{t} 0 a>. S\n");
        timeline += &format!("{wakes} wake . a 0 0\n{wakes} 0 .>a S\n");
        timeline += &format!("{ends} asleep a nanosleep 1 - {}\n{ends} 0 a>. S\n", ends + 1);
        timeline += &format!("{0} wake . a 0 0\n{0} 0 .>a S\n", ends + 1);
    }
    let (rows, tally) = run_asking(&[within(1000)], &timeline);
    tiles(&rows);
    assert_eq!(counts(&tally)[0][1], missed as u64);
    let with_path: std::collections::BTreeSet<i64> =
        rows.critical_path.iter().map(|piece| piece.request).collect();
    let missed = rows.requests.iter().filter(|r| r.dur > 1000 && with_path.contains(&r.request));
    assert_eq!(missed.count() as u64, MAX_MISSED_PATHS);
}

#[test]
fn a_deadline_that_cannot_be_is_refused_with_the_remedy() {
    let threads = Some(["rt-loop", "main"].map(ft_trace::ids::Name::from).into());
    let recorded = Recorded { threads, ..Recorded::default() };
    let check = |threads: &str, recorded: &Recorded| {
        let kind = RequestKind::deadline(threads, 1_000_000)?;
        assert!(kind.needs_kernel());
        kind.check(&[], recorded)
    };
    let refused = |threads: &str, recorded: &Recorded| {
        check(threads, recorded).expect_err(threads).to_string()
    };
    assert_eq!(check("rt-*", &recorded), Ok(()));
    assert_eq!(
        refused("rtloop", &recorded),
        "no thread of the trace matches `rtloop`: name one that it has, as main, rt-loop"
    );
    let none = refused("rt-loop", &Recorded::default());
    assert!(
        none.contains("cannot tell `rt-loop=1ms`: record with the kernel group `sched`"),
        "{none}"
    );
    let unnamed = refused("", &recorded);
    assert!(
        unnamed.ends_with("give a thread and a time, as in `--deadline 'rt-loop=1ms'`"),
        "{unnamed}"
    );
    assert!(RequestKind::deadline("rt-loop", 0).is_err());
    let written = [1_500_000, 2_000_000_000, 250_000, 999]
        .map(|ns| RequestKind::deadline("a", ns).expect("a deadline").name());
    assert_eq!(written, ["a=1500us", "a=2s", "a=250us", "a=999ns"]);
}
