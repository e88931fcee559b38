//! How long each of many had something: sums of time by who.
//!
//! **Rule.** All are kept, in the order of their keys. When there are more than [`MAX_KEPT`], the half that had least
//! goes into one *rest*. So the time that one had is at least its sum, and at most its sum and the rest; with no
//! rest, which is nearly always so, every sum is exact. Whoever reports a sum that has a rest beside it marks it.
//!
//! The half, and not the least one: so that an addition costs a binary search on the average, however many there are.

/// What sums are kept of.
pub trait Keyed: Clone {
    /// What distinguishes two of them.
    type Key: Ord;

    /// The same of two that are one.
    fn key(&self) -> Self::Key;
}

/// The time of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum<T> {
    pub(crate) who: T,
    pub(crate) ns: i64,
    /// When it began to have it.
    first: i64,
}

/// The times of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums<T> {
    each: Vec<Sum<T>>,
    rest_ns: i64,
}

/// Those that are kept; a thousand differ in one interval only where thousands of threads share a CPU or a lock.
///
/// Limit: the half with the least time becomes a rest, which bounds the error of each sum; the row is a `lower bound`.
/// Shown by: `what_does_not_fit_is_an_error_bound_…`, `more_holders_than_are_kept_…`, `memory_is_bounded_and_says_so`.
pub(crate) const MAX_KEPT: usize = 1024;

/// With so many, adding them one by one costs less than sorting.
const FEW: usize = 4;

impl<T> Default for Sums<T> {
    fn default() -> Self {
        Sums { each: Vec::new(), rest_ns: 0 }
    }
}

impl<T: Keyed> Sums<T> {
    /// `who` had it for `ns`, from the time `first` on.
    pub(crate) fn add(&mut self, who: &T, first: i64, ns: i64) {
        if ns <= 0 {
            return;
        }
        let key = who.key();
        match self.each.binary_search_by(|sum| sum.who.key().cmp(&key)) {
            Ok(i) => self.each[i].ns += ns,
            Err(i) => {
                self.each.insert(i, Sum { who: who.clone(), ns, first });
                self.cut();
            }
        }
    }

    /// For `ns` it is not known who had it.
    pub(crate) fn add_unknown(&mut self, ns: i64) {
        self.rest_ns += ns.max(0);
    }

    /// It cannot have been this one: its time is nobody's.
    pub(crate) fn disown(&mut self, key: &T::Key) {
        if let Ok(i) = self.each.binary_search_by(|sum| sum.who.key().cmp(key)) {
            self.rest_ns += self.each.remove(i).ns;
        }
    }

    /// Adds what another interval saw.
    pub(crate) fn merge(&mut self, other: &Sums<T>) {
        self.rest_ns += other.rest_ns;
        if other.each.len() <= FEW {
            other.each.iter().for_each(|sum| self.add(&sum.who, sum.first, sum.ns));
        } else {
            self.each.extend_from_slice(&other.each);
            self.fold();
            self.cut();
        }
    }

    /// Adds what an interval of length `of_ns` saw, of which only `ns` count. Where one had all of it, that is so much of
    /// its time; of several each has what cannot have been in the other part, and for the rest it is not known who had it.
    pub(crate) fn merge_cut(&mut self, other: &Sums<T>, ns: i64, of_ns: i64) {
        match &other.each[..] {
            _ if ns >= of_ns => self.merge(other),
            [one] if other.is_exact() => self.add(&one.who, one.first, one.ns.min(ns)),
            several => {
                let mut rest = ns;
                for sum in several {
                    let surely = (sum.ns - (of_ns - ns)).clamp(0, rest);
                    self.add(&sum.who, sum.first, surely);
                    rest -= surely;
                }
                self.add_unknown(rest);
            }
        }
    }

