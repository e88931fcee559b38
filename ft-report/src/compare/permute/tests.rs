//! The stated error holds, and what is there is found; `tests/compare.rs` has SciPy look at the same.

use super::*;

/// Rows whose units come from one distribution: heavy tails, a run that stands out, rounded values, and sums of others.
fn alike(rng: &mut Rng, rows: usize, n: usize) -> Vec<Row> {
    let mut made: Vec<Row> = Vec::new();
    for number in 0..rows {
        let mut value = |i: usize| {
            let u = rng.f64().max(1e-12);
            match number % 5 {
                0 => u,
                1 => -u.ln(),
                // Pareto, of infinite variance.
                2 => u.powf(-0.8),
                3 => (10.0 * u).round(),
                // Some units have no value.
                _ if number == 4 && u < 0.3 => f64::NAN,
                _ => made.iter().rev().take(3).map(|row| row.values[i]).sum(),
            }
        };
        let values = (0..n).map(&mut value).collect();
        made.push(Row { values, resolution: 0.0 });
    }
    made
}

fn relabeled(rows: &[Row], labeling: &[usize]) -> Vec<Row> {
    let n = rows[0].values.len();
    let others = (0..n).filter(|unit| !labeling.contains(unit));
    let order: Vec<usize> = labeling.iter().copied().chain(others).collect();
    let values = |row: &Row| order.iter().map(|&unit| row.values[unit]).collect();
    rows.iter().map(|row| Row { values: values(row), resolution: row.resolution }).collect()
}

fn names_any(rows: &[Row], a: usize) -> bool {
    let chance = Chance::of(rows, a, Sides::Both);
    rows.iter().any(|row| difference(row, a).t().abs() > chance.critical())
}

#[test]
fn of_all_ways_to_call_units_a_no_more_than_the_stated_share_names_any_row() {
    // Not a matter of luck: over all labelings of the same units it is so by construction, whatever the units are.
    for (seed, a, b) in [(1, 4, 4), (2, 3, 5), (3, 4, 5), (4, 5, 4)] {
        let rows = alike(&mut Rng::with_seed(seed), 25, a + b);
        let (labelings, all) = labelings(a + b, a);
        assert!(all);
        let named = labelings.iter().filter(|l| names_any(&relabeled(&rows, l), a)).count();
        let share = named as f64 / labelings.len() as f64;
        assert!(named > 0 && share <= ALPHA, "{a} and {b}: {named} of {}", labelings.len());
    }
}

#[test]
fn of_pairs_that_are_drawn_about_the_stated_share_names_any_row() {
    // The seed decides: 200 pairs of 6 and 6 units, 924 labelings each.
    let mut rng = Rng::with_seed(11);
    let named = (0..200).filter(|_| names_any(&alike(&mut rng, 10, 12), 6)).count();
    assert!((3..=16).contains(&named), "{named} of 200");
}

#[test]
fn a_row_that_differs_is_found_among_many_that_do_not() {
    let mut rng = Rng::with_seed(5);
    for (by, expected) in [(0.0, false), (0.4, true), (-0.4, true)] {
        let mut rows = alike(&mut rng, 40, 10);
        let noise = |rng: &mut Rng| 1.0 + 0.02 * (rng.f64() - 0.5);
        let values = (0..10).map(|unit| noise(&mut rng) + if unit >= 5 { by } else { 0.0 });
        rows.push(Row { values: values.collect(), resolution: 0.0 });
        let chance = Chance::of(&rows, 5, Sides::Both);
        let d = difference(&rows[40], 5);
        assert_eq!(d.t().abs() > chance.critical(), expected, "{by}: {d:?}");
        // An interval excludes 0 if and only if the row differs, and so says its p.
        let half = chance.critical() * d.error;
        assert_eq!(d.by.abs() > half, expected);
        assert_eq!(chance.p(d.t()) <= ALPHA, expected);
        assert!((d.by - by).abs() < 0.02, "{d:?}");
    }
}

/// As a busy machine makes recordings: nearly all alike, and one in eight up to a third longer.
fn disturbed(rng: &mut Rng) -> f64 {
    let noise = 2e-3 * (rng.f64() - 0.5);
    if rng.f64() < 0.125 { noise + 0.3 * rng.f64() } else { noise }
}

