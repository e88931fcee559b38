//! Which subjects are taken for the same, and which are left.

use super::*;
use crate::compare::measure::tests::run;

fn subject(class: Class, process: &str, name: &str, place: &str, thread: &str) -> Subject {
    let kind: Name =
        if matches!(class, Class::Hold | Class::Wait) { "mutex".into() } else { "".into() };
    let [process, name, place, thread] = [process, name, place, thread].map(Name::from);
    Subject { class, process, name, kind, place, thread }
}

fn hold(name: &str, place: &str, thread: &str) -> Subject {
    subject(Class::Hold, "bank", name, place, thread)
}

/// A run of `program` that has these subjects.
fn has(program: &str, subjects: &[Subject]) -> Run {
    let cell = Cell { count: 3, ..Cell::default() };
    let unit =
        subjects.iter().map(|s| (Subject { process: program.into(), ..s.clone() }, cell.clone()));
    Run { processes: [Name::from(program)].into(), units: vec![unit.collect()], ..run() }
}

fn check(a: &[Subject], b: &[Subject], both: &[&str], alone: [&[&str]; 2]) -> Matched {
    let matched = matched(&[has("bank", a)], &[has("bank", b)]);
    let found: Vec<String> = matched.subjects.iter().map(ToString::to_string).collect();
    assert_eq!(found, both);
    for (side, expected) in alone.iter().enumerate() {
        let found: Vec<String> =
            matched.unmatched[side].iter().map(|(s, _)| s.to_string()).collect();
        assert_eq!(&found, expected, "side {side}");
    }
    matched
}

#[test]
fn what_only_one_side_has_is_left_once() {
    let a = [
        hold("book", "", ""),
        hold("old", "", ""),
        hold("old", "x.rs:1", ""),
        hold("old", "x.rs:2", ""),
    ];
    let b = [hold("book", "", ""), hold("new", "", "")];
    let matched = check(&a, &b, &["hold book"], [&["hold old"], &["hold new"]]);
    assert_eq!(matched.unmatched[0][0].1, 3);
}

#[test]
fn a_lock_that_nobody_had_to_wait_for_had_no_waits() {
    let wait = |name| subject(Class::Wait, "bank", name, "", "");
    let b = [hold("book", "", ""), wait("book"), wait("other")];
    check(&[hold("book", "", "")], &b, &["hold book", "wait book"], [&[], &["wait other"]]);
}

#[test]
fn the_only_place_and_the_only_thread_of_a_lock_are_no_rows() {
    let one = [hold("book", "", ""), hold("book", "x.rs:1", ""), hold("book", "", "teller")];
    check(&one, &one, &["hold book"], [&[], &[]]);
    let two = [&one[..], &[hold("book", "x.rs:7", "")]].concat();
    check(&one, &two, &["hold book", "hold book at x.rs:1"], [&[], &["hold book at x.rs:7"]]);
    // A lock without a name is nothing but its place.
    check(&[hold("", "x.rs:1", "")], &[hold("", "x.rs:1", "")], &["hold at x.rs:1"], [&[], &[]]);
}

#[test]
fn places_whose_lines_have_moved_are_matched_in_their_order_and_told() {
    let at = |lines: &[u32]| -> Vec<Subject> {
        lines.iter().map(|line| hold("", &format!("src/x.rs:{line}"), "")).collect()
    };
    let both = ["hold at x.rs:10", "hold at x.rs:20"];
    let matched = check(&at(&[10, 20]), &at(&[10, 26]), &both, [&[], &[]]);
    assert_eq!(matched.moved, [("src/x.rs:20".to_owned(), "src/x.rs:26".to_owned())]);
    // By number, not by text.
    let matched =
        check(&at(&[9, 10]), &at(&[99, 100]), &["hold at x.rs:10", "hold at x.rs:9"], [&[], &[]]);
    assert_eq!(
        matched.moved.iter().map(|(_, b)| &**b).collect::<Vec<_>>(),
        ["src/x.rs:100", "src/x.rs:99"]
    );
    // Where one came or went, nobody knows which.
    check(&at(&[10, 20]), &at(&[10]), &["hold at x.rs:10"], [&["hold at x.rs:20"], &[]]);
}

#[test]
fn one_program_is_the_same_whatever_its_file_is_called() {
    let time = |name: &str| subject(Class::Time, "", name, "", "");
    let of = |program: &str| has(program, &[hold("book", "", ""), time(program), time("teller")]);
    let found = matched(&[of("bank-old")], &[of("bank-new")]);
    let names: Vec<String> = found.subjects.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["hold book", "time bank-old", "time teller"]);
    assert_eq!(found.program, Some(("bank-old".into(), "bank-new".into())));
    // With two programs on a side, each is known by its name alone.
    let mut two = of("bank-new");
    two.processes.insert("helper".into());
    let found = matched(&[of("bank-old")], &[two]);
    assert!(found.subjects.is_empty() && found.program.is_none());
}
