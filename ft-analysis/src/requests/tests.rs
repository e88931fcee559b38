//! Requests of drawn timelines, and their paths.

mod bounds;
mod cycles;
mod kinds;
mod probes;
mod random;
mod reactions;
mod tasks;

use super::*;
use crate::timeline::{run, run_asking};
use ft_trace::Mark;
use ft_trace::tables::{PathKind, PathPiece, Request};

/// `a 10+5 running`, with `>` for each wait through which it is there, `by` whom, `of a for lock L`, and the mark.
fn piece(p: &PathPiece) -> String {
    let thread = p.tid.0 as u8 as char;
    let by = p.culprit.as_ref().map_or(String::new(), |by| format!(" by {by}"));
    let waiter = p.waiter_tid.map_or(' ', |tid| tid as u8 as char);
    let wait = p.wait.as_ref().map_or(String::new(), |wait| format!(" of {waiter} for {wait}"));
    let mark = if p.mark == Mark::Exact { String::new() } else { format!(" {}", p.mark) };
    let depth = ">".repeat(p.depth as usize);
    format!("{depth}{thread} {}+{} {}{by}{wait}{mark}", p.ts, p.dur, p.kind)
}

fn sums(r: &Request) -> [Option<i64>; 8] {
    [
        r.path_running_ns,
        r.path_preempted_ns,
        r.path_dispatch_ns,
        r.path_interrupt_ns,
        r.path_timer_ns,
        r.path_device_ns,
        r.path_outside_ns,
        r.path_unknown_ns,
    ]
}

/// The pieces of each request tile it, and its sums are theirs.
fn tiles(rows: &Rows) {
    for r in &rows.requests {
        let sums = sums(r);
        if sums[0].is_none() {
            continue;
        }
        assert_eq!(sums.iter().flatten().sum::<i64>(), r.dur, "{r:?}");
        let own = rows.critical_path.iter().filter(|p| p.request == r.request);
        let pieces: Vec<_> = own.collect();
        if pieces.is_empty() {
            continue;
        }
        let mut at = r.ts.0;
        for p in &pieces {
            assert!(p.ts.0 == at && p.dur > 0, "{p:?} of {r:?}");
            at += p.dur;
        }
        assert_eq!(at, r.ts.0 + r.dur, "{r:?}");
        let of = |kind: PathKind| -> i64 {
            pieces.iter().filter(|p| p.kind == kind).map(|p| p.dur).sum()
        };
        assert_eq!(PathKind::ALL.iter().map(|&kind| Some(of(kind))).collect::<Vec<_>>(), sums);
        let elsewhere = pieces.iter().filter(|p| p.depth > 0).map(|p| p.dur).sum();
        assert_eq!(
            (r.path_elsewhere_ns, r.path_pieces),
            (Some(elsewhere), Some(pieces.len() as i32))
        );
        let worst = pieces.iter().map(|p| p.mark).max().expect("a piece");
        assert!(r.path_mark >= worst && (r.path_unknown_ns == Some(0) || worst > Mark::Exact));
    }
}

fn path_of(asked: &[RequestKind], timeline: &str, expected: &[&str]) -> (Rows, Tally) {
    let (rows, tally) = run_asking(asked, timeline);
    tiles(&rows);
    let found: Vec<String> = rows.critical_path.iter().map(piece).collect();
    assert_eq!(found, expected, "{timeline}");
    (rows, tally)
}

fn check(timeline: &str, expected: &[&str]) {
    path_of(&[], timeline, expected);
}

#[test]
fn the_time_of_one_thread_is_its_path() {
    // a: [=|XXX|=i=s|timer|d=]
    check(
        "0 0 .>a S
         10 open a
         20 0 a>X R
         50 0 X>a S
         60 irq a soft 5
         70 0 a>. S
         90 irq . vector 4 1 local_timer
         92 wake . a 0 1
         95 0 .>a S
         100 close a",
        &[
            "a 10+10 running",
            "a 20+30 preempted by X",
            "a 50+10 running",
            "a 60+5 interrupt by soft-name",
            "a 65+5 running",
            "a 70+22 timer by local_timer of a for asleep",
            "a 92+3 dispatch by .",
            "a 95+5 running",
        ],
    );
}

#[test]
fn a_wait_for_a_lock_is_what_its_holder_does_and_so_on() {
    // c wakes b, which holds the lock; b releases it and wakes a.
    check(
        "0 0 .>a S
         0 1 .>b S
         0 2 .>c S
         1 irq c soft 1 2
         5 acquire b L
         10 open a
         20 wait a L
         22 0 a>. S
         25 1 b>X S
         40 wake c b 1 2
         44 1 X>b S
         50 1 b>X R
         55 1 X>b S
         60 release b L
         62 wake b a 0 1
         65 0 .>a S
         66 acquire a L
         70 close a",
        &[
            "a 10+12 running",
            ">b 22+3 running of a for lock 0x4c",
            ">>c 25+15 running of b for asleep",
            ">b 40+4 dispatch by X of a for lock 0x4c",
            ">b 44+6 running of a for lock 0x4c",
            ">b 50+5 preempted by X of a for lock 0x4c",
            ">b 55+7 running of a for lock 0x4c",
            "a 62+3 dispatch by .",
            "a 65+5 running",
        ],
    );
}

