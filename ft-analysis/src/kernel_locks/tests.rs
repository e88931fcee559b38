use crate::RequestKind;
use crate::timeline::{nonsense, run, run_asking};
use ft_trace::Mark;
use ft_trace::tables::KernelLockWait;

/// `thread kind@lock ts+dur end`, and what is not 0 or not usual.
fn text(r: &KernelLockWait) -> String {
    let letter = |n: i32| if n == 0 { '.' } else { char::from(n as u8) };
    let p = r.parts.expect("a kernel stream");
    let parts = [
        ("run", p.running_ns),
        ("pre", p.preempted_ns),
        ("dis", p.dispatch_ns),
        ("slp", p.blocked_ns),
        ("irq", p.softirq_ns),
        ("?", p.unexplained_ns),
    ];
    let parts: String =
        parts.iter().filter(|(_, ns)| *ns != 0).map(|(what, ns)| format!(" {what}{ns}")).collect();
    let nested = if r.nested { " nested" } else { "" };
    let woken = r.woken_ns.map_or(String::new(), |ns| {
        format!(" by {} after {ns}", letter(r.waker_tid.expect("a waker")))
    });
    let hold = r.hold_place.as_ref().map_or(String::new(), |place| {
        let lock = char::from(r.hold_lock.expect("a lock") as u8);
        format!(" holding {lock} at {place}, {} deep", r.depth)
    });
    let request = r.request.as_ref().map_or(String::new(), |name| format!(" in {name}"));
    let stack = r.stack.map_or(String::new(), |stack| format!(" from {stack}"));
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    let (thread, at) = (letter(r.tid.0), letter(r.lock as i32));
    let head = format!("{thread} {}@{at} {}+{} {}", r.kind, r.ts, r.dur, r.end);
    format!("{head}{parts}{nested}{woken}{hold}{request}{stack}{mark}")
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows.kernel_lock_waits.iter().map(text).collect::<Vec<_>>(), expected, "{timeline}");
    assert_eq!(tally.kernel_waits, rows.kernel_lock_waits.len() as u64);
    for r in &rows.kernel_lock_waits {
        assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.dur);
    }
}

#[test]
fn a_wait_spins_sleeps_is_woken_and_waits_for_a_cpu() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 contend a mutex 90 M acquired 3
         25 0 a>X D
         60 wake b a 0
         70 0 X>a R
         130 0 a>. S",
        &["a mutex@M 10+90 acquired run45 dis10 slp35 by b after 50 from 3"],
    );
}

#[test]
fn a_waking_after_one_on_the_way_to_sleep_shows_that_it_slept() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 contend a mutex 90 M acquired
         15 wake X a 0
         25 0 a>X D!
         60 wake b a 0
         70 0 X>a R
         130 0 a>. S",
        &["a mutex@M 10+90 acquired run45 dis45 by b after 50 lower bound"],
    );
}

#[test]
fn a_wait_shows_that_its_thread_runs_unseen() {
    // Of the switch back to a, only what it does tells.
    let trace = "0 0 .>a S
         20 0 a>X R
         100 contend a mutex 30 M acquired
         150 0 a>. S";
    check(trace, &["a mutex@M 100+30 acquired run30 lower bound"]);
    assert_eq!(run(true, trace).1.ran_unseen, 1);
}

#[test]
fn of_a_cpu_whose_thread_is_not_known_nobody_can_say_what_the_agent_had() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 contend a mutex 90 M acquired
         25 0 a>X D
         60 wake b a 3
         70 3 Y>a R
         130 3 a>. S",
        &["a mutex@M 10+90 acquired run45 dis10 slp35 by b after 50 lower bound"],
    );
}

#[test]
fn what_only_spins_runs_and_interrupts_are_told_apart() {
    check(
        "0 0 .>a S
         10 contend a spinlock 40 L
         20 irq a soft 15
         60 0 a>. S",
        &["a spinlock@L 10+40 acquired run25 irq15"],
    );
}

#[test]
fn a_wait_within_a_wait_says_so() {
    //        10   20    30        50   60
    // mutex  |--------------------|
    // its queue's spinlock  |-|
    check(
        "0 0 .>a S
         10 contend a mutex 40 M
         20 contend a spinlock 10 L
         50 contend a rwsem-read 10 R
         70 0 a>. S",
        &[
            "a spinlock@L 20+10 acquired run10 nested",
            "a mutex@M 10+40 acquired run40",
            "a rwsem-read@R 50+10 acquired run10",
        ],
    );
}

