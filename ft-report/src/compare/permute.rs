//! Which differences are more than chance: permutations of whole units, and the largest of all rows.
//!
//! If A and B do not differ, it is chance which units (recordings) were called A. So each way to call as many of them A
//! is as likely as the one that was seen, whatever the distribution of a row, and however the rows depend on each other.
//! The *maximum over all rows* of the studentised difference, over all these ways, says how large a difference chance
//! makes somewhere; a row differs when its own is larger than that of all but 5 % of the ways (maxT of Westfall and
//! Young, *Resampling-Based Multiple Testing*, 1993, single step). So of comparisons of what does not differ at most 5 %
//! name any row, exactly, however many rows there are; and the interval `difference ± critical × error` of every row
//! excludes 0 if and only if the row differs.
//!
//! A busy machine disturbs a recording now and then, and one in ten that stands far out hides what all others show: it adds to
//! the variance more than to the difference. So where there are enough units a fifth is left out at each end, and the difference
//! is that of *trimmed means*, with the error of Yuen (*The two-sample trimmed t for unequal population variances*, Biometrika 61,
//! 1974), which is Welch's where nothing is left out. The price: what happens in fewer than one of five recordings of a side is
//! not found. The stated error does not depend on it, as it does not on any choice of what is compared.
//!
//! Units are recordings, not events: what goes on in one run (a phase, a neighbour, a warm cache) touches many of its
//! events alike, and a test that takes them for independent finds differences between any two runs. A bootstrap of few
//! units gives intervals that are too narrow (of four, by an eighth in the error alone, and far more in the tails), and a
//! rank test cannot pass a correction for hundreds of rows with fewer than eight or nine recordings a side: its smallest
//! error is one in the number of ways, for each row alone. Here that is the error for all rows together, so four will do.

use fastrand::Rng;

/// Chance that a comparison of what does not differ names any row.
pub const ALPHA: f64 = 0.05;

/// Ways to call units A that are looked at: all, or where there are more, this many, drawn at random.
///
/// Limit: that many are drawn, with a fixed seed: a share of 5 % is then right within 0.3 % (one standard error); JSON
/// says `all_labelings: false`.
/// Shown by: `labelings_are_all_there_or_drawn_alike_each_time`.
pub const MAX_LABELINGS: usize = 5_000;

/// Where the draws begin, so that a comparison says the same again.
pub const SEED: u64 = 2007;

/// Units of a side from which on a fifth of them is left out at each end. Of fewer those that are left have, in some of
/// all labelings, nearly the same values by chance, so that no difference stands out (measured: `cargo xtask compare-rates`).
///
/// Limit: what happens in fewer than one of five recordings is not found; with fewer recordings, all count.
/// Shown by: `a_fifth_at_each_end_is_left_out_of_eight_and_more`.
pub const TRIMMED_FROM: usize = 8;

/// How many of so many units of a side are left out at each end.
pub(super) fn trimmed(n: usize) -> usize {
    if n < TRIMMED_FROM { 0 } else { n / 5 }
}

/// One row: its value in each unit, those of A first.
#[derive(Clone, Debug)]
pub struct Row {
    /// The values, on the scale on which differences are taken; not a number where a unit has none.
    pub values: Vec<f64>,
    /// Error of a single value that units cannot show, because all are rounded alike.
    pub resolution: f64,
}

/// A row's difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Trimmed mean of B minus that of A.
    pub by: f64,
    /// Its standard error.
    pub error: f64,
}

impl Difference {
    /// The difference in its standard errors.
    pub fn t(self) -> f64 {
        if self.by == 0.0 { 0.0 } else { self.by / self.error }
    }
}

/// Which differences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Any.
    Both,
    /// Only that B is larger.
    Larger,
}

impl Sides {
    fn size(self, t: f64) -> f64 {
        match self {
            Sides::Both => t.abs(),
            Sides::Larger => t,
        }
    }
}

/// What chance makes of the largest difference of all rows.
#[derive(Clone, Debug)]
pub struct Chance {
    sides: Sides,
    /// The largest of each labeling, descending.
    maxima: Vec<f64>,
    /// Every labeling was looked at.
    pub all: bool,
}

impl Chance {
    /// Of rows whose first `a` values are those of A.
    pub fn of(rows: &[Row], a: usize, sides: Sides) -> Chance {
        let n = rows.first().map_or(a, |row| row.values.len());
        let (labelings, all) = labelings(n, a);
        let mut rows: Vec<Ordered> = rows.iter().map(Ordered::of).collect();
        let largest = |labeling: &Vec<usize>| {
            let mut is_a = vec![false; n];
            labeling.iter().for_each(|&unit| is_a[unit] = true);
            let sizes = rows.iter_mut().map(|row| sides.size(row.difference(&is_a).t()));
            sizes.fold(f64::NEG_INFINITY, f64::max)
        };
        let mut maxima: Vec<f64> = labelings.iter().map(largest).collect();
        maxima.sort_by(|x, y| y.total_cmp(x));
        Chance { sides, maxima, all }
    }

    /// Labelings that were looked at, that which was seen among them.
    pub fn labelings(&self) -> usize {
        self.maxima.len()
    }

    /// How likely chance alone makes the largest difference of all rows as large as this one (the row's `t`).
    pub fn p(&self, t: f64) -> f64 {
        // A labeling and its mirror have the same size, but for rounding.
        let size = self.sides.size(t);
        let size = size - size.abs() * 1e-9;
        let as_large = self.maxima.partition_point(|max| *max >= size);
        as_large as f64 / self.maxima.len() as f64
    }

