//! Threads that were woken together, and of which all but one go back to sleep at once: a herd.
//!
//! **Rule.** A thread that wakes at least [`HERD`] others at futexes, none of them a lock, before it sleeps itself has called a herd. One of
//! these whose next sleep that is not for a lock is at the same place of its code was woken for nothing; but one of each herd was not,
//! for something had happened.

use std::collections::{HashMap, VecDeque};

use ft_trace::ids::ThreadKey;

/// Threads that are a herd.
const HERD: u64 = 3;

/// Herds that are kept, the newest, and threads of which it is known that they have called one. Of others nothing is for nothing.
///
/// Limit: what follows an older one does not count as for nothing (`vain`).
/// Shown by: `herds_and_callers_are_bounded`.
const MAX_HERDS: usize = 1 << 12;

/// Others that a thread has woken since it slept last.
#[derive(Clone, Copy, Debug, Default)]
struct Herd {
    size: u64,
    back: u64,
}

/// Number of a herd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Called(u64);

/// The newest herds.
#[derive(Debug, Default)]
pub(super) struct Herds {
    newest: VecDeque<Herd>,
    /// Number of the first of them.
    first: u64,
    /// That of each thread which it still calls.
    calling: HashMap<ThreadKey, u64>,
}

impl Herds {
    /// A thread wakes another one, which waits for no lock.
    pub(super) fn calls(&mut self, by: ThreadKey) -> Option<Called> {
        if self.calling.len() >= MAX_HERDS && !self.calling.contains_key(&by) {
            self.calling.retain(|_, number| *number >= self.first);
        }
        let next = self.first + self.newest.len() as u64;
        let number = *self.calling.entry(by).or_insert(next);
        if number == next {
            if self.newest.len() == MAX_HERDS {
                self.newest.pop_front();
                self.first += 1;
            }
            self.newest.push_back(Herd::default());
        }
        self.of(number)?.size += 1;
        Some(Called(number))
    }

    /// A thread sleeps: whom it wakes from now on is another herd.
    pub(super) fn sleeps(&mut self, caller: ThreadKey) {
        self.calling.remove(&caller);
    }

    /// One that was called goes back to where it slept; returns whether it came for nothing.
    pub(super) fn goes_back(&mut self, Called(number): Called) -> bool {
        let Some(herd) = self.of(number) else { return false };
        herd.back += 1;
        herd.size >= HERD && herd.back < herd.size
    }

    fn of(&mut self, number: u64) -> Option<&mut Herd> {
        self.newest.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Pid, Tid};

    fn key(tid: i32) -> ThreadKey {
        ThreadKey { pid: Pid(1), tid: Tid(tid) }
    }

    #[test]
    fn all_of_a_herd_but_one_came_for_nothing() {
        let mut herds = Herds::default();
        let mut count = |n: usize| {
            let called: Vec<_> = (0..n).filter_map(|_| herds.calls(key(1))).collect();
            // They come when it already sleeps.
            herds.sleeps(key(1));
            called.iter().filter(|called| herds.goes_back(**called)).count()
        };
        assert_eq!([count(12), count(2), count(3)], [11, 0, 2], "two are no herd");
    }

    #[test]
    fn herds_and_callers_are_bounded() {
        let mut herds = Herds::default();
        let first = herds.calls(key(0)).unwrap();
        for tid in 1..4 * MAX_HERDS as i32 {
            herds.calls(key(tid));
            assert!(herds.newest.len() <= MAX_HERDS && herds.calling.len() <= MAX_HERDS + 1);
        }
        assert!(!herds.goes_back(first) && herds.of(first.0).is_none());
        assert_eq!(herds.calls(key(0)).map(|called| herds.of(called.0).unwrap().size), Some(1));
    }
}
