use super::effects::{Host, effect, holm};
use super::outliers::outliers;
use super::*;
use crate::document::{Document, Section};
use ft_trace::ids::{Nanos, Pid, Tid};

/// About normal: the sum of twelve.
fn normal(rng: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

fn row(name: &str, dur: i64, mark: Mark) -> Bucket {
    let (from_ns, to_ns) = histogram::bounds(dur);
    Bucket {
        ts: Nanos(dur),
        pid: Pid(1),
        tid: Tid(7),
        quantity: Quantity::Hold,
        name: name.into(),
        place: "a.rs:1".into(),
        comm: "worker".into(),
        neighbour: "rustc".into(),
        mark,
        from_ns,
        to_ns,
        count: 1,
        sum_ns: dur,
        max_ns: dur,
    }
}

fn member(host: &str, build: &str, n: i64) -> Member {
    Member {
        path: format!("host={host}/date=2026-11-24/trace={n}"),
        host: host.into(),
        kernel: "7.3".into(),
        start_ns: n * 3_600_000_000_000,
        labels: BTreeMap::from([("build".to_owned(), build.to_owned())]),
        lost: 1,
    }
}

#[test]
fn percentiles_of_merged_histograms_are_those_of_the_rows() {
    let mut rng = fastrand::Rng::with_seed(1);
    for n in [1, 2, 10, 99, 100, 1000, 20_000] {
        let mut lengths: Vec<i64> =
            (0..n).map(|_| (normal(&mut rng) * 2.0 + 9.0).exp() as i64).collect();
        // As several traces tell them, merged in another order.
        let mut parts = vec![Histogram::default(); 3];
        for dur in &lengths {
            let part = rng.usize(..3);
            parts[part].add(&row("L", *dur, Mark::Exact));
        }
        let mut all = Histogram::default();
        lengths.iter().rev().for_each(|dur| all.add(&row("L", *dur, Mark::Exact)));
        assert_eq!(all.count(), parts.iter().map(Histogram::count).sum::<u64>());
        lengths.sort_unstable();
        for per_mille in [500, 900, 990, 999] {
            let Some(told) = all.percentile(per_mille) else {
                assert!(n * (1000 - per_mille) < 1000, "{n} are enough for {per_mille}");
                continue;
            };
            let rank = (n * per_mille).div_ceil(1000) as usize;
            let right = lengths[rank - 1];
            let error = (told - right) as f64;
            assert!(0.0 <= error && error <= right as f64 * histogram::ERROR, "{told} of {right}");
        }
        assert_eq!(all.max_ns(), *lengths.last().expect("some"));
        assert_eq!(all.sum_ns, lengths.iter().map(|dur| i128::from(*dur)).sum::<i128>());
    }
}

#[test]
fn a_figure_says_which_share_of_it_is_exact() {
    let mut h = Histogram::default();
    h.add(&row("L", 100, Mark::Exact));
    h.add(&row("L", 300, Mark::LowerBound));
    h.add(&row("L", 1_000_000, Mark::Censored));
    assert_eq!((h.marks.exact, h.marks.lower_bounds, h.marks.censored), (1, 1, 1));
    assert_eq!((h.count(), h.max_ns(), h.sum_ns), (2, 300, 400), "a censored length is none");
}

#[test]
fn rows_that_no_analysis_writes_do_not_count() {
    let good = row("L", 6500, Mark::Exact);
    assert!(is_sound(&good));
    let bad: [fn(&mut Bucket); 8] = [
        |r| r.count = 0,
        |r| r.count = -1,
        |r| r.from_ns -= 1,
        |r| r.to_ns += 1,
        |r| r.max_ns = 0,
        |r| r.max_ns = i64::MAX,
        |r| r.sum_ns = -5,
        |r| (r.from_ns, r.to_ns) = (i64::MIN, i64::MAX),
    ];
    for spoil in bad {
        let mut row = good.clone();
        spoil(&mut row);
        assert!(!is_sound(&row), "{row:?}");
    }
    let many = Bucket { count: i64::MAX, sum_ns: i64::MAX, ..good };
    assert!(is_sound(&many), "a sum that fits no number");
    let mut h = Histogram::default();
    (0..4).for_each(|_| h.add(&many));
    assert_eq!(h.count(), u64::MAX, "it saturates");
    assert!(h.percentile(500).is_some());
}

#[test]
fn locks_without_a_name_are_known_by_their_place() {
    let question = Question { quantity: Quantity::Hold, by: None, sides: None };
    let mut fleet = Fleet::new(question);
    fleet.count(member("a", "1", 0), &[row("0x7f12a0", 5, Mark::Exact), row("0x", 7, Mark::Exact)]);
    fleet.count(member("b", "1", 1), &[row("0x55aa40", 6, Mark::Exact)]);
    let of = |name: &str| fleet.subjects[&(name.into(), "a.rs:1".into())].lengths.count();
    assert_eq!((fleet.subjects.len(), of("(unnamed)"), of("0x")), (2, 2, 1));
}

#[test]
fn no_number_of_subjects_takes_more_than_is_kept() {
    let question = Question { quantity: Quantity::Hold, by: Some(By::Thread), sides: None };
    let mut fleet = Fleet::new(question);
    let n = MAX_SUBJECTS + 500;
    let rows: Vec<Bucket> = (0..n)
        .map(|i| {
            let mut row = row(&format!("{i}"), 5, Mark::Exact);
            row.comm = format!("{i}").into();
            row
        })
        .collect();
    fleet.count(member("a", "1", 0), &rows);
    assert_eq!(fleet.subjects.len(), MAX_SUBJECTS + 1);
    assert_eq!(fleet.by.len(), MAX_VALUES + 1);
    let total: u64 = fleet.subjects.values().map(|known| known.lengths.count()).sum();
    assert_eq!((total, fleet.all.count()), (n as u64, n as u64), "none is dropped");
}

#[test]
fn subjects_for_which_is_no_room_are_in_no_comparison_and_told() {
    let question = Question { quantity: Quantity::Hold, by: None, sides: None };
    let mut fleet = Fleet::new(question);
    let (name, place): Subject = ("kept".into(), "".into());
    let cell = Cell { mean_ns: 1.0, p99_ns: None };
    let kept = (1..MAX_CELLS).map(|at| (((name.clone(), place.clone()), at), cell));
    fleet.cells = kept.collect();
    let rows = ["L", "M", "N"].map(|name| row(name, 5, Mark::Exact));
    fleet.count(member("a", "1", 0), &rows);
    assert_eq!((fleet.cells.len(), fleet.cells_left_out), (MAX_CELLS, 2));
    assert_eq!(fleet.all.count(), 3, "they count in all else");
    fleet.cells.clear();
    let text = fleet.document().to_string();
    assert!(text.contains("2 subjects of single traces are in no comparison"), "{text}");
}

#[test]
fn a_table_with_more_rows_than_an_analysis_writes_does_not_count() {
    let read = |n: usize| {
        let rows = (0..n).map(|_| Ok(row("L", 5, Mark::Exact)));
        sound(rows, Quantity::Wait).expect("rows that can be read")
    };
    assert_eq!(read(MAX_ROWS), Ok(Vec::new()));
    let why = read(MAX_ROWS + 1).expect_err("too many");
    assert!(why.contains("none that an analysis writes"), "{why}");
}

#[test]
fn a_mean_over_hosts_is_that_of_the_textbook() {
    // One trace of each side a host: nothing is known within, and all weigh the same, as in a paired t-test.
    let of = |a: f64, b: f64| Host { sides: [vec![a], vec![b]] };
    let hosts = [of(1.0, 1.5), of(2.0, 2.3), of(3.0, 3.4), of(0.5, 1.1)];
    let e = effect(&hosts).expect("four hosts");
    // Differences 0.5, 0.3, 0.4, 0.6: mean 0.45, standard deviation 0.12910, t = 6.9714, p = 0.00607 with 3 degrees.
    assert!((e.by - 0.45).abs() < 1e-12, "{e:?}");
    assert!((e.interval[0] - (0.45 - 3.182446 * 0.0645497)).abs() < 1e-5, "{e:?}");
    assert!((e.p - 0.00607).abs() < 5e-5, "{e:?}");
    assert_eq!(effect(&hosts[..1]), None);
    // A host with one side tells nothing.
    let alone = Host { sides: [vec![9.0], vec![]] };
    let with: Vec<Host> = hosts.iter().cloned().chain([alone]).collect();
    assert_eq!(effect(&with), Some(e));
}

#[test]
fn random_effects_are_those_of_another_computation() {
    let of = |a: &[f64], b: &[f64]| Host { sides: [a.to_vec(), b.to_vec()] };
    let hosts = [
        of(&[1.0, 1.2, 0.9], &[1.4, 1.3]),
        of(&[2.0, 2.1], &[2.2, 2.6, 2.5]),
        of(&[0.5, 0.6], &[1.5, 1.4, 1.6, 1.3]),
    ];
    let e = effect(&hosts).expect("three hosts");
    // By the formulas of the papers, in Python; with two degrees Student's distribution has a closed form.
    let expected = [
        0.535_259_931_667,
        0.299_040_611_550,
        0.101_401_416_941,
        -0.259_908_060_934,
        1.330_427_924_269,
    ];
    let told = [e.by, e.between_hosts, e.p, e.interval[0], e.interval[1]];
    assert!(told.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-8), "{told:?}");
}

