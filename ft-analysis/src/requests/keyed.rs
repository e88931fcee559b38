//! Requests with a key that go on, and causes with one, of all processes together.
//!
//! Their number is bounded. Of too many, the process that has most of them loses the one that it began first, so a process
//! that begins requests without end takes the room of its own, and of others only what they have beyond an equal share.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use ft_trace::ids::Pid;

use super::Open;

/// Those that go on at once.
///
/// Limit: of the process that has most of them, the one that began first has no row and is counted (`too_many`); for
/// causes with a key, by their kind. A process with an equal share or less loses none.
/// Shown by: `requests_with_a_key_are_bounded_and_counted`, `keys_are_bounded_and_counted`,
/// `a_process_that_begins_requests_without_end_costs_no_other_its_own`.
pub(super) const MAX_OPEN_REQUESTS: usize = if cfg!(test) { 1 << 12 } else { 1 << 16 };

/// The number of the kind that was asked for, and the value of the argument.
pub(super) type Key = (usize, i64);

/// Those that go on.
#[derive(Debug, Default)]
pub(super) struct Keyed {
    /// Of each key and process, in the order in which they began.
    open: HashMap<Key, BTreeMap<Pid, VecDeque<Open>>>,
    /// Of each process, by the order in which they began.
    begun: HashMap<Pid, BTreeSet<(u64, Key)>>,
    /// How many each process has.
    most: BTreeSet<(usize, Pid)>,
    len: usize,
}

impl Keyed {
    /// Adds one that begins; returns one that had to make room for it, with its kind.
    pub(super) fn push(&mut self, key: Key, open: Open) -> Option<(usize, Open)> {
        let pid = open.thread.pid;
        self.recount(pid, |begun| begun.insert((open.nth, key)));
        self.open.entry(key).or_default().entry(pid).or_default().push_back(open);
        if self.len <= MAX_OPEN_REQUESTS {
            return None;
        }
        let &(_, pid) = self.most.last()?;
        let &(_, key) = self.begun.get(&pid)?.first()?;
        Some((key.0, self.take(key, pid, VecDeque::pop_front)?))
    }

    /// Some have this key.
    pub(super) fn contains(&self, key: Key) -> bool {
        self.open.contains_key(&key)
    }

    /// Takes away the newest one of a key: that of the process if it has one, else that of any.
    pub(super) fn take_newest(&mut self, key: Key, pid: Pid) -> Option<Open> {
        let of_key = self.open.get(&key)?;
        let newest = || {
            let newest = of_key.iter().max_by_key(|(_, open)| open.back().map(|open| open.nth));
            newest.map(|(pid, _)| *pid)
        };
        let pid = if of_key.contains_key(&pid) { pid } else { newest()? };
        self.take(key, pid, VecDeque::pop_back)
    }

    /// The kinds of those that go on, once for each.
    pub(super) fn kinds(&self) -> impl Iterator<Item = usize> {
        self.begun.values().flatten().map(|&(_, (kind, _))| kind)
    }

    fn take(
        &mut self,
        key: Key,
        pid: Pid,
        which: impl Fn(&mut VecDeque<Open>) -> Option<Open>,
    ) -> Option<Open> {
        let of_key = self.open.get_mut(&key)?;
        let own = of_key.get_mut(&pid)?;
        let open = which(own)?;
        if own.is_empty() {
            of_key.remove(&pid);
        }
        if of_key.is_empty() {
            self.open.remove(&key);
        }
        self.recount(pid, |begun| begun.remove(&(open.nth, key)));
        Some(open)
    }

    /// Changes those that a process has; `change` is true if it has changed them.
    fn recount(&mut self, pid: Pid, change: impl FnOnce(&mut BTreeSet<(u64, Key)>) -> bool) {
        let begun = self.begun.entry(pid).or_default();
        let before = begun.len();
        let changed = change(begun);
        debug_assert!(changed, "each has a number of its own");
        let after = begun.len();
        self.most.remove(&(before, pid));
        if after == 0 {
            self.begun.remove(&pid);
        } else {
            self.most.insert((after, pid));
        }
        self.len = self.len - before + after;
    }
}
