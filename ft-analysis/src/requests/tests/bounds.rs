//! Of what there is too much: requests, pieces of paths, and what threads did.

use super::*;
use crate::requests::history::Wake;
use crate::requests::keyed::MAX_OPEN_REQUESTS;
use crate::world::{Culprit, Stretch, Unknown};
use ft_trace::ids::{Pid, ThreadKey, Tid};
use ft_trace::tables::Part;

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

fn walk(history: &History, thread: ThreadKey, from: i64, to: i64) -> Vec<Piece> {
    let past = Past { history, tasks: &Tasks::default(), of_tasks: Mark::Exact };
    path::walk(past, thread, None, from, to)
}

/// Each sleeps until the next one wakes it, more of them than are followed.
#[test]
fn of_waits_for_each_other_the_innermost_is_not_looked_into() {
    let thread = |n: i64| ThreadKey { pid: Pid(1), tid: Tid(n as i32) };
    let mut history = History::new(1 << 20);
    let (threads, end) = (300, 1000);
    for n in 0..threads {
        // Woken by the next one, it runs for 1 ns, and wakes the one before.
        let woken = end - n;
        let asleep = running_by_turns(thread(n), 0);
        history.add(&Stretch { from: 0, to: woken, part: Part::Blocked, ..asleep.clone() }, 0);
        history.add(&Stretch { from: woken, to: woken + 1, ..asleep }, 0);
        let waker = Waker::Thread(thread(n + 1));
        history.woken(thread(n), Wake { ts: woken, waker, birth: false, mark: Mark::Exact }, 0);
    }
    let path = walk(&history, thread(0), 0, end);
    assert_eq!(path.iter().map(Piece::len_ns).sum::<i64>(), end);
    let innermost = &path[0];
    assert_eq!((innermost.depth, innermost.len_ns()), (256, end - 256));
    assert_eq!((innermost.kind, innermost.mark), (PathKind::Unknown, Mark::LowerBound));
    assert_eq!(innermost.culprit, Some(Culprit::Unknown(Unknown::TooManyWaits)));
    assert!(path[1..].iter().all(|piece| piece.kind == PathKind::Running), "{path:?}");
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
    let path = walk(&history, thread, 0, 200_000);
    assert_eq!(path.iter().map(Piece::len_ns).sum::<i64>(), 200_000);
    let first = &path[0];
    assert_eq!((first.kind, first.mark), (PathKind::Unknown, Mark::LowerBound));
    assert_eq!(first.culprit, Some(Culprit::Unknown(Unknown::NotKept)));
    assert!((1000..8192).contains(&(path.len() - 1)), "{}", path.len());
}

