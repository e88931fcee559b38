//! Futexes at which a thread waits once, in the midst of its work.
//!
//! **Rule.** Whoever waits for work comes back to where it waits when it has done that. A thread that waits at a futex once, until another
//! one of its process ends that, and works then, has needed what that one had.
//!
//! **Situations.**
//! - *It hardly works behind it*: it may have been told to end. It has needed it all the same, if it had worked before, nobody else waits
//!   there, and it is not the one that has made it that ends its wait.
//! - *It waits for a thread that it has made, which ends at once*: it may have waited for that one's end.

use std::collections::{HashMap, HashSet, VecDeque};

use super::sums::For;
use ft_trace::ids::ThreadKey;

/// Futexes, and places in the code, at which a thread waits that are kept.
///
/// Limit: at further ones no wait counts as one of its kind (`turns`).
/// Shown by: `places_where_a_thread_waits_are_bounded`.
const MAX_PLACES: usize = 256;

/// Waits of all threads that were found, and threads that may end at once.
///
/// Limit: as `MAX_PLACES`.
const MAX_ONCE: usize = 1 << 14;

/// Newest waits of its maker that a thread has ended which are looked at when it ends: of an interpreter's lock, that may be several.
const NEWEST: usize = 8;

/// A thread has worked if that took it so long, ns.
const WORK_NS: i64 = 1_000_000;

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Futex(i64),
    Stack(i64),
}

/// A thread waited at a place at which it had not waited before.
#[derive(Clone, Debug)]
struct First {
    futex: i64,
    stack: Option<i64>,
    /// The thread that has made it has ended it.
    by_maker: bool,
    /// How long it had worked until then, ns.
    worked: i64,
}

/// Where one thread has waited.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The wait there, if it was the only one.
    at: HashMap<At, Option<usize>>,
    first: Vec<Option<First>>,
    /// How long it has run, or slept until a time, ns.
    worked: i64,
}

impl Places {
    /// It ran, or slept until a time.
    pub(super) fn works(&mut self, ns: i64) {
        self.worked += ns;
    }

    /// A wait is over, or will not be; `ended`: by another thread of its process, and whether that one has made it.
    pub(super) fn waited(&mut self, of: &For, ended: Option<bool>) {
        let Some(futex) = of.futex().filter(|_| !of.lock && !of.join) else { return };
        let at = [Some(At::Futex(futex)), of.stack.map(At::Stack)];
        let mut is_first = true;
        for at in at.into_iter().flatten() {
            let Some(before) = self.at.get_mut(&at) else { continue };
            before.take().into_iter().for_each(|first| self.first[first] = None);
            is_first = false;
        }
        if self.at.len() >= MAX_PLACES {
            return;
        }
        let worked = self.worked;
        let first = ended.filter(|_| is_first);
        let first = first.map(|by_maker| First { futex, stack: of.stack, by_maker, worked });
        let number = first.is_some().then_some(self.first.len());
        self.first.extend(first.map(Some));
        at.into_iter().flatten().for_each(|at| {
            self.at.insert(at, number);
        });
    }
}

/// Waits of threads that have ended.
#[derive(Debug, Default)]
pub(super) struct Once {
    /// By thread, futex and call chain: whether it has worked behind it.
    found: HashMap<(ThreadKey, i64, Option<i64>), bool>,
    /// When threads have ended waits of the one that has made them, and at which futexes: the newest.
    told: HashMap<ThreadKey, VecDeque<(i64, ThreadKey, i64)>>,
    /// Waits that such threads have ended as the last that they did.
    last: HashSet<(ThreadKey, i64)>,
}

impl Once {
    /// A thread ends a wait of the one that has made it.
    pub(super) fn told(&mut self, by: ThreadKey, maker: ThreadKey, futex: i64, ts: i64) {
        if self.told.len() < MAX_ONCE || self.told.contains_key(&by) {
            let told = self.told.entry(by).or_default();
            if told.len() == NEWEST {
                told.pop_front();
            }
            told.push_back((ts, maker, futex));
        }
    }

    /// A thread, or the trace, has ended; `ran`: for how long it has run since a time, ns.
    pub(super) fn ended(&mut self, thread: ThreadKey, places: Places, ran: impl Fn(i64) -> i64) {
        for (ts, maker, futex) in self.told.remove(&thread).into_iter().flatten() {
            if self.last.len() < MAX_ONCE && ran(ts) < WORK_NS {
                self.last.insert((maker, futex));
            }
        }
        for First { futex, stack, by_maker, worked } in places.first.into_iter().flatten() {
            let behind = places.worked - worked >= WORK_NS;
            let before = worked >= WORK_NS && !by_maker;
            if (behind || before) && self.found.len() < MAX_ONCE {
                self.found.insert((thread, futex, stack), behind);
            }
        }
    }

