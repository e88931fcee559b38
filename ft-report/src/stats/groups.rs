//! Rows by what they have in common, in bounded memory.
//!
//! The first so many keys have a group each, and what comes later is one of others: each group that is shown is exact, for one
//! look-up a row. An analysis that asks who had most of an interval cannot do so, since who comes first says nothing about that
//! (`sums.rs` of its world); nor can histograms that are added over many traces, where the same groups should survive in each.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;

use ft_trace::ids::{Name, Pid, Tid};

/// What the group is called into which everything goes that has no room of its own.
pub const OTHERS: &str = "(others)";

/// What the idle task is called, of which each CPU has one, with a name of its own in the tables.
pub const IDLE: &str = "(idle)";

/// What rows have in common.
pub trait Key: Hash + Eq {
    /// The key of the group that takes a row whose own key has no room.
    #[must_use]
    fn others(&self) -> Self;
}

impl Key for Name {
    fn others(&self) -> Self {
        OTHERS.into()
    }
}

/// Processes that have no room have number 0, which no process has.
impl Key for Pid {
    fn others(&self) -> Self {
        Pid(0)
    }
}

impl Key for (Name, Name, Name) {
    fn others(&self) -> Self {
        (OTHERS.into(), "".into(), "".into())
    }
}

impl Key for (Pid, Name, Name) {
    fn others(&self) -> Self {
        (Pid(0), OTHERS.into(), "".into())
    }
}

impl Key for (Pid, Name, Name, Name) {
    fn others(&self) -> Self {
        (Pid(0), OTHERS.into(), "".into(), "".into())
    }
}

/// Threads that have no room have number 0, which no thread of a program has.
impl Key for (Pid, Tid) {
    fn others(&self) -> Self {
        (Pid(0), Tid(0))
    }
}

impl Key for (Pid, Tid, Name) {
    fn others(&self) -> Self {
        (Pid(0), Tid(0), OTHERS.into())
    }
}

/// Each class has others of its own.
impl<C: Copy + Hash + Eq> Key for (C, Option<Name>) {
    fn others(&self) -> Self {
        (self.0, Some(OTHERS.into()))
    }
}

/// At most `MOST` groups, and one of others.
#[derive(Clone, Debug)]
pub struct Groups<const MOST: usize, K, V>(HashMap<K, V>);

impl<const MOST: usize, K, V> Default for Groups<MOST, K, V> {
    fn default() -> Self {
        Groups(HashMap::new())
    }
}

impl<const MOST: usize, K: Key, V> Groups<MOST, K, V> {
    /// The group of a key, made by `new` when it is the first.
    pub fn entry_or(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        let fits = self.0.len() < MOST || self.0.contains_key(&key);
        self.0.entry(if fits { key } else { key.others() }).or_insert_with(new)
    }

    /// The group of a key.
    pub fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.entry_or(key, V::default)
    }

    /// All groups, each as `finish` makes it, sorted by a rank.
    pub fn into_ranked<G, R: Ord>(
        self,
        finish: impl FnMut((K, V)) -> G,
        rank: impl Fn(&G) -> R,
    ) -> Vec<G> {
        ranked(self.0.into_iter().map(finish).collect(), rank)
    }
}

/// Sorted by a rank, which is made once for each; equal ones stay in their order.
pub fn ranked<G, R: Ord>(groups: Vec<G>, rank: impl Fn(&G) -> R) -> Vec<G> {
    let ranks: Vec<R> = groups.iter().map(rank).collect();
    let order = order(ranks.len(), &|a, b| ranks[a].cmp(&ranks[b]));
    let mut groups: Vec<Option<G>> = groups.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| groups[place].take()).collect()
}

/// Not generic: there is one sort for all groups (`sort_by_cached_key` has four for each type of them).
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ranks_keep_their_order() {
        let found = ranked(vec!["bb", "a", "cc", "", "d"], |text| text.len());
        assert_eq!(found, ["", "a", "d", "bb", "cc"]);
    }

    #[test]
    fn what_has_no_room_is_with_the_others() {
        let mut groups: Groups<2, Name, u64> = Groups::default();
        for name in ["a", "b", "a", "c", "d", "b"] {
            *groups.entry(name.into()) += 1;
        }
        let found = groups.into_ranked(|(name, n)| (name.to_string(), n), Clone::clone);
        let found: Vec<_> = found.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(found, [(OTHERS, 2), ("a", 2), ("b", 2)]);
    }
}