#[test]
fn the_interval_over_hosts_holds_its_level() {
    let mut rng = fastrand::Rng::with_seed(7);
    for (hosts, traces, between) in [(4, 2, 0.0), (5, 3, 0.5), (12, 4, 0.2), (30, 1, 0.3)] {
        let (mut missed, rounds) = (0, 2000);
        for _ in 0..rounds {
            let fleet: Vec<Host> = (0..hosts)
                .map(|host| {
                    let base = 3.0 * normal(&mut rng);
                    let by = 0.1 + between * normal(&mut rng);
                    // Some hosts have more traces than others.
                    let mut side = |mean: f64| {
                        (0..traces + host % 2).map(|_| mean + 0.3 * normal(&mut rng)).collect()
                    };
                    Host { sides: [side(base), side(base + by)] }
                })
                .collect();
            let e = effect(&fleet).expect("hosts");
            missed += i32::from(!(e.interval[0] <= 0.1 && 0.1 <= e.interval[1]));
        }
        let rate = f64::from(missed) / f64::from(rounds);
        // 5 %, and some for the estimate of how much hosts scatter.
        assert!((0.02..=0.075).contains(&rate), "{hosts} hosts, {traces} traces: {rate}");
    }
}

#[test]
fn holm_is_bonferroni_step_by_step() {
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    let expected = [0.03, 0.06, 0.06, 0.02];
    assert!(adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
    assert_eq!(holm(&[]), Vec::<f64>::new());
}

#[test]
fn a_fleet_without_a_difference_shows_one_in_twenty_times() {
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut shown, rounds) = (0, 40);
    for _ in 0..rounds {
        let host_of: Vec<usize> = (0..24).map(|trace| trace % 6).collect();
        // Lengths have long tails, and the subjects of a trace go together.
        let load: Vec<f64> = (0..24).map(|_| normal(&mut rng).exp()).collect();
        let rows: Vec<Vec<f64>> = (0..5)
            .map(|_| load.iter().map(|load| load + normal(&mut rng).exp()).collect())
            .collect();
        shown += i32::from(!outliers(&rows, &host_of, 0.05).is_empty());
    }
    // Of forty, with 5 % each, more than 6 are less likely than 0.4 %.
    assert!(shown <= 6, "{shown}");
}

