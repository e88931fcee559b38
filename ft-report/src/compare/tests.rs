//! Comparisons of runs that were made up: what is found, what is not tested and why, what conditions say.

use super::lengths::Lengths;
use super::measure::tests::run;
use super::subject::{Class, Quantity, Subject};
use super::*;
use fastrand::Rng;
use ft_analysis::Mark;

fn hold(name: &str) -> Subject {
    Subject { class: Class::Hold, name: name.into(), kind: "mutex".into(), ..Subject::run() }
}

/// A run whose locks are held 500 times, for about as many ns as stated, or more by a few percent in the whole run; with
/// so many holds that the tracer disturbed.
fn recorded(rng: &mut Rng, locks: &[(&str, f64)], disturbed: usize) -> Run {
    let mut run = run();
    run.begin_ns = rng.i64(0..1_000_000_000);
    for (name, ns) in locks {
        let mut lengths = Lengths::default();
        let run_of_it = 1.0 + 0.03 * (rng.f64() - 0.5);
        for i in 0..500 {
            let mark = if i < disturbed { Mark::Disturbed } else { Mark::Exact };
            lengths.add((ns * run_of_it * (0.8 + 0.4 * rng.f64())) as i64, None, mark);
        }
        run.units[0].insert(hold(name), lengths.cell(run.length_ns as f64, 1));
    }
    run
}

fn side(rng: &mut Rng, n: usize, locks: &[(&str, f64)]) -> Vec<Run> {
    (0..n).map(|_| recorded(rng, locks, 0)).collect()
}

fn conditions(texts: &[&str]) -> Vec<Condition> {
    texts.iter().map(|text| text.parse().expect("a condition")).collect()
}

fn verdicts(comparison: &Comparison) -> Vec<Verdict> {
    comparison.outcomes.iter().map(|outcome| outcome.verdict).collect()
}

#[test]
fn a_slowdown_is_found_with_an_interval_that_has_it_and_the_rest_is_not() {
    let mut rng = Rng::with_seed(1);
    let a = side(&mut rng, 8, &[("book", 10_000.0), ("quotes", 3_000.0), ("log", 700.0)]);
    let b = side(&mut rng, 8, &[("book", 12_000.0), ("quotes", 3_000.0), ("log", 700.0)]);
    let comparison = Comparison::of(a, b, &[]);
    let differing: Vec<_> = comparison.differing().map(|r| (r.label(), r.quantity)).collect();
    for quantity in [Quantity::Median, Quantity::P99, Quantity::Mean, Quantity::Sum] {
        assert!(differing.contains(&("hold book".into(), quantity)), "{quantity:?}: {differing:?}");
    }
    assert_eq!(differing.len(), 4, "{differing:?}");
    for row in comparison.differing() {
        let [low, high] = row.interval.expect("enough recordings");
        assert!(low < 0.2 && 0.2 < high && low > 0.1 && row.p.is_some_and(|p| p < 0.05), "{row:?}");
    }
    // The same values are found whichever side is called A.
    let Comparison { sides: [a, b], rows, .. } = comparison;
    let turned = Comparison::of(b, a, &[]);
    for row in &rows {
        let same = |r: &&Row| r.subject == row.subject && r.quantity == row.quantity;
        let other = turned.rows.iter().find(same).expect("the same rows");
        let product = (1.0 + row.change.expect("known")) * (1.0 + other.change.expect("known"));
        assert!((product - 1.0).abs() < 1e-9 && other.differs == row.differs, "{row:?} {other:?}");
    }
}