#[test]
fn what_was_never_recorded_is_not_what_is_not_kept() {
    let (thread, other) = threads();
    let mut history = History::new(8192);
    (0..20_000).for_each(|i| history.add(&running_by_turns(thread, i), 0));
    let path = walk(&history, other, 200_000, 200_010);
    let found: Vec<_> = path.iter().map(|p| (p.kind, p.culprit.clone(), p.len_ns())).collect();
    let why = Some(Culprit::Unknown(Unknown::NoRecord));
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
    let path = walk(&history, sleeper, 0, end);
    assert_eq!(path.iter().map(Piece::len_ns).sum::<i64>(), end);
    assert_eq!((path[1].thread, path[1].depth), (waker, 1));
    let first = &path[0];
    assert_eq!((first.thread, first.depth, &first.wait), (sleeper, 0, &None));
    assert_eq!(first.culprit, Some(Culprit::Unknown(Unknown::TooManyPieces)));
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
fn of_too_many_requests_with_one_key_those_that_began_first_are_forgotten() {
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let n = MAX_OPEN_REQUESTS as i64;
    let begins: String = (0..n + 5).map(|i| format!("{} begin a 7\n", 10 + i)).collect();
    let ends: String = (0..n + 1).map(|i| format!("{} answer a 7\n", 10 + n + 5 + i)).collect();
    let (rows, tally) = run_asking(&[by_key], &format!("0 0 .>a S\n{begins}{ends}"));
    let first = rows.requests.iter().map(|r| r.ts.0).min();
    assert_eq!((rows.requests.len() as i64, first), (n, Some(15)));
    assert_eq!((tally.requests.unpaired.too_many, tally.requests.unpaired.end_only), (5, 1));
}

/// Process 9 begins requests without end, and has begun one with the key of process 1's, too.
#[test]
fn a_process_that_begins_requests_without_end_costs_no_other_its_own() {
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let n = MAX_OPEN_REQUESTS as i64 + 5;
    let flood: String = (0..n).map(|i| format!("{} begin X {i}\n", 20 + i)).collect();
    let honest = "5 begin a 7\n 6 begin a 70000\n";
    let ends = format!("{} answer a 7\n {0} answer a 70000\n {0} answer X 0", 20 + n);
    let timeline = format!("0 0 .>a S\n{honest}{flood}{ends}");
    let (rows, tally) = run_asking(&[by_key], &timeline);
    let found: Vec<_> = rows.requests.iter().map(|r| (r.ts.0, r.pid, r.key)).collect();
    assert_eq!(found, [(5, Pid(1), Some(7)), (6, Pid(1), Some(70_000))]);
    let unpaired = tally.requests.unpaired;
    assert_eq!((unpaired.too_many, unpaired.end_only), (7, 1));
}

/// Processes 9 and 1 share the room; the one that has more of it makes room.
#[test]
fn of_two_processes_with_too_many_requests_the_one_with_more_loses_its_oldest() {
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let half = MAX_OPEN_REQUESTS as i64 / 2;
    let begins = |thread: &'static str, from: i64, n: i64| {
        (0..n).map(move |i| format!("{} begin {thread} {i}\n", from + i)).collect::<String>()
    };
    let flood = begins("X", 10, half + 1) + &begins("a", 50_000, half);
    let ends = "90000 answer a 0\n 90000 answer X 0\n 90000 answer X 1";
    let (rows, tally) = run_asking(&[by_key], &format!("0 0 .>a S\n{flood}{ends}"));
    let found: Vec<_> = rows.requests.iter().map(|r| (r.pid, r.key)).collect();
    assert_eq!(found, [(Pid(1), Some(0)), (Pid(9), Some(1))]);
    assert_eq!((tally.requests.unpaired.too_many, tally.requests.unpaired.end_only), (1, 1));
}

/// Requests within each other, around many pieces of their thread's time: to walk through all of these for each would cost
/// the product of both.
#[test]
fn of_requests_whose_paths_would_cost_too_much_the_last_have_none() {
    const REQUESTS: i64 = 64;
    const TURNS: i64 = 4000;
    let mut text = "0 0 .>a S\n".to_owned();
    (0..REQUESTS).for_each(|n| text += &format!("{} begin a {n}\n", 1 + n));
    for n in 0..TURNS {
        let at = 1000 + 20 * n;
        text += &format!("{at} 0 a>X R\n{} 0 X>a S\n", at + 10);
    }
    // Each that ends is longer than all before.
    let end = 1000 + 20 * TURNS;
    (0..REQUESTS).for_each(|n| text += &format!("{} answer a {}\n", end + n, REQUESTS - 1 - n));
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let (rows, tally) = run_asking(&[by_key], &text);
    tiles(&rows);
    assert_eq!(rows.requests.len() as i64, REQUESTS);
    let without = rows.requests.iter().filter(|r| r.path_running_ns.is_none()).count() as u64;
    // Those before were looked at in 8,000 pieces each, within twice the bound and the one that exceeds it.
    let pieces = 2 * TURNS as u64;
    let most = 2 * (FREE_PIECES + PER_PIECE * (pieces + 2)) / pieces + 2;
    assert!(without > 0 && REQUESTS as u64 - without <= most, "{without} of {REQUESTS}, {most}");
    assert_eq!(tally.requests.without_path, without);
}
