//! A bounded set of what belongs to several.
//!
//! Of too many, whoever has most of them loses one: one that has things without end takes those of its own, and of others only what they
//! have beyond an equal share.

use std::collections::{BTreeMap, BTreeSet};

/// Things of several owners.
#[derive(Debug)]
pub(super) struct Fair<O, T> {
    capacity: usize,
    len: usize,
    of: BTreeMap<O, BTreeSet<T>>,
    /// Owners by how much they have: the last is the one who has most.
    most: BTreeSet<(usize, O)>,
    cut: BTreeSet<O>,
}

impl<O: Copy + Ord, T: Ord> Fair<O, T> {
    pub(super) fn new(capacity: usize) -> Fair<O, T> {
        let (of, most, cut) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Fair { capacity, len: 0, of, most, cut }
    }

    /// Adds one, for which the owner of most of them may lose one; or nothing, where that is its own.
    pub(super) fn insert(&mut self, owner: O, thing: T) {
        let own = self.of.get(&owner);
        if own.is_some_and(|own| own.contains(&thing)) {
            return;
        }
        let own = own.map_or(0, BTreeSet::len);
        if self.len >= self.capacity {
            let others = self.most.last().filter(|(most, _)| *most > own);
            let Some(&(_, largest)) = others else {
                self.cut.insert(owner);
                return;
            };
            self.change(largest, BTreeSet::pop_last);
            self.cut.insert(largest);
        }
        self.change(owner, |own| own.insert(thing));
    }

    fn change<R>(&mut self, owner: O, change: impl FnOnce(&mut BTreeSet<T>) -> R) {
        let own = self.of.entry(owner).or_default();
        let before = own.len();
        change(own);
        self.len = self.len - before + own.len();
        self.most.remove(&(before, owner));
        self.most.insert((own.len(), owner));
    }

    /// What there is of each owner.
    pub(super) fn all(&self) -> impl Iterator<Item = (O, &BTreeSet<T>)> {
        self.of.iter().map(|(owner, own)| (*owner, own))
    }

    /// Who has lost some.
    pub(super) fn cut(&self) -> impl Iterator<Item = O> + '_ {
        self.cut.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_things_without_end_takes_its_own() {
        let mut fair = Fair::new(100);
        (0..200).for_each(|thing| fair.insert('m', thing));
        for owner in ['a', 'z'] {
            (0..3).for_each(|thing| fair.insert(owner, thing));
        }
        (200..210).for_each(|thing| fair.insert('m', thing));
        let all: Vec<_> = fair.all().map(|(owner, own)| (owner, own.len())).collect();
        assert_eq!(all, [('a', 3), ('m', 94), ('z', 3)]);
        assert_eq!((fair.len, fair.most.len()), (100, 3));
        assert_eq!(fair.cut().collect::<Vec<_>>(), ['m']);
        fair.insert('m', 5);
        assert_eq!(fair.len, 100, "it is there already");
    }
}