#[test]
fn a_twentieth_is_found_beside_recordings_that_were_disturbed() {
    // The seed decides: 20 pairs, each with nine rows in which nothing differs.
    let mut rng = Rng::with_seed(3);
    let mut found = |k: usize, by: f64| {
        let mut pair = || {
            let mut rows = alike(&mut rng, 9, 2 * k);
            let b = |unit: usize| if unit >= k { by } else { 0.0 };
            let values = (0..2 * k).map(|unit| disturbed(&mut rng) + b(unit)).collect();
            rows.push(Row { values, resolution: 1e-3 });
            let critical = Chance::of(&rows, k, Sides::Both).critical();
            difference(&rows[9], k).t().abs() > critical
        };
        (0..20).filter(|_| pair()).count()
    };
    // Differences of the means of all values find it in fewer than half.
    let twentieth = found(12, 0.05);
    assert!(twentieth >= 15, "{twentieth} of 20");
    // A row in ten, of which any is named in one of 20.
    let nothing = found(12, 0.0);
    assert!(nothing <= 1, "{nothing} of 20");
}

#[test]
fn a_fifth_at_each_end_is_left_out_of_eight_and_more() {
    let value = |values: &[f64]| mean(values.to_vec());
    assert_eq!(value(&[]), None);
    assert_eq!(value(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 91.0]), Some(16.0));
    assert_eq!(value(&[900.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -90.0]), Some(3.5));
    // Ten: 2 and 2. Squares of 3, 3, 3, 4, …, 8, 8, 8 from 5.5, by h (h − 1).
    let of = Trimmed::of(&[0.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 50.0, 60.0]);
    assert_eq!((of.n, of.mean, of.squares), (6.0, 5.5, 42.5));
}

#[test]
fn one_side_is_asked_for_and_the_other_is_not_found() {
    let row = |b: f64| Row { values: vec![1.0, 1.1, 1.05, b, b + 0.1, b + 0.04], resolution: 0.0 };
    let differs = |b: f64, sides| {
        let rows = [row(b)];
        difference(&rows[0], 3).t() > Chance::of(&rows, 3, sides).critical()
    };
    // Three a side have 20 labelings: one of them is 5 %, a labeling and its mirror are 10 %.
    assert!(differs(2.0, Sides::Larger) && !differs(0.0, Sides::Larger));
    assert!(!differs(2.0, Sides::Both));
}

#[test]
fn how_many_units_it_takes() {
    let enough = [(4, 4), (3, 4), (3, 5), (2, 5), (1, 19), (20, 20)];
    let too_few = [(0, 5), (1, 1), (3, 3), (2, 4), (1, 18)];
    assert!(enough.iter().all(|&(a, b)| can_tell(a, b) && can_tell(b, a)));
    assert!(!too_few.iter().any(|&(a, b)| can_tell(a, b) || can_tell(b, a)));
    // With too few, nothing differs, however far apart.
    let row = |n: usize| Row { values: (0..2 * n).map(|i| i as f64).collect(), resolution: 0.0 };
    assert!(names_any(&[row(4)], 4) && !names_any(&[row(3)], 3) && !names_any(&[row(1)], 1));
}

#[test]
fn values_that_are_rounded_alike_do_not_differ_by_their_last_step() {
    let one_step = |resolution: f64| {
        let values = [30.0, 30.0, 30.0, 30.0, 40.0, 40.0, 40.0, 40.0];
        difference(&Row { values: values.to_vec(), resolution }, 4).t()
    };
    assert!(one_step(10.0) < 5.0 && one_step(0.0).is_infinite());
    let same = Row { values: vec![7.0; 8], resolution: 0.0 };
    assert_eq!(difference(&same, 4).t(), 0.0);
}

#[test]
fn labelings_are_all_there_or_drawn_alike_each_time() {
    let (all, whole) = labelings(6, 3);
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert!(whole && all.len() == 20 && distinct.len() == 20 && all[0] == [0, 1, 2]);
    let (some, whole) = labelings(40, 20);
    assert!(!whole && some.len() == MAX_LABELINGS && some[0] == (0..20).collect::<Vec<_>>());
    assert_eq!(some, labelings(40, 20).0);
    assert!(some.iter().all(|l| l.iter().collect::<std::collections::BTreeSet<_>>().len() == 20));
}