    /// A row differs when its `t` is beyond. Infinite where there are too few labelings to tell.
    pub fn critical(&self) -> f64 {
        let may_be_larger = (ALPHA * self.maxima.len() as f64).floor() as usize;
        match may_be_larger {
            0 => f64::INFINITY,
            k => self.maxima.get(k).map_or(f64::INFINITY, |c| c + c.abs() * 1e-9),
        }
    }
}

/// The difference of a row as it was seen, of which the first `a` values are those of A.
pub fn difference(row: &Row, a: usize) -> Difference {
    let is_a: Vec<bool> = (0..row.values.len()).map(|unit| unit < a).collect();
    Ordered::of(row).difference(&is_a)
}

/// A row whose values are in order, so that those of a side are, too, however units are called.
struct Ordered {
    /// Values and units, ascending, of the units that have a value.
    values: Vec<(f64, usize)>,
    resolution: f64,
    /// The values of each side, of the labeling that is looked at.
    sides: [Vec<f64>; 2],
}

impl Ordered {
    fn of(row: &Row) -> Ordered {
        let units = row.values.iter().copied().zip(0..);
        let mut values: Vec<(f64, usize)> = units.filter(|(value, _)| !value.is_nan()).collect();
        values.sort_by(|x, y| x.0.total_cmp(&y.0));
        Ordered { values, resolution: row.resolution, sides: Default::default() }
    }

    /// Yuen's statistic; with a single value on a side, Student's, since one has no variance. Without a value on a side, or
    /// with but one on each, nothing differs.
    fn difference(&mut self, is_a: &[bool]) -> Difference {
        self.sides.iter_mut().for_each(Vec::clear);
        for &(value, unit) in &self.values {
            self.sides[usize::from(!is_a[unit])].push(value);
        }
        let [a, b] = self.sides.each_ref().map(|values| Trimmed::of(values));
        if a.n == 0.0 || b.n == 0.0 || a.n + b.n < 3.0 {
            return Difference { by: 0.0, error: f64::INFINITY };
        }
        let variance = match a.n < 2.0 || b.n < 2.0 {
            true => (a.squares + b.squares) / (a.n + b.n - 2.0) * (1.0 / a.n + 1.0 / b.n),
            false => a.squares / (a.n - 1.0) / a.n + b.squares / (b.n - 1.0) / b.n,
        };
        // A value that was rounded to steps lies anywhere in its step: a variance of a twelfth of the step's square.
        let rounding = self.resolution.powi(2) / 12.0 * (1.0 / a.n + 1.0 / b.n);
        Difference { by: b.mean - a.mean, error: (variance + rounding).sqrt() }
    }
}

/// The values of a side without those at its ends.
struct Trimmed {
    /// How many are left.
    n: f64,
    /// Their mean.
    mean: f64,
    /// Squares of the distances of all from their mean, where those that are left out count as the next that is not.
    squares: f64,
}

impl Trimmed {
    /// Of values in order.
    fn of(values: &[f64]) -> Trimmed {
        let out = trimmed(values.len());
        let left = &values[out..values.len() - out];
        let (n, sum) = (left.len() as f64, left.iter().sum::<f64>());
        let ends = [left.first(), left.last()].map(|end| end.copied().unwrap_or(0.0));
        let out = out as f64;
        let middle = (sum + out * (ends[0] + ends[1])) / (n + 2.0 * out);
        let of = |values: &[f64]| values.iter().map(|v| (v - middle).powi(2)).sum::<f64>();
        Trimmed { n, mean: sum / n, squares: of(left) + out * of(&ends) }
    }
}

/// The mean of a side's values that differences are taken of; none of nothing. In any order.
pub(super) fn mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| Trimmed::of(&values).mean)
}

/// Whether so many units on each side can show that anything differs.
pub fn can_tell(a: usize, b: usize) -> bool {
    // Where both sides are as many, a labeling and its mirror are equally far apart.
    let alike = if a == b { 2.0 } else { 1.0 };
    a > 0 && b > 0 && alike / ways(a + b, a) <= ALPHA
}

/// Ways to choose `k` of `n`.
fn ways(n: usize, k: usize) -> f64 {
    (0..k.min(n - k)).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64)
}

/// Which units are called A: first those that are, then the other ways, all or some.
fn labelings(n: usize, a: usize) -> (Vec<Vec<usize>>, bool) {
    let seen: Vec<usize> = (0..a).collect();
    if ways(n, a).round() <= MAX_LABELINGS as f64 {
        return (std::iter::successors(Some(seen), |last| next(last, n)).collect(), true);
    }
    let mut rng = Rng::with_seed(SEED);
    let mut draw = || {
        let mut units: Vec<usize> = (0..n).collect();
        rng.shuffle(&mut units);
        units.truncate(a);
        units
    };
    let drawn = (1..MAX_LABELINGS).map(|_| draw());
    (std::iter::once(seen).chain(drawn).collect(), false)
}

/// The next choice of ascending numbers below `n`, in lexicographic order.
fn next(last: &[usize], n: usize) -> Option<Vec<usize>> {
    let k = last.len();
    let i = (0..k).rev().find(|&i| last[i] < n - k + i)?;
    let mut next = last.to_vec();
    (i..k).for_each(|j| next[j] = last[i] + 1 + j - i);
    Some(next)
}

#[cfg(test)]
mod tests;