    /// Whether a thread has waited there once, in the midst of its work; `others`: whether other ones wait at this futex.
    pub(super) fn is(&self, thread: ThreadKey, of: &For, others: impl Fn(i64) -> bool) -> bool {
        let found = |futex| {
            let found = self.found.get(&(thread, futex, of.stack));
            found.is_some_and(|behind| *behind || !others(futex))
                && !self.last.contains(&(thread, futex))
        };
        !of.lock && !of.join && of.futex().is_some_and(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Pid, Tid};

    fn key(tid: i32) -> ThreadKey {
        ThreadKey { pid: Pid(1), tid: Tid(tid) }
    }

    fn at(futex: i64, stack: i64) -> For {
        For { object: Some(futex), stack: Some(stack), ..For::default() }
    }

    /// Whether the first of these waits is such a one, of a thread that has worked for so long before and behind it.
    fn is_once(waits: &[For], worked: [i64; 2]) -> bool {
        let mut places = Places::default();
        places.works(worked[0]);
        waits.iter().for_each(|of| places.waited(of, Some(false)));
        places.works(worked[1]);
        let mut once = Once::default();
        once.ended(key(1), places, |_| 0);
        once.is(key(1), &waits[0], |_| false)
    }

    #[test]
    fn whoever_comes_back_waits_for_work() {
        let busy = [WORK_NS, 0];
        assert!(is_once(&[at(64, 7)], busy) && is_once(&[at(64, 7)], [0, WORK_NS]));
        assert!(!is_once(&[at(64, 7)], [WORK_NS - 1; 2]), "it has no work of its own");
        assert!(is_once(&[at(64, 7), at(72, 8)], busy), "it waits for something else");
        for again in [at(64, 7), at(72, 7), at(64, 8)] {
            assert!(!is_once(&[at(64, 7), again.clone()], busy), "{again:?}");
        }
        assert!(!is_once(&[For { lock: true, ..at(64, 7) }], busy), "that is known");
    }

    #[test]
    fn whoever_hardly_works_behind_its_wait_may_have_been_told_to_end() {
        for (worked, by_maker, others, expected) in [
            ([WORK_NS, 0], false, false, true),
            ([WORK_NS, 0], true, false, false),
            ([WORK_NS, 0], false, true, false),
            ([0, WORK_NS], true, true, true),
        ] {
            let (mut places, mut once) = (Places::default(), Once::default());
            places.works(worked[0]);
            places.waited(&at(64, 7), Some(by_maker));
            places.works(worked[1]);
            once.ended(key(1), places, |_| 0);
            let is = once.is(key(1), &at(64, 7), |_| others);
            assert_eq!(is, expected, "{worked:?} {by_maker} {others}");
        }
    }

    #[test]
    fn one_may_wait_for_the_end_of_a_thread_that_it_has_made() {
        for (ran, expected) in [(WORK_NS - 1, false), (WORK_NS, true)] {
            let (mut once, mut places) = (Once::default(), Places::default());
            places.works(WORK_NS);
            places.waited(&at(64, 7), Some(false));
            once.told(key(2), key(1), 64, 50);
            // At the interpreter's lock.
            once.told(key(2), key(1), 128, 60);
            once.ended(key(2), Places::default(), |_| ran);
            once.ended(key(1), places, |_| 0);
            assert_eq!(once.is(key(1), &at(64, 7), |_| false), expected);
        }
    }

    #[test]
    fn places_where_a_thread_waits_are_bounded() {
        let mut places = Places::default();
        places.works(WORK_NS);
        (0..2 * MAX_PLACES as i64).for_each(|n| places.waited(&at(n, n), Some(false)));
        assert_eq!((places.at.len(), places.first.len()), (MAX_PLACES, MAX_PLACES / 2));
        let mut once = Once::default();
        once.ended(key(1), places, |_| 0);
        let is = |n| once.is(key(1), &at(n, n), |_| false);
        assert!(is(0) && !is(500));
        for n in 0..2 * MAX_ONCE as i32 {
            let mut places = Places::default();
            places.works(WORK_NS);
            places.waited(&at(1, 1), Some(false));
            once.told(key(n), key(1), 64, 0);
            once.ended(key(n), places, |_| 0);
            once.told(key(-n), key(1), 64, 0);
        }
        assert!(once.found.len().max(once.told.len()).max(once.last.len()) <= MAX_ONCE);
    }
}
