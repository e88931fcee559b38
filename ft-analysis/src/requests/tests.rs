//! Requests of drawn timelines, and their paths.

mod probes;
mod random;

use super::*;
use crate::timeline::{run, run_asking};
use crate::world::{Culprit, Stretch};
use ft_trace::Mark;
use ft_trace::ids::{Pid, Tid};
use ft_trace::tables::Part;

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
fn requests_are_the_outermost_scopes_and_those_that_are_named() {
    let timeline = "0 0 .>a S
         10 open a
         20 enter a
         30 leave a
         40 close a
         50 enter a
         60 leave a";
    let kinds = |asked: &[RequestKind]| -> Vec<String> {
        let (rows, tally) = run_asking(asked, timeline);
        assert_eq!(tally.requests.requests, rows.requests.len() as u64);
        assert_eq!(tally.requests.asked, asked);
        rows.requests.iter().map(|r| format!("{} {}+{}", r.kind, r.ts, r.dur)).collect()
    };
    assert_eq!(kinds(&[]), ["work.outer 10+30", "work.inner 50+10"]);
    let named = RequestKind::parse("work.inner", None).expect("a scope");
    assert_eq!(kinds(&[named]), ["work.inner 20+10", "work.outer 10+30", "work.inner 50+10"]);
}

#[test]
fn a_request_that_moves_is_followed_by_its_key() {
    let by_key = RequestKind::parse("http.begin, http.end", Some("id")).expect("two events");
    let (rows, tally) = path_of(
        std::slice::from_ref(&by_key),
        "0 0 .>a S
         0 1 .>b S
         1 irq b soft 1 1
         5 1 b>. S
         10 begin a 7
         12 begin a 8
         20 wake a b 1 0
         21 1 .>b S
         30 answer b 8
         32 answer b 7
         33 answer b 7",
        &[
            ">a 12+8 running of b for asleep",
            "b 20+1 dispatch by .",
            "b 21+9 running",
            ">a 10+10 running of b for asleep",
            "b 20+1 dispatch by .",
            "b 21+11 running",
        ],
    );
    let found: Vec<_> = rows.requests.iter().map(|r| (r.key, r.tid.0, r.end_tid.0)).collect();
    assert_eq!(found, [(Some(8), 97, 98), (Some(7), 97, 98)]);
    assert!(rows.requests.iter().all(|r| r.parts.is_none() && r.agent_ns.is_none()));
    assert_eq!(tally.requests.unpaired, Unpaired { end_only: 1, ..Unpaired::default() });
    // Without the key, the events of one thread belong together.
    let alone = RequestKind::parse("http.begin,http.end", None).expect("two events");
    let (rows, tally) = run_asking(
        &[alone],
        "0 0 .>a S\n 10 begin a 1\n 20 begin a 2\n 30 answer a 9\n 40 answer b 9\n 50 answer a 9",
    );
    let found: Vec<_> = rows.requests.iter().map(|r| (r.ts.0, r.dur, r.key)).collect();
    assert_eq!(found, [(20, 10, None), (10, 40, None)]);
    assert!(rows.requests.iter().all(|r| r.parts.is_some_and(|p| p.total_ns() == r.dur)));
    assert_eq!(tally.requests.unpaired.end_only, 1);
}

#[test]
fn what_has_no_end_is_counted() {
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let (rows, tally) = run_asking(
        &[by_key],
        "0 0 .>a S\n 10 open a\n 20 enter a\n 30 lose ring 5 a\n 40 begin a 3\n 50 open a\n 60 exit a",
    );
    assert!(rows.requests.is_empty());
    let expected = Unpaired { begin_only: 2, open_at_loss: 1, ..Unpaired::default() };
    assert_eq!(tally.requests.unpaired, expected);
}

#[test]
fn without_a_kernel_there_are_lengths_alone() {
    let open = "10 open a\n";
    assert!(!crate::timeline::feed(false, open).analysis_mut().follows());
    assert!(crate::timeline::feed(true, open).analysis_mut().follows());
    let (rows, tally) = run(false, &format!("{open} 20 close a"));
    let request = &rows.requests[0];
    assert_eq!((request.dur, request.parts, request.path_pieces), (10, None, None));
    assert_eq!((rows.critical_path.len(), tally.requests.without_path), (0, 0));
}

