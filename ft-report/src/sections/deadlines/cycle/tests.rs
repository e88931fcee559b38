use super::*;
use ft_analysis::Mark;
use ft_trace::ids::{Cpu, Nanos, Pid, Tid};

/// A sleep in a call, with the value that is expected of a futex and the operation.
fn asleep(ts: i64, call: &str, file: Option<FileKind>, value: i64, operation: i64) -> Sleep {
    Sleep {
        ts: Nanos(ts),
        cpu: Cpu(0),
        tid: Tid(7),
        pid: Pid(1),
        call: Some(call.into()),
        file,
        argument: [Some(4096), Some(operation), Some(value), None],
        until: None,
        word: None,
        owner: None,
    }
}

fn piece(ts: i64, dur: i64, kind: PathKind, culprit: &str, depth: i32, wait: &str) -> PathPiece {
    let some = |text: &str| (!text.is_empty()).then(|| Name::from(text));
    PathPiece {
        ts: Nanos(ts),
        dur,
        request: 3,
        depth,
        pid: Pid(1),
        tid: Tid(7 + depth),
        comm: if depth == 0 { "rt-loop" } else { "rt-low" }.into(),
        kind,
        culprit: some(culprit).filter(|name| &**name != "."),
        culprit_tid: (culprit == ".").then_some(0),
        wait: some(wait),
        waiter_tid: None,
        mark: Mark::Exact,
    }
}

/// `what ns` of each part, the longest first.
fn said(cycle: Cycle) -> Vec<String> {
    cycle.parts().iter().map(|(cause, ns)| format!("{} {ns}", cause.says())).collect()
}

/// It comes late, waits for a CPU, for a lock, and for a disk.
fn late() -> Cycle {
    let mut cycle = Cycle::new(1000, 2000);
    cycle.sleeps(&asleep(1200, "futex", None, 2, 128));
    cycle.sleeps(&asleep(1700, "fsync", Some(FileKind::File), 0, 0));
    for of in [
        piece(1000, 60, PathKind::Timer, "local_timer", 0, "asleep"),
        piece(1060, 30, PathKind::Dispatch, ".", 0, ""),
        piece(1090, 110, PathKind::Running, "", 0, ""),
        piece(1200, 200, PathKind::Preempted, "rt-medium", 1, "asleep"),
        // Of the one for which that one waits: it is still one wait.
        piece(1400, 50, PathKind::Running, "", 2, "asleep"),
        piece(1450, 50, PathKind::Running, "", 1, "asleep"),
        piece(1500, 10, PathKind::Dispatch, "fair", 0, ""),
        piece(1510, 190, PathKind::Running, "", 0, ""),
        piece(1700, 250, PathKind::Device, "nvme0q1", 0, "asleep"),
        piece(1950, 50, PathKind::Interrupt, "NET_RX", 0, ""),
    ] {
        cycle.piece(&of);
    }
    cycle
}

#[test]
fn each_part_has_who_and_what_it_waited_in() {
    let expected = [
        "its own work 300",
        "waited for rt-low in futex (a lock) 300",
        "waited for interrupt nvme0q1 in fsync (file) 250",
        "late timer 60",
        "interrupt NET_RX 50",
        "woken, no CPU yet 30",
        "woken, behind fair 10",
    ];
    assert_eq!(said(late()), expected);
    let sum: i64 = late().parts().iter().map(|(_, ns)| ns).sum();
    assert_eq!(sum, 1000);
}

#[test]
fn a_lock_that_the_program_tells_of_is_named_and_so_is_a_page_fault() {
    let mut cycle = Cycle::new(0, 300);
    cycle.sleeps(&asleep(0, "futex", None, 2, 128));
    cycle.sleeps(&Sleep { call: None, ..asleep(200, "", None, 0, 0) });
    cycle.piece(&piece(0, 100, PathKind::Running, "", 1, "lock state"));
    // Of the holder's own wait.
    let own = piece(100, 50, PathKind::Timer, "local_timer", 1, "page fault");
    cycle.piece(&PathPiece { waiter_tid: Some(8), ..own });
    cycle.piece(&piece(150, 50, PathKind::Running, "", 1, "lock state"));
    cycle.piece(&piece(200, 100, PathKind::Device, "nvme0q1", 0, "page fault"));
    let expected =
        ["waited for rt-low in lock state 200", "waited for interrupt nvme0q1 in page fault 100"];
    assert_eq!(said(cycle), expected);
}