#[test]
fn conditions_are_met_not_shown_or_not_judged() {
    let mut rng = Rng::with_seed(2);
    let a = side(&mut rng, 6, &[("book", 10_000.0), ("log", 700.0), ("old", 5.0)]);
    let b = side(&mut rng, 6, &[("book", 12_000.0), ("log", 700.0), ("new", 5.0)]);
    let asked = conditions(&[
        "hold book median > +10%",
        "hold book median > +20%",
        "hold book median > +30%",
        "hold log mean > 5%",
        "hold log mean < -5%",
        "hold median > 10%",
        "hold b?ok mean > 10%",
        "hold old mean > 10%",
        "dispatch p99 > 10%",
    ]);
    let comparison = Comparison::of(a, b, &asked);
    use Verdict::*;
    let expected =
        [Met, NotShown, NotShown, NotShown, NotShown, Met, Met, NothingNamed, NothingNamed];
    assert_eq!(verdicts(&comparison), expected);
    // Met if and only if the bound is beyond the limit.
    let bounds: Vec<f64> = comparison.outcomes[..3].iter().filter_map(|o| o.of[0].bound).collect();
    assert!(bounds.iter().all(|b| (0.1..0.2).contains(b)), "{bounds:?}");
    let below = comparison.outcomes[4].of[0].bound.expect("tested");
    assert!(below > -0.05, "at most {below}");
    let named: Vec<&str> = comparison.outcomes[5].of.iter().map(|j| &*j.label).collect();
    assert_eq!(named, ["hold book", "hold log"], "those that meet it first");
    let text = format!("{:120}", comparison.document());
    for line in ["not judged: not on both sides", "hold old", "hold new", "only in"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn locks_of_one_name_are_told_apart_by_their_processes() {
    let mut rng = Rng::with_seed(8);
    let mut run = |of_bank: f64| {
        let all = [("bank", "book", of_bank), ("shop", "book", 10_000.0), ("bank", "log", 700.0)];
        let mut run = recorded(&mut rng, &[], 0);
        for (process, lock, ns) in all {
            let alone = recorded(&mut rng, &[(lock, ns)], 0).units.remove(0);
            let alone = alone.into_iter();
            run.units[0]
                .extend(alone.map(|(s, cell)| (Subject { process: process.into(), ..s }, cell)));
            run.processes.insert(process.into());
        }
        run
    };
    let [a, b] = [10_000.0, 15_000.0].map(|of_bank| (0..6).map(|_| run(of_bank)).collect());
    let asked = ["hold book in bank mean > 10%", "hold book in shop mean > 10%"];
    let comparison = Comparison::of(a, b, &conditions(&asked));
    assert_eq!(verdicts(&comparison), [Verdict::Met, Verdict::NotShown]);
    let judged = comparison.outcomes.iter().map(|outcome| &*outcome.of[0].label);
    assert_eq!(judged.collect::<Vec<_>>(), ["hold book in bank", "hold book in shop"]);
    let text = format!("{:200}", comparison.document());
    let begins =
        |what: &str| text.lines().filter(|line| line.trim_start().starts_with(what)).count();
    assert!(begins("hold book in bank  ") > 0 && begins("hold book in shop  ") > 0, "{text}");
    assert_eq!(begins("hold book  "), 0, "{text}");
    assert!(begins("hold log  ") > 0 && !text.contains("hold log in"), "one is enough: {text}");
}

#[test]
fn what_losses_and_the_tracer_have_touched_is_shown_and_not_tested() {
    let mut rng = Rng::with_seed(3);
    let locks = [("book", 10_000.0)];
    let a = side(&mut rng, 5, &locks);
    let b: Vec<Run> = (0..5).map(|_| recorded(&mut rng, &[("book", 30_000.0)], 9)).collect();
    let why = |comparison: &Comparison, quantity| {
        let row = comparison.rows.iter().find(|row| row.quantity == quantity).expect("a row");
        assert_eq!(row.p.is_none(), row.untested.is_some());
        assert!(row.untested.is_none() || !row.differs);
        row.untested
    };
    let asked = conditions(&["hold book median > 10%"]);
    let disturbed = Comparison::of(a.clone(), b, &asked);
    assert_eq!(why(&disturbed, Quantity::Median), Some(Untested::LeftOut));
    assert_eq!(why(&disturbed, Quantity::Sum), Some(Untested::LeftOut));
    assert_eq!(why(&disturbed, Quantity::Rate), None, "that they were is known");
    assert_eq!(verdicts(&disturbed), [Verdict::NotTested(Untested::LeftOut)]);
    let text = format!("{:120}", disturbed.document());
    assert!(text.contains("45 intervals disturbed by the tracer"), "{text}");

    // Of 500 holds none may be lost; of five recordings, two may have no value.
    for (runs, expected) in [(2, None), (3, Some(Untested::Lost))] {
        let mut b = side(&mut rng, 5, &locks);
        b.iter_mut().take(runs).for_each(|run| run.lost_user_events = 1);
        let comparison = Comparison::of(a.clone(), b, &[]);
        assert_eq!(why(&comparison, Quantity::Rate), expected);
        assert_eq!(why(&comparison, Quantity::Median), None);
        let rate = comparison.rows.iter().find(|row| row.quantity == Quantity::Rate);
        assert_eq!(rate.expect("a row").units, [5, 5 - runs]);
        assert!(format!("{:120}", comparison.document()).contains("B lost"));
    }
}

#[test]
fn a_lock_that_nobody_waited_for_before_is_found_by_its_sum() {
    let mut rng = Rng::with_seed(4);
    let locks = [("book", 10_000.0)];
    let (a, mut b) = (side(&mut rng, 5, &locks), side(&mut rng, 5, &locks));
    for run in &mut b {
        let mut lengths = Lengths::default();
        (0..30).for_each(|_| lengths.add(rng.i64(1_000..3_000), None, Mark::Exact));
        let wait = Subject { class: Class::Wait, ..hold("book") };
        run.units[0].insert(wait, lengths.cell(1e9, 1));
    }
    let comparison = Comparison::of(a, b, &conditions(&["wait book sum > 50%"]));
    let row = |quantity| {
        let mut rows = comparison.rows.iter();
        rows.find(|r| r.subject.class == Class::Wait && r.quantity == quantity).expect("a row")
    };
    assert!(row(Quantity::Sum).differs && !row(Quantity::Sum).logarithmic);
    assert_eq!(row(Quantity::Sum).change, Some(f64::INFINITY));
    assert_eq!(row(Quantity::Median).untested, Some(Untested::TooFew));
    assert_eq!(verdicts(&comparison), [Verdict::Met]);
    assert!(format!("{:120}", comparison.document()).contains("from nothing"));
    let json = serde_json::to_value(comparison.document()).expect("infinity is null");
    assert!(
        json["sections"]["compare"]["values"]["rows"].as_array().is_some_and(|r| r.len() == 10)
    );
}

#[test]
fn too_few_recordings_are_cut_into_slices_and_said_to_be_too_few() {
    assert_eq!([slices(1, 1), slices(2, 2), slices(3, 3), slices(1, 5)], [12, 6, 4, 12]);
    assert_eq!([slices(4, 4), slices(3, 4), slices(1, 19), slices(40, 40)], [1; 4]);
    let mut rng = Rng::with_seed(5);
    let locks = [("book", 10_000.0)];
    let sliced = |rng: &mut Rng| {
        let units = side(rng, 12, &locks).into_iter().flat_map(|run| run.units).collect();
        Run { units, ..run() }
    };
    let (a, b) = (sliced(&mut rng), sliced(&mut rng));
    let text = format!("{:120}", Comparison::of(vec![a], vec![b], &[]).document());
    for line in ["slices of the recordings in time, 12 against 12", "too few to tell", "seed 2,007"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn what_makes_the_sides_unlike_beside_the_program_is_said() {
    let mut rng = Rng::with_seed(6);
    let locks = [("book", 10_000.0)];
    let (a, mut b) = (side(&mut rng, 4, &locks), side(&mut rng, 4, &locks));
    let says = |a: &[Run], b: &[Run], what: &str| {
        let text = Comparison::of(a.to_vec(), b.to_vec(), &[]).document().to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains(what)
    };
    assert!(!says(&a, &b, "warning"));
    b.iter_mut().for_each(|run| run.begin_ns += 2_000_000_000);
    assert!(says(&a, &b, "all of A was recorded before all of B"));
    b.iter_mut().for_each(|run| run.kernel = "6.19".into());
    assert!(says(&a, &b, "of different kernels: 6.18 and 6.19"));
    b.iter_mut().for_each(|run| run.length_ns *= 2);
    assert!(says(&a, &b, "sums grow with the length"));
}

#[test]
fn names_of_programs_cannot_command_the_terminal() {
    let mut rng = Rng::with_seed(7);
    let hostile = "\x1b[2J</script>\"\n'\0";
    let locks = [(hostile, 10_000.0)];
    let (a, b) = (side(&mut rng, 4, &locks), side(&mut rng, 4, &locks));
    let document = Comparison::of(a, b, &[]).document();
    let text = document.to_string();
    assert!(!text.contains('\x1b') && !text.contains('\0') && text.contains("</script>"));
    let json = serde_json::to_string(&document).expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&json).expect("whole");
    assert_eq!(json["sections"]["compare"]["values"]["rows"][0]["name"], hostile);
}

#[test]
fn what_the_recording_had_of_a_side_is_said_beside_the_row() {
    let one = |own: i64| {
        let mut run = run();
        let mut lengths = Lengths::default();
        (0..100).for_each(|_| lengths.add(1_000, Some(own), Mark::Exact));
        // Of what was left out nothing is said.
        lengths.add(1_000_000, Some(1_000_000), Mark::Disturbed);
        run.units[0].insert(hold("book"), lengths.cell(1e9, 1));
        run
    };
    let said = |a: i64, b: i64| {
        let of = |own: i64| (0..4).map(|_| one(own)).collect();
        let document = Comparison::of(of(a), of(b), &[]).document();
        let json = serde_json::to_value(&document).unwrap();
        (document.to_string(), json)
    };
    let (text, json) = said(0, 123);
    assert!(text.contains("recording"), "{text}");
    assert!(text.contains("12.3 %"), "{text}");
    let row = &json["sections"]["compare"]["values"]["rows"][0];
    assert_eq!(
        (&row["agent_ns"], &row["of_ns"]),
        (&[0, 49_200].into(), &[400_000, 400_000].into())
    );
    let (text, _) = said(0, 10);
    assert!(!text.contains("Recording:"), "one in a hundred is not more than that: {text}");
}

#[test]
fn a_recording_without_the_kernel_has_groups_that_are_called_none() {
    let kernel = Run { kernel_groups: vec!["sched".into(), "irq".into()], ..run() };
    let text = format!("{:400}", Comparison::of(vec![run()], vec![kernel], &[]).document());
    assert!(text.contains("of different kernel groups: none and sched,irq;"), "{text}");
}
