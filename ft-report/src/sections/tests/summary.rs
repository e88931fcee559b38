//! The summary: what it says of a small trace, and of one that lacks something.

use super::super::head::Readers;
use super::super::preempted::Preemptor;
use super::super::quality::LossPlace;
use super::*;
use crate::code::Code;
use crate::document::IntoText;
use ft_analysis::Samples;
use ft_trace::tables::{LockKind, LossOrigin};

#[test]
fn the_summary_of_a_small_trace() {
    let head = Head {
        trace: "trace".into(),
        duration_ns: Some(1_234_567_890),
        command: vec!["./demo".into(), "--fast".into()],
        system_wide: false,
        host: "host".into(),
        kernel: "6.18.0".into(),
        kernel_groups: vec!["sched".into(), "irq".into()],
        missing: Vec::new(),
        events: 21,
        clock_bound_ns: 41,
        clock_checked: 9,
        clock_violations: 0,
        time_of_day: None,
        start_at: None,
        counting: None,
        lost_user_events: 0,
        lost_kernel_records: 3,
        missing_switches: 0,
        unreachable: false,
        unreached_unknown: false,
        refused: 0,
        samples: Samples::default(),
        readers: Some(Readers { user: 7, group: false, all: false }),
        recording: None,
        quality: Quality {
            unknown_places: 0,
            clock_bound_median_ns: 35,
            clock_bound_max_ns: 41,
            clock_segments: 14,
            not_whole_ns: 34_567_890,
            recorded_ns: 1_234_567_890,
            coverage: Some(0.972),
            loss_places: 1,
            losses: vec![LossPlace {
                origin: LossOrigin::Kernel,
                what: "sched_switch".into(),
                cpu: 1,
                pid: -1,
                tid: -1,
                from_ns: 7_000_000,
                to_ns: 41_567_890,
                after_ns: 6_000_000,
                count: 3,
            }],
        },
        warnings: vec!["something is odd; do this".into_text()],
    };
    let (rows, tally) = run(true, TIMELINE);
    let sections = vec![answers_of(rows, &tally).section()];
    let json = serde_json::to_value(&sections[0].values).expect("values");
    assert_eq!((&json["holds"]["count"], &json["nested_holds"]), (&4.into(), &1.into()), "{json}");
    assert_eq!(json["later_than"], serde_json::json!([1_000_000, 0]));
    let text = Document { begin_ns: 0, head: head.section(), sections }.to_string();
    check("summary", &text, include_str!("../golden/summary.txt"));
}

/// After a loss of its events, a thread may hold more locks than are known.
#[test]
fn the_summary_says_that_holds_may_be_nested_that_do_not_look_so() {
    let (rows, tally) = run(true, TIMELINE);
    let mut answers = answers_of(rows, &tally);
    let nested = |answers: &Answers| {
        let text = format!("{:400}", answers.section());
        [" locks, 25.0 % nested", " locks, at least 25.0 % nested"].map(|said| text.contains(said))
    };
    assert_eq!(nested(&answers), [true, false], "{:400}", answers.section());
    answers.locks.depth_lower_bounds = 1;
    assert_eq!(nested(&answers), [false, true]);
}

/// A lock with readers and writers is in two groups.
#[test]
fn the_summary_counts_a_lock_once_however_it_is_held() {
    let (rows, tally) = run(
        true,
        "0 0 .>a S
        10 read a L
        20 release a L
        30 acquire a L
        40 release a L
        50 0 a>. S",
    );
    let answers = answers_of(rows, &tally);
    assert_eq!(answers.locks.locks.len(), 2, "{:?}", answers.locks.locks);
    let text = format!("{:400}", answers.section());
    assert!(text.contains("2 holds of 1 lock, "), "{text}");
}

/// Whatever a thread slept for: no cause is named that is not recorded.
#[test]
fn the_summary_without_holds_says_how_long_threads_were_blocked_and_what_would_say_at_what() {
    let summary = |timeline: &str, change: fn(&mut Answers)| {
        let (rows, tally) = run(true, timeline);
        let mut answers = answers_of(rows, &tally);
        change(&mut answers);
        format!("{:400}", answers.section())
    };
    let sleeps = "0 0 .>a S
        4000 0 a>X S
        7000 wake X a 0
        8000 0 X>a S
        10000 0 a>. S";
    let text = summary(sleeps, |_| ());
    let blocked = "no hold was recorded; threads were blocked for 3.00 µs in all, 30.0 % of their time; whether that was at locks";
    let futex = "was not recorded: -k default,futex records waits at futexes and semaphores";
    let expected = format!("{blocked} {futex}, --preload those for pthread locks\n");
    assert!(text.contains(&expected), "{text}");
    // The first screen has named the locks.
    let text = summary(sleeps, |answers| answers.sleeps = true);
    let expected = "30.0 % of their time; `ft-agent findings` says at what: -k default,futex";
    assert!(text.contains(expected) && !text.contains("not recorded:"), "{text}");
    // Locks of pthread would have been seen.
    let text = summary(sleeps, |answers| answers.preload = true);
    assert!(text.contains(&format!("{blocked} that --preload does not see {futex}\n")), "{text}");
    // What there was is in the answer of its own.
    let text = summary(sleeps, |answers| {
        answers.futexes = futexes::Futexes::default().finish(true, true);
    });
    assert!(text.contains("no hold was recorded\n"), "{text}");
    // Nobody slept; and somebody did while records were lost.
    let text = summary("0 0 .>a S", |_| ());
    assert!(text.contains("no hold was recorded; what threads of any program wait for"), "{text}");
    let text = summary(&sleeps.replace("8000 0", "7500 lose sched 100\n8000 0"), |_| ());
    assert!(text.contains("; threads were blocked for at least "), "{text}");
}

