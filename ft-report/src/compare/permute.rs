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
//! Units are recordings, not events: what goes on in one run (a phase, a neighbour, a warm cache) touches many of its
//! events alike, and a test that takes them for independent finds differences between any two runs. A bootstrap of few
//! units gives intervals that are too narrow (of four, by an eighth in the error alone, and far more in the tails), and a
//! rank test cannot pass a correction for hundreds of rows with fewer than eight or nine recordings a side: its smallest
//! error is one in the number of ways, for each row alone. Here that is the error for all rows together, so four will do.

use fastrand::Rng;

/// Chance that a comparison of what does not differ names any row.
pub const ALPHA: f64 = 0.05;

/// Ways to call units A that are looked at: all, or where there are more, this many, drawn at random.
pub const MAX_LABELINGS: usize = 5_000;

/// Where the draws begin, so that a comparison says the same again.
pub const SEED: u64 = 2007;

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
    /// Mean of B minus mean of A.
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
        let largest = |labeling: &Vec<usize>| {
            let mut is_a = vec![false; n];
            labeling.iter().for_each(|&unit| is_a[unit] = true);
            let sizes = rows.iter().map(|row| sides.size(difference_of(row, &is_a).t()));
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

/// The difference of a row as it was seen.
pub fn difference(row: &Row, a: usize) -> Difference {
    let is_a: Vec<bool> = (0..row.values.len()).map(|unit| unit < a).collect();
    difference_of(row, &is_a)
}

/// Welch's statistic; with a single value on a side, Student's, since one has no variance. Without a value on a side, or
/// with but one on each, nothing differs.
fn difference_of(row: &Row, is_a: &[bool]) -> Difference {
    let by_side = || {
        let values = row.values.iter().zip(is_a).filter(|(value, _)| !value.is_nan());
        values.map(|(value, is_a)| (usize::from(!is_a), *value))
    };
    let [mut n, mut mean, mut squares] = [[0.0; 2]; 3];
    for (side, value) in by_side() {
        n[side] += 1.0;
        mean[side] += value;
    }
    if n[0] == 0.0 || n[1] == 0.0 || n[0] + n[1] < 3.0 {
        return Difference { by: 0.0, error: f64::INFINITY };
    }
    (0..2).for_each(|side| mean[side] /= n[side]);
    by_side().for_each(|(side, value)| squares[side] += (value - mean[side]).powi(2));
    let variance = match n {
        [a, b] if a < 2.0 || b < 2.0 => {
            (squares[0] + squares[1]) / (a + b - 2.0) * (1.0 / a + 1.0 / b)
        }
        [a, b] => squares[0] / (a - 1.0) / a + squares[1] / (b - 1.0) / b,
    };
    // A value that was rounded to steps lies anywhere in its step: a variance of a twelfth of the step's square.
    let rounding = row.resolution.powi(2) / 12.0 * (1.0 / n[0] + 1.0 / n[1]);
    Difference { by: mean[1] - mean[0], error: (variance + rounding).sqrt() }
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
