//! How often `compare` calls different what is not, and how often it finds what is: with many recordings, measured by
//! `cargo xtask compare-rates`.

use std::path::PathBuf;

use ft_report::compare::permute::ALPHA;
use ft_report::compare::{Comparison, Condition, Run, Verdict, slices};

use crate::{TURNS, gate, read, record_with};

/// Recordings of the program as it is, and of each slower version; sets of half as many can be drawn.
const RECORDINGS: usize = 40;

/// Recordings of each side of a pair.
const SIZES: [usize; 6] = [4, 6, 8, 10, 12, 16];

/// A slowdown is found with so many recordings a side when it is found in this share of the pairs, percent.
const FOUND: usize = 95;

/// Pairs of sets in which something differs, of each kind.
const PAIRS: usize = 200;

/// Pairs of sets of one program, of each size: more of them, since what is stated of these is a small share.
const PAIRS_ALIKE: usize = 1_000;

/// How likely a run of this test fails although `compare` errs as seldom as stated, for each size.
const FALSE_ALARM: f64 = 1e-4;

/// All ways to choose `k` of `n` units to be called A.
pub(crate) fn splits(n: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    let chosen = move |bits: u32| (0..n).filter(|unit| bits >> unit & 1 == 1).collect::<Vec<_>>();
    (0..1u32 << n).filter(move |bits| bits.count_ones() as usize == k).map(chosen)
}

/// Whether any row differs where these runs are A and the others are B.
pub(crate) fn names_any(runs: &[Run], a: &[usize]) -> bool {
    let b: Vec<usize> = (0..runs.len()).filter(|unit| !a.contains(unit)).collect();
    compared((runs, a), (runs, &b), &[]).differing().next().is_some()
}

/// Compares some runs with others, or of others.
fn compared(a: (&[Run], &[usize]), b: (&[Run], &[usize]), conditions: &[Condition]) -> Comparison {
    let side = |(runs, units): (&[Run], &[usize])| units.iter().map(|&i| runs[i].clone()).collect();
    Comparison::of(side(a), side(b), conditions)
}

/// Draws sets of units, the same in every run of the test.
struct Draw(u64);

impl Draw {
    /// So many of `n`, each once.
    fn of(&mut self, k: usize, n: usize) -> Vec<usize> {
        let mut units: Vec<usize> = (0..n).collect();
        for i in 0..k {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            units.swap(i, i + (self.0 >> 33) as usize % (n - i));
        }
        units.truncate(k);
        units
    }
}

/// How likely more than `k` of `n` independent trials succeed, each with this probability: the binomial distribution's tail.
fn above(k: usize, n: usize, probability: f64) -> f64 {
    let log = |count: usize| -> f64 { (1..=count).map(|i| (i as f64).ln()).sum() };
    let term = |i: usize| {
        let ways = log(n) - log(i) - log(n - i);
        (ways + i as f64 * probability.ln() + (n - i) as f64 * (1.0 - probability).ln()).exp()
    };
    (k + 1..=n).map(term).sum()
}

/// The least number that a rate exceeds in `n` trials with at most this probability.
fn at_most(n: usize, rate: f64, probability: f64) -> usize {
    (0..n).find(|&k| above(k, n, rate) <= probability).unwrap_or(n)
}

/// The interval of rates of which none makes what was observed a rare extreme, at 95 %: that of Clopper and Pearson (*The use of
/// confidence or fiducial limits*, Biometrika 26, 1934).
fn interval(k: usize, n: usize) -> [f64; 2] {
    let edge = |is_above: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            *if is_above(middle) { &mut high } else { &mut low } = middle;
        }
        low
    };
    let low = match k {
        0 => 0.0,
        k => edge(&|rate| above(k - 1, n, rate) >= 0.025),
    };
    [low, edge(&|rate| above(k, n, rate) >= 0.975)]
}

fn percent(k: usize, n: usize) -> String {
    let [low, high] = interval(k, n).map(|rate| 100.0 * rate);
    format!(
        "{k} of {n} pairs ({:.1} %, {low:.1} to {high:.1} % at 95 %)",
        100.0 * k as f64 / n as f64
    )
}

#[test]
fn the_bound_of_an_error_rate_and_its_interval_are_those_of_the_binomial_distribution() {
    // By summing fractions.
    assert!((above(21, 200, 0.05) / 0.000_481_109_168 - 1.0).abs() < 1e-6);
    assert_eq!(at_most(PAIRS_ALIKE, ALPHA, FALSE_ALARM), 77);
    assert!(above(77, 1_000, 0.05) <= 1e-4 && above(76, 1_000, 0.05) > 1e-4);
    for (k, n, expected) in [
        (10, 200, [0.024_234, 0.090_028]),
        (0, 200, [0.0, 0.018_275]),
        (50, 1_000, [0.037_335, 0.065_390]),
    ] {
        let found = interval(k, n);
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5),
            "{k} of {n}: {found:?}"
        );
    }
}