#[test]
fn a_packet_that_a_thread_delivers_itself_is_that_threads_doing() {
    let timeline = |before: &str| {
        format!(
            "0 0 .>a S
             0 1 .>b S
             10 open a
             20 0 a>. S
             {before}
             5000 irq b soft 10 1 NET_RX
             5005 wake b a 0 1
             5020 0 .>a S
             5030 close a"
        )
    };
    check(
        &timeline("30 irq b hard 10 1 eth0"),
        &[
            "a 10+10 running",
            ">b 20+10 running of a for asleep",
            ">b 30+10 interrupt by eth0 of a for asleep",
            ">b 40+4960 running of a for asleep",
            ">b 5000+5 interrupt by NET_RX of a for asleep",
            "a 5005+15 dispatch by .",
            "a 5020+10 running",
        ],
    );
    // The one that follows an interrupt, with another softirq in between, does what that one has raised.
    check(
        &timeline("4000 irq b hard 500 1 eth0\n 4700 irq b soft 100 1 SCHED"),
        &[
            "a 10+10 running",
            "a 20+4985 device by NET_RX of a for asleep",
            "a 5005+15 dispatch by .",
            "a 5020+10 running",
        ],
    );
}

#[test]
fn a_thread_that_was_made_in_the_wait_leads_to_its_maker() {
    check(
        "0 0 .>a S
         0 1 .>b S
         1 irq b soft 1 1
         10 open a
         20 0 a>. S
         30 new b c 2 1
         33 2 .>c S
         40 wake c a 0 2
         41 0 .>a S
         45 close a",
        &[
            "a 10+10 running",
            ">>b 20+10 running of c for its birth",
            ">c 30+3 dispatch of a for asleep",
            ">c 33+7 running of a for asleep",
            "a 40+1 dispatch by .",
            "a 41+4 running",
        ],
    );
}

#[test]
fn who_is_not_known_is_said() {
    // Woken by a thread that is not observed; by an interrupt without a record; by nobody.
    check(
        "0 0 .>a S
         0 1 .>X S
         1 irq X soft 1 1
         10 open a
         20 0 a>. S
         30 wake X a 0 1
         31 0 .>a S
         40 0 a>. S
         45 1 X>. S
         50 wake . a 0 1
         51 0 .>a S
         60 0 a>. S
         70 0 .>a S
         80 close a",
        &[
            "a 10+10 running",
            "a 20+10 outside by X of a for asleep",
            "a 30+1 dispatch by .",
            "a 31+9 running",
            "a 40+10 unknown by an interrupt without a record of a for asleep lower bound",
            "a 50+1 dispatch by .",
            "a 51+9 running",
            "a 60+10 unknown by no waking of a for asleep lower bound",
            "a 70+10 running",
        ],
    );
}

#[test]
fn a_loss_on_the_way_marks_what_it_touches() {
    check(
        "0 0 .>a S
         0 1 .>b S
         1 irq b soft 1 1
         10 open a
         20 0 a>. S
         30 lose sched 10
         50 1 b>b R
         55 wake b a 0 1
         60 0 .>a S
         70 close a",
        &[
            "a 10+10 running",
            "a 20+10 unknown by no waking of a for asleep lower bound",
            "a 30+25 unknown by no record lower bound",
            "a 55+5 dispatch",
            "a 60+10 running",
        ],
    );
}

#[test]
fn without_records_of_interrupts_a_waker_may_be_one() {
    check(
        "0 0 .>a S
         0 1 .>b S
         10 open a
         20 0 a>. S
         55 wake b a 0 1
         60 0 .>a S
         70 close a",
        &[
            "a 10+10 running",
            ">b 20+35 running of a for asleep lower bound",
            "a 55+5 dispatch by .",
            "a 60+10 running",
        ],
    );
}

#[test]
fn a_request_that_begins_within_a_call_has_all_of_its_time() {
    // By the error of the clock, which an event has and the kernel's records have not.
    check(
        "0 0 .>a S
         10 futex a wake L 5 done
         12 open a
         20 close a",
        &["a 12+8 running"],
    );
}

#[test]
fn nonsense_tiles_too() {
    for seed in 1..=100 {
        let text = crate::timeline::nonsense(seed);
        let mut mixed = String::new();
        for (i, line) in text.lines().enumerate() {
            let t = line.split_once(' ').expect("a time").0;
            let thread = ["a", "b", "c"][i % 3];
            mixed += line;
            mixed.push('\n');
            if i % 7 == 0 {
                mixed += &format!("{t} {} {thread}\n", ["open", "close"][i / 7 % 2]);
            }
            if i % 5 == 0 {
                let what = ["call-of", "return-of"][i / 5 % 2];
                mixed += &format!("{t} {what} {thread} f {}\n", 100 + i % 3);
            }
        }
        let (rows, _) = run(true, &mixed);
        assert!(!rows.requests.is_empty());
        tiles(&rows);
    }
}