#[test]
fn the_lock_that_is_held_and_the_request_are_those_of_the_begin() {
    check(
        "0 0 .>a S
         5 open a
         6 enter a
         7 acquire a A 1
         8 acquire a B 2
         10 contend a rwsem-write 20 M
         12 release a B
         15 leave a
         16 close a
         40 contend a mutex 5 M
         50 release a A
         60 contend a mutex 5 M
         70 0 a>. S",
        &[
            "a rwsem-write@M 10+20 acquired run20 holding B at x.rs:2, 2 deep in work.outer",
            "a mutex@M 40+5 acquired run5 holding A at x.rs:1, 1 deep",
            "a mutex@M 60+5 acquired run5",
        ],
    );
}

#[test]
fn a_request_between_two_events_is_that_of_a_thread_unless_it_has_a_key() {
    let timeline = "0 0 .>a S
         5 begin a 7
         10 contend a mutex 20 M
         40 answer a 7
         50 contend a mutex 20 M
         80 0 a>. S";
    let requests = |asked: &str| {
        let (name, key) =
            asked.split_once(' ').map_or((asked, None), |(name, key)| (name, Some(key)));
        let asked = RequestKind::parse(name, key).expect("a kind of request");
        let (rows, _) = run_asking(&[asked], timeline);
        let requests =
            rows.kernel_lock_waits.iter().map(|r| r.request.as_ref().map(|r| r.to_string()));
        requests.collect::<Vec<_>>()
    };
    assert_eq!(requests("http.begin,http.end"), [Some("http.begin,http.end".to_owned()), None]);
    assert_eq!(requests("http.begin,http.end id"), [None, None]);
}

#[test]
fn what_does_not_end_ends_with_its_thread_or_the_trace() {
    check(
        "0 0 .>a S
         0 7 .>b S
         10 contend a mutex 999 M unfinished
         12 0 a>. D
         20 contend b mutex 20 M failed
         45 contend b rwsem-read 999 R unfinished
         50 7 b>. D
         55 exit a
         60 0 .>X S",
        &[
            "b mutex@M 20+20 failed run20",
            "a mutex@M 10+45 thread run2 slp43",
            "b rwsem-read@R 45+15 trace run5 slp10 censored",
        ],
    );
}

#[test]
fn ends_alone_and_waits_of_others_are_counted() {
    let (rows, tally) = run(
        true,
        "0 0 .>a S
         10 contend a unknown 0 M end-only
         20 contend X mutex 5 M
         20 contend . spinlock 5 M",
    );
    assert_eq!(rows.kernel_lock_waits, []);
    assert_eq!((tally.kernel_waits_without_begin, tally.kernel_waits_of_others), (1, 2));
}

#[test]
fn a_loss_makes_the_parts_lower_bounds() {
    check(
        "0 0 .>a S
         10 contend a mutex 40 M
         12 0 a>. D
         20 lose sched 5
         60 0 .>a S",
        &["a mutex@M 10+40 acquired run2 slp8 ?30 lower bound"],
    );
}

#[test]
fn interrupts_that_are_missing_while_it_runs_make_the_parts_lower_bounds() {
    check(
        "0 0 .>a S
         5 lose irq 15
         10 contend a spinlock 40 M
         60 0 a>. S",
        &["a spinlock@M 10+40 acquired run30 ?10 lower bound"],
    );
}

#[test]
fn more_waits_than_can_enclose_each_other_end_the_outermost() {
    let waits: String =
        (0..17).map(|i| format!("{} contend a mutex {} M\n", 10 + i, 100 - i)).collect();
    let (rows, _) = run(true, &format!("0 0 .>a S\n{waits}\n200 0 a>. S"));
    let found: Vec<_> = rows.kernel_lock_waits.iter().map(|r| (r.ts.0, r.dur)).collect();
    assert_eq!(found.len(), 17);
    assert_eq!(found[0], (10, 16), "ended when the last began");
}

#[test]
fn parts_sum_whatever_comes() {
    let mut waits = 0;
    for seed in 1..150 {
        let timeline = nonsense(seed);
        let (rows, _) = run(true, &timeline);
        waits += rows.kernel_lock_waits.len();
        for r in &rows.kernel_lock_waits {
            assert!(r.dur >= 0, "{r:?}");
            assert_eq!(r.parts.expect("a kernel stream").total_ns(), r.dur, "{seed}: {r:?}");
        }
    }
    assert!(waits > 300, "{waits}");
}