/// Prints a figure where it can be followed, and for the summary of the tests.
fn tell(figure: &str) {
    gate::measured(&format!("compare: {figure}"));
}

#[test]
#[ignore = "records for minutes; cargo xtask compare-rates"]
fn error_rate_and_power_of_many_recordings() {
    gate::ran();
    let number =
        |name: &str, or: usize| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    let recordings = number("FT_COMPARE_RECORDINGS", RECORDINGS).max(20);
    let kernel = std::env::var("FT_COMPARE_KERNEL").unwrap_or_else(|_| "none".into());
    let folder = tempfile::tempdir().expect("a folder");
    let kept = std::env::var_os("FT_COMPARE_TRACES").map(PathBuf::from);
    let dir = kept.as_deref().unwrap_or(folder.path());
    let versions = [100, 105, 120, 150];
    let path = |percent: u64, i: usize| dir.join(format!("{percent}-{i}"));
    // In turns, so that what passes on the machine passes over all.
    for i in 0..recordings {
        for percent in versions {
            if !path(percent, i).exists() {
                record_with(&kernel, &path(percent, i), TURNS * percent / 100);
            }
        }
    }
    let runs = |percent: u64, slices: usize| -> Vec<Run> {
        let paths = (0..recordings).map(|i| path(percent, i)).filter(|path| path.exists());
        paths.map(|path| read(&path, slices)).collect()
    };
    let same = runs(100, 1);
    let mut draw = Draw(2007);
    tell(&format!(
        "{recordings} recordings of one program, -k {kernel}, in turns with slower versions"
    ));

    let sizes = || SIZES.into_iter().filter(|k| 2 * k <= recordings);
    for k in sizes() {
        let mut rows = 0;
        let named = (0..PAIRS_ALIKE).filter(|_| {
            let units = draw.of(2 * k, recordings);
            let found = compared((&same, &units[..k]), (&same, &units[k..]), &[]);
            rows = found.rows.iter().filter(|row| row.p.is_some()).count();
            found.differing().next().is_some()
        });
        let named = named.count();
        tell(&format!(
            "{k} against {k} of one program: {} name any of some {rows} rows",
            percent(named, PAIRS_ALIKE)
        ));
        // Whatever the recordings are, each pair is drawn anew, and its halves may as well be called the other way round: if what
        // is stated holds, pairs name a row independently of each other, at that rate at most.
        let bound = at_most(PAIRS_ALIKE, ALPHA, FALSE_ALARM);
        assert!(named <= bound, "{}: more than {bound}", percent(named, PAIRS_ALIKE));
    }
    let sliced = runs(100, slices(1, 1));
    let limit: [Condition; 1] = ["hold book median > +10%".parse().expect("a condition")];
    let (mut named, mut met) = (0, 0);
    for _ in 0..PAIRS {
        let pair = draw.of(2, recordings);
        let found = compared((&sliced, &pair[..1]), (&sliced, &pair[1..]), &limit);
        named += usize::from(found.differing().next().is_some());
        met += usize::from(found.outcomes[0].verdict == Verdict::Met);
    }
    tell(&format!(
        "1 against 1 of one program, by slices: {} name any row; 'hold book median > +10%' is met in {}",
        percent(named, PAIRS),
        percent(met, PAIRS)
    ));

    for slower in &versions[1..] {
        let slow = runs(*slower, 1);
        let by = slower - 100;
        let half: [Condition; 1] =
            [format!("hold book median > +{}%", by as f64 / 2.0).parse().expect("a condition")];
        let mut enough = None;
        for k in sizes() {
            let (mut found, mut met, mut changes) = (0, 0, Vec::new());
            for _ in 0..PAIRS {
                let (a, b) = (draw.of(k, recordings), draw.of(k, slow.len()));
                let compared = compared((&same, &a), (&slow, &b), &half);
                let mut rows = compared.rows.iter();
                let book =
                    rows.find(|row| row.label() == "hold book" && row.quantity.word() == "median");
                let book = book.expect("the row");
                found += usize::from(book.differs && book.change > Some(0.0));
                met += usize::from(compared.outcomes[0].verdict == Verdict::Met);
                changes.extend(book.change);
            }
            enough = enough.or((100 * found >= FOUND * PAIRS).then_some(k));
            changes.sort_by(f64::total_cmp);
            tell(&format!(
                "a lock {by} % slower, {k} against {k}: its median found in {} ({:+.1} % in the middle); as a condition \
                 '> +{}%' met in {}",
                percent(found, PAIRS),
                100.0 * changes[changes.len() / 2],
                by as f64 / 2.0,
                percent(met, PAIRS)
            ));
        }
        tell(&match enough {
            Some(k) => format!(
                "a lock {by} % slower is found in {FOUND} % of pairs and more by {k} against {k}"
            ),
            None => {
                format!("a lock {by} % slower is not found in {FOUND} % of pairs by any of these")
            }
        });
    }
}