    /// All of them together, be they more than are kept otherwise.
    pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Sums<T>>) -> Sums<T>
    where
        T: 'a,
    {
        let (mut total, mut pieces) = (Sums::default(), 0);
        for sums in all.filter(|sums| !sums.is_empty()) {
            total.rest_ns += sums.rest_ns;
            total.each.extend_from_slice(&sums.each);
            pieces += 1;
        }
        if pieces > 1 {
            total.fold();
        }
        total
    }

    /// Brings those of one key together.
    fn fold(&mut self) {
        self.each.sort_by_key(|sum| sum.who.key());
        self.each.dedup_by(|later, kept| {
            let same = later.who.key() == kept.who.key();
            if same {
                kept.ns += later.ns;
                kept.first = kept.first.min(later.first);
            }
            same
        });
    }

    fn cut(&mut self) {
        if self.each.len() <= MAX_KEPT {
            return;
        }
        self.each.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        let least = self.each.drain(MAX_KEPT / 2..);
        self.rest_ns += least.map(|sum| sum.ns).sum::<i64>();
        self.each.sort_by_key(|sum| sum.who.key());
    }

    /// There is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.each.is_empty() && self.rest_ns == 0
    }

    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sum<T>> {
        self.each.iter()
    }

    /// Who had it longest; of equals, who had it first.
    pub(crate) fn longest(&self) -> Option<&Sum<T>> {
        self.each.iter().max_by_key(|sum| (sum.ns, std::cmp::Reverse(sum.first)))
    }

    /// The time of all those that are meant.
    pub(crate) fn of(&self, are_meant: impl Fn(&T) -> bool) -> i64 {
        self.each.iter().filter(|sum| are_meant(&sum.who)).map(|sum| sum.ns).sum()
    }

    /// Nobody has more than its sum.
    pub(crate) fn is_exact(&self) -> bool {
        self.rest_ns == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Keyed for u32 {
        type Key = u32;

        fn key(&self) -> u32 {
            *self
        }
    }

    fn check(sums: &Sums<u32>, expected: &[(u32, i64)]) {
        let found: Vec<_> = sums.iter().map(|s| (s.who, s.ns)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn sums_are_by_key_and_of_equals_the_first_is_longest() {
        let mut sums = Sums::default();
        assert_eq!(sums.longest(), None);
        sums.add(&7, 0, 10);
        sums.add(&3, 10, 5);
        sums.add(&7, 15, 0);
        sums.add(&3, 20, 5);
        check(&sums, &[(3, 10), (7, 10)]);
        assert_eq!(sums.longest().map(|s| s.who), Some(7));
        let mut other = Sums::default();
        (0..10).for_each(|who| other.add(&who, 30, 1));
        sums.merge(&other);
        assert_eq!(sums.longest().map(|s| (s.who, s.ns)), Some((7, 11)));
        let total = Sums::total([&sums, &other, &sums].into_iter());
        assert_eq!(total.iter().map(|s| s.ns).sum::<i64>(), 70);
        assert_eq!(total.longest().map(|s| (s.who, s.ns)), Some((7, 23)));
        assert!(total.is_exact());
    }

    #[test]
    fn of_a_part_of_what_several_had_each_has_what_is_sure() {
        let cut = |each: &[(u32, i64)], ns: i64| {
            let (mut all, mut part) = (Sums::default(), Sums::default());
            each.iter().for_each(|(who, ns)| all.add(who, 0, *ns));
            part.merge_cut(&all, ns, 100);
            (part.iter().map(|s| (s.who, s.ns)).collect::<Vec<_>>(), part.rest_ns)
        };
        assert_eq!(cut(&[(1, 70), (2, 30)], 100), (vec![(1, 70), (2, 30)], 0));
        assert_eq!(cut(&[(1, 70), (2, 30)], 60), (vec![(1, 30)], 30));
        assert_eq!(cut(&[(1, 70), (2, 30)], 90), (vec![(1, 60), (2, 20)], 10));
        assert_eq!(cut(&[(1, 50), (2, 50)], 40), (vec![], 40));
        assert_eq!(cut(&[(1, 100)], 40), (vec![(1, 40)], 0));
    }

    #[test]
    fn what_does_not_fit_is_an_error_bound_and_the_longest_stays() {
        // One has the time again and again, among ten thousand others that have it once.
        let mut sums = Sums::default();
        for i in 0..10_000 {
            sums.add(&(100 + i), i64::from(i), 3);
            sums.add(&7, i64::from(i), 1);
            assert!(sums.iter().count() <= MAX_KEPT);
        }
        assert!(!sums.is_exact());
        let named = sums.longest().map(|s| (s.who, s.ns)).unwrap();
        assert_eq!(named, (7, 10_000));
        let kept: i64 = sums.iter().map(|s| s.ns).sum();
        assert_eq!(kept + sums.rest_ns, 40_000, "nothing is lost");
        // As many in one piece, too.
        let mut merged = Sums::default();
        merged.merge(&Sums::total([&sums, &sums].into_iter()));
        merged.add_unknown(5);
        assert_eq!(merged.rest_ns, 2 * sums.rest_ns + 5);
        merged.disown(&7);
        assert_eq!(merged.rest_ns, 2 * sums.rest_ns + 5 + 20_000);
    }
}