#[test]
fn what_other_tables_know_better_is_taken_from_what_it_looked_like() {
    let mut cycle = late();
    cycle.takes(&[Class::Own], 120, MissCause::plain(Class::Faults));
    // More than there is.
    cycle.takes(&[Class::Dispatch], 55, MissCause::by(Class::Interrupt, Some("NET_RX".into())));
    cycle.takes(&[Class::Preempted], 5, MissCause::plain(Class::Throttled));
    let expected = [
        "waited for rt-low in futex (a lock) 300",
        "waited for interrupt nvme0q1 in fsync (file) 250",
        "its own work 180",
        "page faults 120",
        "interrupt NET_RX 90",
        "late timer 60",
    ];
    assert_eq!(said(cycle), expected);
}

#[test]
fn calls_are_locks_by_what_is_expected_of_their_futex() {
    let of = |call, file, value, operation| {
        slept_in(&asleep(0, call, file, value, operation)).map(|name| name.to_string())
    };
    assert_eq!(of("futex", None, 2, 128).as_deref(), Some("futex (a lock)"));
    assert_eq!(of("futex", None, 0, 128).as_deref(), Some("futex"));
    assert_eq!(of("futex", None, 0, 128 | 13).as_deref(), Some("futex (a lock)"));
    assert_eq!(of("write", Some(FileKind::Pipe), 2, 0).as_deref(), Some("write (pipe)"));
    assert_eq!(of("poll", None, 2, 0).as_deref(), Some("poll"));
    let fault = Sleep { call: None, ..asleep(0, "", None, 0, 0) };
    assert_eq!(slept_in(&fault), None);
}

#[test]
fn blame_is_for_what_lies_beyond_the_usual() {
    let own = |ns| (MissCause::plain(Class::Own), ns);
    let behind = |ns| (MissCause::by(Class::Preempted, Some("hog".into())), ns);
    let class = |parts: &[(MissCause, i64)], usual| {
        to_blame(parts, usual, 1000).map(|(cause, ns)| (cause.class, ns))
    };
    // It usually works for 800.
    assert_eq!(class(&[own(810), behind(300)], 800), Some((Class::Preempted, 300)));
    assert_eq!(class(&[own(900), behind(300)], 100), Some((Class::Own, 800)));
    // What it always does is too much.
    assert_eq!(class(&[own(1200), behind(20)], 1200), Some((Class::Own, 1200)));
    assert_eq!(class(&[behind(3000), own(1050)], 1050), Some((Class::Preempted, 3000)));
    assert_eq!(class(&[], 0), None);
}

#[test]
fn what_one_cycle_is_made_of_is_bounded() {
    let mut cycle = Cycle::new(0, 1_000_000);
    for i in 0..3 * MAX_PARTS as i64 {
        cycle.sleeps(&asleep(i * 100, "read", None, 0, 0));
    }
    for i in 0..3 * MAX_PARTS as i64 {
        cycle.piece(&piece(i * 100, 50, PathKind::Running, "", 1, "asleep"));
        cycle.piece(&piece(i * 100 + 50, 50, PathKind::Preempted, &format!("t{i}"), 0, ""));
    }
    assert!(cycle.waits.len() <= MAX_PARTS + 1);
    let parts = cycle.parts();
    assert!(parts.len() <= MAX_PARTS + 1, "{}", parts.len());
    assert_eq!(parts.iter().map(|(_, ns)| ns).sum::<i64>(), 3 * MAX_PARTS as i64 * 100);
    assert_eq!((parts[0].0.class, parts[0].1), (Class::Unknown, 128 * 50 + 50 * 192));
}
