use super::*;
use crate::world::Occupant;
use crate::world::testing::{Cpus, History, Stretches};
use ft_trace::ids::{Cpu, Name, Pid, ThreadKey, Tid};

fn interval(before: i64, after: i64) -> Interval {
    Interval::told(before, after, after).expect("an interval")
}

/// A history drawn as text, 10 µs a character: `=` running, `r` preempted, `b` blocked, `h` `s` `v`
/// interrupts, `?` unexplained; `.` is a moment that no stretch covers. `from` and `to` in characters; unexplained µs.
fn check(drawn: &str, from: i64, to: i64, expected: Option<(&str, Option<&str>, i64)>) {
    let mut history = History::new(0);
    for (c, i) in drawn.chars().zip(0..) {
        let (part, which): (_, Option<Name>) = match c {
            '=' => (Part::Running, None),
            'r' => (Part::Preempted, None),
            'b' => (Part::Blocked, None),
            'h' => (Part::Hardirq, Some("nic".into())),
            's' => (Part::Softirq, Some("NET_RX".into())),
            'v' => (Part::Vector, Some("local_timer".into())),
            '?' => (Part::Unexplained, None),
            _ => continue,
        };
        history.stretch(i * 10_000, i * 10_000 + 10_000, part, which.as_ref());
    }
    let gap = interval(from * 10_000, to * 10_000);
    let found = history.past(gap).map(|past| Explanation::of(&past, gap));
    if let Some(e) = &found {
        assert_eq!(e.parts.total_ns(), (to - from) * 10_000, "{drawn}");
        assert_eq!(e.parts.running_ns, 0);
    }
    let found = found.as_ref().map(|e| {
        let culprit = match &e.culprit {
            Some(Culprit::Interrupt(name)) => Some(&**name),
            _ => None,
        };
        (e.cause.word(), culprit, e.parts.unexplained_ns / 1000)
    });
    assert_eq!(found, expected, "{drawn}");
}

#[test]
fn the_largest_recorded_part_is_the_cause() {
    check("===vvvs====", 2, 8, Some(("vector", Some("local_timer"), 20)));
    check("===vsss====", 2, 8, Some(("softirq", Some("NET_RX"), 20)));
    check("===hhhh====", 3, 7, Some(("hardirq", Some("nic"), 0)));
    check("===bbbbbb==", 2, 9, Some(("blocked", None, 10)));
    check("==hrrrrrh==", 2, 9, Some(("switched-out", None, 0)));
}

#[test]
fn what_no_record_covers_is_unexplained() {
    check("===========", 2, 8, Some(("unexplained", None, 60)));
    check("===v=======", 2, 9, Some(("unexplained", None, 60)));
    check("===???vvv=====", 3, 14, Some(("unexplained", None, 80)));
    check("===......vv==", 3, 11, Some(("unexplained", None, 60)));
}

#[test]
fn a_recorded_interruption_is_the_cause_of_what_it_can_have_cost() {
    // 10 µs of a handler, and 50 µs of entry, exit and hypervisor.
    check("===v=======", 2, 8, Some(("vector", Some("local_timer"), 50)));
    check("===r=======", 2, 8, Some(("switched-out", None, 50)));
    // Half of it is recorded, or not quite.
    check("===vvvvvvvv=======", 3, 18, Some(("vector", Some("local_timer"), 70)));
    check("===vvvvvvvv??????????=", 3, 20, Some(("unexplained", None, 90)));
}

#[test]
fn only_the_part_inside_counts() {
    check("hhhhhhrrrhh", 5, 8, Some(("switched-out", None, 0)));
}

#[test]
fn who_ran_is_named() {
    let mut history = History::new(0);
    history.stretch(0, 100, Part::Preempted, None);
    let mut cpus = Cpus::default();
    let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
    let (me, cpu) = (thread(1), Cpu(0));
    cpus.switch(cpu, 0, thread(9), &"hog".into(), 120);
    cpus.wait(me, cpu, 0);
    history.displaced(&cpus.leave(me, cpu, 100));
    let gap = interval(0, 100);
    let e = Explanation::of(&history.past(gap).expect("the history covers it"), gap);
    let hog = |o: &Occupant| &*o.comm == "hog" && o.thread == thread(9);
    assert!(matches!(&e.culprit, Some(Culprit::Thread(o)) if hog(o)));
}
