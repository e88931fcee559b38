use crate::timeline::{nonsense, run};
use ft_trace::Mark;
use ft_trace::tables::{Breakdown, Decomposition, WakePair};
use std::collections::BTreeMap;

fn parts(p: Decomposition) -> String {
    let parts = [("run", p.running_ns), ("pre", p.preempted_ns), ("dis", p.dispatch_ns)];
    let more = [("blk", p.blocked_ns), ("soft", p.softirq_ns), ("?", p.unexplained_ns)];
    let all = [&parts[..], &more].concat();
    all.iter().filter(|(_, ns)| *ns != 0).map(|(what, ns)| format!(" {what}{ns}")).collect()
}

/// `thread place count+begun before-unfinished parts mark`.
fn text(r: &Breakdown) -> String {
    let place = r.call.as_ref().map_or(r.place.word().into(), |call| call.to_string());
    let file = r.waits_for.as_ref().map_or(String::new(), |of| format!("({of})"));
    let fault = r.fault.map_or(String::new(), |kind| format!(" {kind}"));
    let begun = if r.begun_before > 0 { format!("+{}", r.begun_before) } else { String::new() };
    let open = if r.unfinished > 0 { format!("-{}", r.unfinished) } else { String::new() };
    let parts = parts(r.parts.expect("a kernel stream"));
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    let thread = char::from(r.tid.0 as u8);
    format!("{thread} {place}{file}{fault} {}{begun}{open}{parts}{mark}", r.count)
}