#[test]
fn the_host_that_differs_is_found() {
    let mut rng = fastrand::Rng::with_seed(5);
    let host_of: Vec<usize> = (0..40).map(|trace| trace % 10).collect();
    let mut rows: Vec<Vec<f64>> =
        (0..8).map(|_| (0..40).map(|_| normal(&mut rng)).collect()).collect();
    for trace in (3..40).step_by(10) {
        rows[2][trace] += 8.0;
    }
    rows[0][5] = f64::NAN;
    let found = outliers(&rows, &host_of, 0.05);
    let first = found.first().expect("a host differs");
    assert_eq!((first.host, first.subject), (3, 2));
    assert!(first.by > 6.0 && first.p < 0.01, "{first:?}");
    assert_eq!(outliers(&rows, &[0; 40], 0.05), [], "one host differs from nobody");
    assert_eq!(outliers(&[vec![1.0; 40]], &host_of, 0.05), [], "all the same");
}

#[test]
fn of_too_many_subjects_those_with_the_most_time_are_tested_and_the_others_told() {
    let question = Question { quantity: Quantity::Hold, by: None, sides: None };
    let mut fleet = Fleet::new(question);
    for n in 0..20 {
        let host = ["a", "b", "c", "d"][n as usize % 4];
        // On one host, the lock with the least time is slow.
        let slow = if host == "c" { 40 } else { 10 };
        let rows = [("least", slow), ("more", 1_000 + n % 3), ("most", 9_000 + n % 3)];
        let rows = rows.map(|(name, dur)| row(name, dur + n / 10, Mark::Exact));
        fleet.count(member(host, "1", n), &rows);
    }
    let said = |most: usize| {
        let section = fleet.differing(most);
        let head = Section::new("fleet", "");
        let document = Document { begin_ns: 0, head, sections: vec![section] };
        let json = serde_json::to_value(&document).expect("JSON");
        (json["sections"]["hosts"]["values"][0]["name"].clone(), document.to_string())
    };
    let (name, text) = said(3 * 24);
    assert_eq!(name, "least", "{text}");
    assert!(!text.contains("not tested"), "{text}");
    let (name, text) = said(3 * 24 - 1);
    assert_ne!(name, "least", "{text}");
    assert!(text.contains("1 subject with less time than these not tested"), "{text}");
}

