//! Where threads were in their code, and in which calls they slept, kept for the waits of others.

use std::collections::{HashMap, VecDeque};

use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::FileKind;

/// Spots that are kept of a thread: of more, the oldest are forgotten. A wait that goes back further does not know them.
///
/// Limit: the oldest are forgotten; `behind_stack` is null, or that of another moment of the same piece.
/// Shown by: `what_is_kept_is_bounded`.
const MAX_SPOTS: usize = 1 << 12;

/// Threads of which they are kept; with more, those that were seen longest ago are forgotten.
///
/// Limit: as `MAX_SPOTS`.
const MAX_SPOTTED: usize = 1 << 12;

/// How a thread came to be seen there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    /// The clock of its CPU struck.
    Sampled,
    /// It had to leave the CPU: often where it has just woken another thread, which says little of where it is else.
    Preempted,
    /// It woke another thread.
    Woke,
    /// It left the CPU to wait, in this call; whether for a lock.
    Slept(Option<Name>, Option<FileKind>, bool),
}

impl Seen {
    /// How much it says of where a thread ran.
    fn says(&self) -> u8 {
        match self {
            Seen::Sampled => 2,
            Seen::Preempted => 1,
            Seen::Woke | Seen::Slept(..) => 0,
        }
    }
}

/// A thread was there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) ts: i64,
    pub(super) seen: Seen,
    /// Number in `stacks`.
    pub(super) stack: Option<i64>,
}

/// Those of all threads.
#[derive(Debug, Default)]
pub(super) struct Spots(HashMap<ThreadKey, VecDeque<Spot>>);

impl Spots {
    /// A thread was there; not before it was seen anywhere else.
    pub(super) fn add(&mut self, thread: ThreadKey, mut spot: Spot) {
        if self.0.len() >= MAX_SPOTTED && !self.0.contains_key(&thread) {
            let mut newest: Vec<i64> =
                self.0.values().filter_map(|spots| spots.back().map(|spot| spot.ts)).collect();
            let middle = newest.len() / 2;
            let (_, median, _) = newest.select_nth_unstable(middle);
            let median = *median;
            self.0.retain(|_, spots| spots.back().is_some_and(|spot| spot.ts > median));
        }
        let spots = self.0.entry(thread).or_default();
        if spots.len() == MAX_SPOTS {
            spots.pop_front();
        }
        spot.ts = spots.back().map_or(spot.ts, |last| last.ts.max(spot.ts));
        spots.push_back(spot);
    }

    /// Where a thread was that has just gone to sleep.
    pub(super) fn slept_at(&mut self, thread: ThreadKey, stack: Option<i64>) {
        let newest = self.0.get_mut(&thread).and_then(VecDeque::back_mut);
        if let Some(spot) = newest.filter(|spot| matches!(spot.seen, Seen::Slept(..))) {
            spot.stack = spot.stack.or(stack);
        }
    }

    /// What a thread slept in that slept until `t`.
    pub(super) fn asleep(&self, thread: ThreadKey, t: i64) -> Option<&Spot> {
        let before = |spot: &&Spot| spot.ts < t;
        let newest_first = self.0.get(&thread)?.iter().rev();
        newest_first
            .skip_while(|spot| !before(spot))
            .take(MAX_LOOKS)
            .find(|spot| matches!(spot.seen, Seen::Slept(..)))
    }

    /// Where a thread was that ran in this time: a sample, else where it lost its CPU, else where it woke another one.
    pub(super) fn running(&self, thread: ThreadKey, from: i64, to: i64) -> Option<&Spot> {
        let spots = self.0.get(&thread)?;
        let end = spots.partition_point(|spot| spot.ts <= to);
        let within = spots.range(..end).rev().take(MAX_LOOKS).take_while(|spot| spot.ts >= from);
        let runs = within.filter(|spot| !matches!(spot.seen, Seen::Slept(..)));
        let is_best = |best: &Spot, spot: &Spot| {
            best.seen != Seen::Woke && best.seen.says() >= spot.seen.says()
        };
        runs.reduce(|best, spot| if is_best(best, spot) { best } else { spot })
    }
}

/// Spots that are looked at for one piece of time.
///
/// Limit: as `MAX_SPOTS`.
const MAX_LOOKS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Pid, Tid};

    fn key(tid: i32) -> ThreadKey {
        ThreadKey { pid: Pid(1), tid: Tid(tid) }
    }

    fn spot(ts: i64, seen: Seen) -> Spot {
        Spot { ts, seen, stack: Some(ts) }
    }

    #[test]
    fn a_sample_says_more_than_a_wake_up_and_a_sleep_is_found_by_its_end() {
        let mut spots = Spots::default();
        spots.add(key(1), spot(10, Seen::Sampled));
        spots.add(key(1), spot(15, Seen::Woke));
        spots.add(key(1), spot(20, Seen::Slept(None, None, false)));
        spots.add(key(1), spot(30, Seen::Woke));
        spots.slept_at(key(1), Some(7));
        assert_eq!(spots.0[&key(1)][3].stack, Some(30), "it is awake");
        spots.add(key(2), Spot { stack: None, ..spot(5, Seen::Slept(None, None, false)) });
        spots.slept_at(key(2), Some(7));
        assert_eq!(spots.asleep(key(2), 9).and_then(|spot| spot.stack), Some(7));
        let running = |from, to| spots.running(key(1), from, to).map(|spot| spot.ts);
        assert_eq!(running(5, 18), Some(10));
        assert_eq!(running(12, 18), Some(15));
        assert_eq!(running(16, 25), None);
        assert_eq!(spots.asleep(key(1), 28).map(|spot| spot.ts), Some(20));
        assert_eq!(spots.asleep(key(1), 20), None);
        assert_eq!(spots.running(key(2), 0, 100), None);
    }

    #[test]
    fn where_one_lost_its_cpu_says_less_than_a_sample_and_more_than_a_wake_up() {
        let mut spots = Spots::default();
        let all = [(10, Seen::Sampled), (12, Seen::Woke), (14, Seen::Preempted), (16, Seen::Woke)];
        all.into_iter().for_each(|(ts, seen)| spots.add(key(1), spot(ts, seen)));
        let seen = |from| spots.running(key(1), from, 17).map(|spot| spot.ts);
        assert_eq!([seen(10), seen(11), seen(15)], [Some(10), Some(14), Some(16)]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spots = Spots::default();
        for ts in 0..2 * MAX_SPOTS as i64 {
            spots.add(key(0), spot(ts, Seen::Woke));
        }
        assert_eq!(spots.0[&key(0)].len(), MAX_SPOTS);
        for tid in 1..2 * MAX_SPOTTED as i32 {
            spots.add(key(tid), spot(i64::from(tid), Seen::Woke));
            assert!(spots.0.len() <= MAX_SPOTTED);
        }
        assert!(spots.running(key(2 * MAX_SPOTTED as i32 - 1), 0, i64::MAX).is_some());
    }
}