#[test]
fn the_summary_tells_of_tasks_and_functions_where_there_are_any() {
    let summary = |timeline: &str| {
        let (rows, tally) = run(true, timeline);
        answers_of(rows, &tally).section()
    };
    let none = summary("0 0 .>a S");
    let text = format!("{none:200}");
    assert!(!text.contains("tasks") && !text.contains("functions"), "{text}");
    let json = serde_json::to_value(&none.values).expect("values");
    assert!(json.get("tasks").is_none() && json.get("calls").is_none(), "{json}");
    let some = summary(
        "0 0 .>a S
         10 make a 7 3
         20 make a 8 4
         30 run a 8
         40 rouse a 7
         140 ran a 8 1
         150 run a 7
         200 ran a 7 1
         300 in a F 90
         350 in a G 80
         380 out a G 80
         400 out a F 90",
    );
    let text = format!("{some:200}");
    for line in [
        "2 tasks, 310 ns in all: polled 51.6 %, queued 35.5 %, waiting 0 %; the longest poll 110 ns of 'x.rs:4'",
        "'x.rs:3' queued 1 time behind 'x.rs:4': 100 ns, at most 100 ns",
        "2 calls, 100 ns inside the outermost",
        "70.0 % of it in '0x46' itself, in 1 call",
        "30.0 % of it in '0x47' itself, in 1 call",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json = serde_json::to_value(&some.values).expect("values");
    assert_eq!((&json["tasks"], &json["calls"]), (&2.into(), &2.into()), "{json}");
    // Calls without ends alone, and beside others.
    let entered = "0 0 .>a S\n 10 called a E 95\n 20 called a E 95";
    let text = format!("{:200}", summary(entered));
    assert!(text.contains("functions 2 calls of which no end is recorded\n"), "{text}");
    assert!(!text.contains("inside the outermost"), "{text}");
    let both = format!("{entered}\n 30 in a F 90\n 40 out a F 90");
    let text = format!("{:200}", summary(&both));
    assert!(text.contains("functions 1 call, 10 ns inside the outermost\n"), "{text}");
    assert!(text.contains("besides, 2 calls of which no end is recorded\n"), "{text}");
}

/// Nobody in particular holds a semaphore, so its waits are none of those that somebody is blamed for.
#[test]
fn the_summary_says_how_long_threads_waited_for_semaphores() {
    let (rows, tally) = run(true, TIMELINE);
    let mut answers = answers_of(rows, &tally);
    assert!(!format!("{:200}", answers.section()).contains("semaphore"));
    let locks = &mut answers.locks.locks;
    let waited = locks.iter_mut().find(|lock| lock.waits > 0).expect("a lock that was waited for");
    waited.kind = LockKind::Semaphore.word().into();
    let text = format!("{:200}", answers.section());
    assert!(text.contains("1 more for a semaphore, 6.10 µs in all"), "{text}");
    answers.waits = Waits::default().finish(&tally);
    let text = format!("{:200}", answers.section());
    assert!(text.contains("waits     1 wait for a semaphore, 6.10 µs in all"), "{text}");
}

/// The first of a list is not most of it.
#[test]
fn the_summary_does_not_take_the_longest_for_most() {
    let (rows, tally) = run(true, TIMELINE);
    let mut answers = answers_of(rows, &tally);
    let said = |answers: &Answers, words: &str| {
        let text = format!("{:400}", answers.section());
        assert!(text.contains(words), "{words}: {text}");
    };
    let w = &mut answers.dispatch.worst[0];
    (w.comm, w.tid, w.dur_ns) = ("c".into(), 7, 9_000);
    (w.behind, w.behind_tid, w.behind_ns) = (Some("c".into()), Some(8), Some(1_000));
    said(&answers, "'c 7' waited 9.00 µs, 1.00 µs of it behind 'c 8'\n");
    let hold = &mut answers.locks.longest[0];
    hold.preemptor_ns = Some(1_234);
    said(&answers, "4.00 µs of it preempted, longest by 'X': 1.23 µs\n");
    let first = &answers.preempted.preemptors[0];
    answers.preempted.preemptors.push(Preemptor { total_ns: 12_000, ..first.clone() });
    answers.preempted.total_ns += 12_000;
    said(
        &answers,
        " 16.0 µs, 100 % of it preempted (25.0 % where 'X' had the CPU longest); nobody",
    );
}

#[test]
fn the_summary_says_how_many_wake_ups_the_first_waker_did() {
    let (rows, tally) = run(
        true,
        "0 0 .>a S
         0 7 .>b S
         1000 futex a wait L 9000 done
         1500 0 a>X S
         4000 futex b wake L 1000 done
         4200 wake b a 0
         7000 0 X>a R
         16000 0 a>. S",
    );
    let mut futexes = futexes::Futexes::default();
    rows.futex_waits.iter().for_each(|r| futexes.add(r, &Code::default()));
    let mut answers = answers_of(rows, &tally);
    answers.futexes = futexes.finish(true, true);
    answers.futexes.futexes[0].waits.woken = 119;
    let text = format!("{:400}", answers.section());
    assert!(text.contains("at '0x4c', most often woken by 'b' (1 of 119)\n"), "{text}");
}

/// Nobody is blamed for less than a thousandth.
#[test]
fn the_summary_leaves_out_who_is_to_blame_for_nothing() {
    let (rows, tally) = run(true, CONTENDED);
    let mut answers = answers_of(rows, &tally);
    let blames =
        |answers: &Answers| format!("{:400}", answers.section()).contains("of it caused by");
    assert!(blames(&answers));
    answers.waits.roots.iter_mut().for_each(|root| root.total_ns = 1);
    assert!(!blames(&answers));
}