#[test]
fn what_is_no_request_says_why() {
    let sites = crate::timeline::sites();
    let check = |text: &str, key: Option<&str>, expected: &str| {
        let found = RequestKind::parse(text, key).and_then(|kind| kind.check(&sites));
        let found = found.map_or_else(|why| why.to_string(), |()| String::new());
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{found}");
    };
    check("http.begin,http.end", Some("id"), "");
    check("work.inner", None, "");
    check("", None, "`` names no request: give");
    check("a,b,c", None, "`a,b,c` names no request");
    check(
        "work.inner",
        Some("id"),
        "scope `work.inner` ends on the thread that began it: leave out",
    );
    check("http.begin", None, "the trace has no `http.begin`: `ft-agent events");
    check("http.begin,x", None, "the trace has no `x`");
    check(
        "http.begin,http.end",
        Some("x"),
        "`x` is not among the first three arguments of `http.begin`",
    );
}

#[test]
fn only_the_slowest_have_their_path_in_the_table() {
    let mut text = "0 0 .>a S\n".to_owned();
    let n = 3 * SLOWEST as i64;
    for i in 0..n {
        // The longest first.
        let from = 10 + i * 10_000;
        text += &format!("{from} open a\n{} close a\n", from + 5000 - i);
    }
    let (rows, _) = run(true, &text);
    assert_eq!(rows.requests.len() as i64, n);
    assert_eq!(rows.critical_path.len(), SLOWEST);
    assert!(rows.critical_path.iter().all(|p| p.request < SLOWEST as i64));
}

fn threads() -> (ThreadKey, ThreadKey) {
    let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
    (thread(97), thread(98))
}

/// The nth piece of a thread that has the CPU for 10 ns, loses it for 10 ns, and so on.
fn running_by_turns(thread: ThreadKey, n: i64) -> Stretch {
    let part = if n % 2 == 0 { Part::Running } else { Part::Preempted };
    let (from, to) = (10 * n, 10 * n + 10);
    Stretch { thread, from, to, part, culprit: Culprit::Nobody, mark: Mark::Exact }
}

#[test]
fn what_is_not_kept_is_unknown_and_says_so() {
    let (thread, _) = threads();
    let mut history = History::new(8192);
    (0..20_000).for_each(|i| history.add(&running_by_turns(thread, i), 0));
    let path = path::walk(&history, thread, 0, 200_000);
    assert_eq!(path.iter().map(Piece::len_ns).sum::<i64>(), 200_000);
    let first = &path[0];
    assert_eq!((first.kind, first.mark), (PathKind::Unknown, Mark::LowerBound));
    assert_eq!(first.culprit, Some(Culprit::Cause("not kept", None)));
    assert!((1000..8192).contains(&(path.len() - 1)), "{}", path.len());
}

#[test]
fn what_was_never_recorded_is_not_what_is_not_kept() {
    let (thread, other) = threads();
    let mut history = History::new(8192);
    (0..20_000).for_each(|i| history.add(&running_by_turns(thread, i), 0));
    let path = path::walk(&history, other, 200_000, 200_010);
    let found: Vec<_> = path.iter().map(|p| (p.kind, p.culprit.clone(), p.len_ns())).collect();
    let why = Some(Culprit::Cause("no record", None));
    assert_eq!(found, [(PathKind::Unknown, why, 10)]);
}

#[test]
fn what_a_path_has_no_room_for_is_told_of_the_requests_own_thread() {
    let (sleeper, waker) = threads();
    let mut history = History::new(1 << 20);
    let end = 10 * 70_000;
    (0..70_000).for_each(|i| history.add(&running_by_turns(waker, i), 0));
    let asleep = running_by_turns(sleeper, 0);
    history.add(&Stretch { to: end, part: Part::Blocked, ..asleep }, 0);
    let wake = Wake { ts: end, waker: Waker::Thread(waker), birth: false, mark: Mark::Exact };
    history.woken(sleeper, wake, 0);
    let path = path::walk(&history, sleeper, 0, end);
    assert_eq!(path.iter().map(Piece::len_ns).sum::<i64>(), end);
    assert_eq!((path[1].thread, path[1].depth), (waker, 1));
    let first = &path[0];
    assert_eq!((first.thread, first.depth, &first.wait), (sleeper, 0, &None));
    assert_eq!(first.culprit, Some(Culprit::Cause("too many pieces", None)));
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
fn requests_with_a_key_are_bounded_and_counted() {
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let n = MAX_OPEN_REQUESTS as i64 + 5;
    let text: String = (0..n).map(|i| format!("{} begin a {i}\n", 10 + i)).collect();
    let ends = format!("{} answer a 0\n{0} answer a {}", 10 + n, n - 1);
    let (rows, tally) = run_asking(&[by_key], &format!("0 0 .>a S\n{text}{ends}"));
    assert_eq!(rows.requests.len(), 1);
    let unpaired = tally.requests.unpaired;
    assert_eq!((unpaired.too_many, unpaired.end_only), (5, 1));
    assert_eq!(unpaired.begin_only as usize, MAX_OPEN_REQUESTS - 1);
}

#[test]
fn nonsense_tiles_too() {
    for seed in 1..=300 {
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