/// The parts of each thread's rows sum to its wall time, and no part is negative.
fn check_sums(rows: &[Breakdown], timeline: &str) {
    let mut threads: BTreeMap<_, (i64, i64)> = BTreeMap::new();
    for r in rows {
        let parts = r.parts.expect("a kernel stream");
        assert!(parts.to_array().iter().all(|ns| *ns >= 0), "{r:?}\n{timeline}");
        let (sum, wall) = threads.entry((r.pid, r.tid, r.ts)).or_insert((0, r.wall_ns));
        *sum += parts.total_ns();
        assert_eq!(*wall, r.wall_ns, "{timeline}");
    }
    for (thread, (sum, wall)) in threads {
        assert_eq!(sum, wall, "{thread:?}\n{timeline}");
    }
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    check_sums(&rows.breakdown, timeline);
    assert_eq!(rows.breakdown.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
}

#[test]
fn time_is_that_of_the_call_in_which_it_is_spent() {
    // a  |user 10|read 60: runs 5, blocked 25, dispatch 10, runs 20|user 10|read 5|user 15: softirq 4|
    check(
        "0 0 .>a S
         10 call a read 60 whole pipe 1
         15 0 a>. S
         40 wake X a 0
         50 0 .>a S
         80 call a read 5 whole pipe 1
         90 irq a soft 4
         100 0 a>. X",
        &["a user 0 run31 soft4 censored", "a read(pipe) 2 run30 dis10 blk25 censored"],
    );
}

#[test]
fn the_first_row_says_where_a_thread_was_before() {
    check(
        "0 wake X a 0
         10 0 .>a S
         20 call a read 0 return
         40 call a exit_group 99 entry
         50 0 a>. X",
        &[
            "a read 0+1 run10 dis10 censored",
            "a user 0 run20 censored",
            "a exit_group 1-1 run10 censored",
        ],
    );
    // A new thread begins in the call by which it was made, in which the kernel touches its stack.
    check(
        "0 new X a 0
         10 0 .>a S
         12 fault a 5 minor kernel
         20 call a clone3 0 return
         40 call a exit 99 entry
         50 0 a>. X",
        &[
            "a clone3 0+1 run5 dis10",
            "a clone3(page) minor 1 run5",
            "a user 0 run20",
            "a exit 1-1 run10",
        ],
    );
}

#[test]
fn of_a_thread_without_calls_its_own_events_and_faults_tell() {
    let timeline = |row: &str| format!("0 0 .>b S\n0 1 .>a S\n5 call b read 2\n{row}\n30 1 a>. X");
    let others = ["b user 0 run28 censored", "b read 1 run2 censored"];
    let check =
        |row: &str, expected: &str| check(&timeline(row), &[&[expected], &others[..]].concat());
    check("10 irq a soft 0", "a unknown 0 run30 censored");
    check("10 acquire a L", "a user 0 run30 censored");
    check("10 fault a", "a user 0 run30 censored");
}

#[test]
fn faults_have_their_own_time_in_calls_and_outside() {
    check(
        "0 0 .>a S
         10 fault a 30 major
         15 0 a>. D
         25 wake X a 0
         30 0 .>a S
         50 call a read 40 whole file
         60 fault a 10 minor kernel
         95 fault a
         100 0 a>. X",
        &[
            "a user 0 run30 censored",
            "a user(page) major 1 run15 dis5 blk10 censored",
            "a read(file) 1 run30 censored",
            "a read(page) minor 1 run10 censored",
        ],
    );
}

#[test]
fn a_call_that_goes_on_after_a_signal_is_one() {
    check(
        "0 0 .>a S
         10 call a nanosleep 20 whole - -516
         30 call a restart_syscall 20
         50 call a nanosleep 10 whole - -516
         60 call a rt_sigreturn 10
         70 call a restart_syscall 10
         90 0 a>. X",
        &[
            "a user 0 run20 censored",
            "a nanosleep(timer) 2 run50 censored",
            "a rt_sigreturn 1 run10 censored",
            "a restart_syscall 1 run10 censored",
        ],
    );
}

#[test]
fn what_was_lost_makes_lower_bounds() {
    check(
        "0 0 .>a S
         10 call a read 10
         30 call a write 0 return
         50 0 a>. X",
        &["a user 0 run40 lower bound", "a read 1 run10 lower bound", "a write 0+1 lower bound"],
    );
    check(
        "0 0 .>a S
         10 call a read 10
         30 lose calls 5
         50 0 a>. X",
        &["a user 0 run40 lower bound", "a read 1 run10 lower bound"],
    );
}

#[test]
fn calls_that_do_not_fit_share_a_row() {
    let mut timeline = String::from("0 0 .>a S\n");
    for n in 0..600 {
        timeline += &format!("{} call a c{n} 1\n", 10 + 2 * n);
    }
    timeline += "5000 0 a>. X";
    let (rows, _) = run(true, &timeline);
    check_sums(&rows.breakdown, &timeline);
    assert_eq!(rows.breakdown.len(), 256 - 1);
    let others = rows.breakdown.iter().find(|r| r.call.as_deref() == Some("(others)")).unwrap();
    assert_eq!(others.count, 600 - 253);
    assert_eq!(rows.breakdown.iter().map(|r| r.count).sum::<i64>(), 600);
}

#[test]
fn parts_sum_to_the_wall_time_whatever_the_records_say() {
    for seed in 0..150 {
        let timeline = nonsense(seed);
        let (rows, _) = run(true, &timeline);
        check_sums(&rows.breakdown, &timeline);
    }
}

#[test]
fn without_calls_there_is_no_breakdown() {
    check("0 0 .>a S\n5 fault a 3 minor\n10 0 a>. X", &[]);
}

/// `waker:call -> woken:call count, blocked, longest, dispatch`.
fn pair(r: &WakePair) -> String {
    let call = |call: &Option<ft_trace::ids::Name>, file: Option<ft_trace::tables::FileKind>| {
        let file = file.map_or(String::new(), |file| format!("({file})"));
        format!("{}{file}", call.as_deref().unwrap_or("-"))
    };
    let waker = r.waker_pid.map_or(r.waker_name.to_string(), |pid| pid.to_string());
    let by = call(&r.waker_call, r.waker_file);
    let at = call(&r.call, r.file);
    let times =
        format!("{} blocked{} longest{} dis{}", r.count, r.blocked_ns, r.longest_ns, r.dispatch_ns);
    format!("{} {waker}:{by} -> {}:{at} {times} {}", r.waker, r.pid, r.mark)
}

fn check_pairs(timeline: &str, expected: &[&str]) {
    let (rows, _) = run(true, timeline);
    assert_eq!(rows.wake_pairs.iter().map(pair).collect::<Vec<_>>(), expected, "{timeline}");
}

#[test]
fn a_write_ends_a_read_and_a_timer_a_sleep() {
    check_pairs(
        "0 0 .>a S
         0 1 .>b S
         10 call a read 60 whole pipe
         12 0 a>. S
         30 call b write 10 whole pipe
         35 wake b a 0 1
         45 0 .>a S
         75 call a read 50 whole pipe
         80 0 a>. S
         90 call b write 10 whole pipe
         95 wake b a 0 1
         97 0 .>a S
         130 call a nanosleep 50
         135 0 a>. S
         150 irq b vector 10 1 local_timer
         152 wake b a 0 1
         158 0 .>a S
         200 0 a>. X
         200 1 b>. X",
        &[
            "thread 1:write(pipe) -> 1:read(pipe) 2 blocked38 longest23 dis12 exact",
            "timer local_timer:- -> 1:nanosleep 1 blocked17 longest17 dis6 exact",
        ],
    );
}

#[test]
fn a_waking_that_shows_a_sleep_is_a_pair() {
    // The switch away took the first for the one that wakes it. Without interrupts nobody is sure to be the waker.
    check_pairs(
        "0 0 .>a S
         0 1 .>b S
         10 call a read 60 whole pipe
         11 wake X a 0
         12 0 a>. S!
         30 call b write 10 whole pipe
         35 wake b a 0 1
         45 0 .>a S
         90 0 a>. X
         90 1 b>. X",
        &["thread 1:write(pipe) -> 1:read(pipe) 1 blocked23 longest23 dis10 lower bound"],
    );
}

#[test]
fn pairs_that_do_not_fit_share_a_row() {
    const PAIRS: i64 = 16_500;
    let mut timeline = String::from("0 0 .>a S\n0 1 .>b S\n");
    for n in 0..PAIRS {
        let at = 10 + 20 * n;
        // Of each thread no more calls than it tells apart, but all pairs of them.
        let (woken, waker) = (n / 130, n % 130);
        timeline += &format!("{at} call a d{woken} 14\n{} 0 a>. S\n", at + 1);
        timeline += &format!("{} call b c{waker} 3\n{} wake b a 0 1\n", at + 5, at + 7);
        timeline += &format!("{} 0 .>a S\n", at + 10);
    }
    let (rows, _) = run(true, &timeline);
    assert_eq!(rows.wake_pairs.len(), 16_384);
    let others: Vec<_> = rows.wake_pairs.iter().filter(|r| &*r.waker_name == "(others)").collect();
    let [others] = others[..] else { panic!("{others:?}") };
    assert_eq!((others.waker, others.waker_pid), (ft_trace::tables::WakerKind::Unknown, None));
    assert_eq!(others.count, PAIRS - 16_383);
    // What is summed of them is what each had: 6 ns off the CPU, 3 until it was back.
    assert_eq!((others.blocked_ns, others.dispatch_ns), (6 * others.count, 3 * others.count));
    assert_eq!(rows.wake_pairs.iter().map(|r| r.count).sum::<i64>(), PAIRS);
}

#[test]
fn what_is_not_known_of_a_pair_is_left_open() {
    // X is not observed, and without interrupts nobody is sure to be the waker; where a was blocked when the recording began is not known.
    check_pairs(
        "0 0 .>a S
         0 1 .>X S
         2 0 a>. S
         5 wake X a 0 1
         10 0 .>a S
         12 call a read 10 whole socket
         14 0 a>. S
         20 wake X a 0 1
         24 0 .>a S
         50 0 a>. X",
        &["thread 9:- -> 1:read(socket) 1 blocked6 longest6 dis4 lower bound"],
    );
}
