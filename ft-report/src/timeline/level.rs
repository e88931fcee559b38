//! The whole trace in buckets: how long each row was in each state in each of them.
//!
//! Whatever is added is shared out to the buckets that it touches to the nanosecond, so sums over whole buckets are
//! right, and that of all buckets is the sum of all that was added.

use super::encode::Bytes;

/// Buckets at most.
///
/// Limit: buckets are wider; sums over whole ones stay exact, and the page states their width.
/// Shown by: `many_rows_have_wider_buckets`.
const MAX_BUCKETS: usize = 4096;

/// Buckets of all rows at most: what bounds memory and the size of the page.
///
/// Limit: as `MAX_BUCKETS`.
const MAX_CELLS: usize = 1 << 18;

/// How long each row was in each state.
#[derive(Debug)]
pub(super) struct Level {
    width: i64,
    count: usize,
    span: i64,
    /// By row and state; nothing where the row was never in it.
    rows: Vec<Vec<Option<Box<[u64]>>>>,
}

impl Level {
    /// Of `rows` rows that are in `states` states, over `span` ns.
    pub(super) fn new(span: i64, rows: usize, states: usize) -> Level {
        let most = (MAX_CELLS / rows.max(1)).clamp(64, MAX_BUCKETS) as i64;
        let width = (span.max(1) + most - 1) / most;
        let count = ((span.max(1) + width - 1) / width) as usize;
        Level { width, count, span, rows: vec![vec![None; states]; rows] }
    }

    /// Width of a bucket, ns. The last one may be shorter.
    pub(super) fn width(&self) -> i64 {
        self.width
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds the time from `from` to `to`.
    pub(super) fn add(&mut self, row: usize, state: usize, from: i64, to: i64) {
        self.spread(row, state, from, to, to - from);
    }

    /// Adds `ns` ns evenly between `from` and `to`.
    pub(super) fn spread(&mut self, row: usize, state: usize, from: i64, to: i64, ns: i64) {
        let (begin, end) = (from.clamp(0, self.span), to.clamp(0, self.span));
        if begin >= end || ns <= 0 {
            return;
        }
        let length = i128::from(to - from);
        let share = |t: i64| (i128::from(ns) * i128::from(t - from) / length) as i64;
        let (width, count) = (self.width, self.count);
        let sums = self.rows[row][state].get_or_insert_with(|| vec![0; count].into());
        let mut at = begin;
        while at < end {
            let bucket = at / width;
            let next = end.min((bucket + 1) * width);
            sums[bucket as usize] += (share(next) - share(at)) as u64;
            at = next;
        }
    }

    /// Whether a row was ever in a state.
    pub(super) fn is_used(&self, row: usize) -> bool {
        self.rows[row].iter().any(Option::is_some)
    }

    /// How long a row was in a state in all.
    #[cfg(test)]
    pub(super) fn total(&self, row: usize, state: usize) -> u64 {
        self.rows[row][state].iter().flatten().sum()
    }

    /// As bytes: of each of these rows, its series, each behind its state plus 1, and a 0.
    pub(super) fn encode(&self, rows: impl IntoIterator<Item = usize>) -> Bytes {
        let mut bytes = Bytes::default();
        for row in rows {
            for (state, sums) in self.rows[row].iter().enumerate() {
                if let Some(sums) = sums {
                    bytes.number(state as u64 + 1);
                    sums.iter().for_each(|&ns| bytes.number(ns));
                }
            }
            bytes.number(0);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_in_the_buckets_that_it_touches_to_the_nanosecond() {
        let mut level = Level::new(10_000_000, 2, 3);
        assert!(level.count() <= MAX_BUCKETS);
        level.add(1, 2, 100, 9_999_999);
        level.add(1, 2, 9_999_999, 10_000_000);
        assert_eq!(level.total(1, 2), 9_999_900);
        let sums = level.rows[1][2].as_ref().expect("was added");
        assert_eq!(sums[0] as i64, level.width() - 100);
        assert!(sums[1..level.count() - 1].iter().all(|&ns| ns as i64 == level.width()));
        assert!(!level.is_used(0) && level.is_used(1));
    }

    #[test]
    fn what_is_spread_keeps_its_sum_whatever_the_buckets() {
        let mut level = Level::new(1_000_003, 1, 1);
        level.spread(0, 0, 17, 1_000_001, 777);
        level.spread(0, 0, 5, 6, 1);
        assert_eq!(level.total(0, 0), 778);
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let mut level = Level::new(1000, 1, 1);
        level.add(0, 0, -50, 20);
        level.add(0, 0, 990, 2000);
        assert_eq!(level.total(0, 0), 30);
    }

    #[test]
    fn many_rows_have_wider_buckets() {
        let level = Level::new(i64::from(u32::MAX), 2048, 9);
        assert!(level.count() * 2048 <= MAX_CELLS && level.count() >= 128);
    }
}
