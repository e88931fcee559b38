use super::*;

fn interval(before: i64, after: i64) -> Interval {
    Interval::told(before, after, after).expect("an interval")
}

/// `check` of what is missed: (count, ns) of interruptions shorter than 10 µs, after gaps in characters.
fn missed(drawn: &str, gaps: &[(i64, i64)], expected: (u64, i64)) {
    let mut history = History::new(0);
    for (c, i) in drawn.chars().zip(0..) {
        let part = match c {
            'r' => Part::Preempted,
            's' => Part::Softirq,
            'v' => Part::Vector,
            '?' => Part::Unexplained,
            _ => Part::Running,
        };
        history.stretch(i * 10, i * 10 + 10, part, None);
    }
    for (from, to) in gaps {
        history.tell(interval(from * 10, to * 10));
    }
    let short = history.end()[0];
    assert_eq!((short.count, short.total_ns), expected, "{drawn}");
}

#[test]
fn what_no_gap_tells_is_missed() {
    missed("==vv==s==", &[], (2, 30));
    missed("==vvs==r==", &[], (2, 40));
    missed("==vv==s==rr==", &[(5, 8)], (2, 40));
    missed("==vv==s==", &[(1, 4), (5, 7)], (0, 0));
    missed("==rrrr====", &[(4, 7)], (0, 0));
    missed("==rrrr==v=", &[(1, 5)], (1, 10));
    missed("==???=v===v", &[], (2, 20));
}

#[test]
fn a_gap_before_the_history_is_not_known() {
    let mut history = History::new(50);
    history.stretch(50, 100, Part::Running, None);
    assert_eq!(history.past(interval(40, 60)), None);
    assert!(history.past(interval(60, 80)).is_some());
}

#[test]
fn the_history_is_bounded_and_says_so() {
    let mut history = History::new(0);
    for i in 0..2 * MAX_STRETCHES as i64 {
        let part = if i % 2 == 0 { Part::Running } else { Part::Vector };
        history.stretch(i, i + 1, part, None);
    }
    assert_eq!(history.stretches.len(), MAX_STRETCHES);
    let oldest = MAX_STRETCHES as i64;
    assert_eq!(history.past(interval(oldest - 1, oldest + 5)), None);
}

/// What happens to a worker before it polls is known, and no gap could have reported it.
#[test]
fn what_comes_before_polling_is_kept_and_not_missed() {
    let mut history = History::quiet(0);
    for (i, part) in [Part::Blocked, Part::Dispatch, Part::Vector, Part::Running].iter().enumerate()
    {
        let start = i as i64 * 10;
        history.stretch(start, start + 10, *part, None);
    }
    history.polls(35);
    history.stretch(40, 45, Part::Softirq, None);
    history.stretch(45, 60, Part::Running, None);
    let past = history.past(interval(5, 35)).expect("known from the begin on");
    assert_eq!((past.parts.blocked_ns, past.parts.dispatch_ns, past.parts.running_ns), (5, 10, 5));
    history.polls(50);
    assert_eq!(history.end()[0], Missed { count: 1, total_ns: 5 });
}