#[test]
fn a_fleet_says_what_its_traces_say() {
    let sides = "build=1,2".parse().expect("two sides");
    let question = Question { quantity: Quantity::Hold, by: Some(By::Hour), sides: Some(sides) };
    let mut fleet = Fleet::new(question);
    for (i, host) in ["a", "b", "c"].into_iter().enumerate() {
        for (build, dur) in [("1", 10_000), ("2", 20_000)] {
            let dur = dur + 100 * i as i64;
            let n = fleet.members.len() as i64;
            fleet.count(
                member(host, build, n),
                &[row("L", dur, Mark::Exact), row("M", 50, Mark::LowerBound)],
            );
        }
    }
    fleet.not_read.push(("host=d".into(), "it was not analysed".into()));
    let json = serde_json::to_value(fleet.document()).expect("JSON");
    let text = fleet.document().to_string();
    let worst = &json["sections"]["worst"]["values"];
    assert_eq!(worst[0]["name"], "L", "{json:#}");
    assert_eq!(worst[0]["max_ns"], 20_200);
    assert_eq!(worst[0]["worst_trace"], "host=c/date=2026-11-24/trace=5");
    assert_eq!(worst[0]["worst_ts"], 20_200);
    let by = &json["sections"]["by"]["values"];
    assert_eq!((&by[5]["name"], by[5]["exact"].as_u64()), (&"05:00".into(), Some(1)));
    let compared = &json["sections"]["compared"]["values"][0];
    assert_eq!((&compared["name"], &compared["hosts"]), (&"L".into(), &3.into()));
    assert!((compared["change"].as_f64().expect("a change") - 0.99).abs() < 0.02, "{compared}");
    assert_eq!(compared["differs"], true);
    for words in [
        "6 traces of 3 hosts",
        "6 lower bounds among them",
        "1 trace not in these figures",
        "A star (*) marks a row of which",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_fleet_says_how_many_hosts_can_be_compared() {
    let sides = "build=1,2".parse().expect("two sides");
    let mut fleet = Fleet::new(Question { quantity: Quantity::Hold, by: None, sides: Some(sides) });
    for (n, (host, build)) in [("a", "1"), ("a", "2"), ("b", "1")].into_iter().enumerate() {
        fleet.count(member(host, build, n as i64), &[row("L", 10_000, Mark::Exact)]);
    }
    let text = format!("{:400}", fleet.document());
    assert!(text.contains("1 host with traces of both sides, and it takes two"), "{text}");
}
