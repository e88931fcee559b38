//! Which mappings of processes the registry has: each once, and of no process or user without end.
//!
//! A process can change what it has mapped as often as it likes, and a look finds all of it then. The registry of a flight recorder
//! lives long, so what is there of a process goes once the process has ended and nothing that is kept speaks of it
//! ([`Ended`](crate::record::ended::Ended)). Whether it has ended is asked now and then: not each of these has registered.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Bound::{Excluded, Unbounded};

use ft_trace::spool::mapping::{Kept, Mappings};

/// Processes of which one call finds out whether they live, at most.
///
/// Limit: nothing: the others have their turn in the next one.
/// Shown by: no figure: their turn comes.
pub(super) const ASKED_AT_ONCE: usize = 32;

/// What the registry has.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// By number and user.
    processes: BTreeMap<(i32, Option<u32>), Process>,
    kept: Kept,
    hasher: RandomState,
    /// Of whom it was asked last whether it lives.
    asked: Option<(i32, Option<u32>)>,
}

#[derive(Debug, Default)]
struct Process {
    start_time: Option<u64>,
    has_ended: bool,
    /// Hashes of its mappings.
    known: HashSet<u64>,
}

/// What is to be done about mappings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct New {
    /// They tell something.
    pub(super) is_any: bool,
    /// Some are left out, for there are too many.
    pub(super) is_cut: bool,
}

impl Told {
    /// Leaves out of `found` what the registry has, and what there is too much of.
    pub(super) fn new_of(&mut self, found: &mut Mappings) -> New {
        let (pid, user) = (found.pid, found.user);
        let mut is_any = !self.processes.contains_key(&(pid, user));
        let process = self.processes.entry((pid, user)).or_default();
        // One that did not say so now is who it was.
        found.start_time = found.start_time.or(process.start_time);
        let start_time = found.start_time;
        if is_any || process.start_time != start_time {
            (process.start_time, process.has_ended, is_any) = (start_time, false, true);
        }
        let mut is_cut = false;
        found.mappings.retain(|mapping| {
            let hash = self.hasher.hash_one((mapping.text(), mapping.is_gone));
            if process.known.contains(&hash) {
                return false;
            }
            let is_kept = self.kept.add(pid, user, mapping);
            if is_kept {
                process.known.insert(hash);
            }
            is_cut |= !is_kept;
            is_kept
        });
        New { is_any: is_any || !found.mappings.is_empty(), is_cut }
    }

    /// Asks of some processes whether they live: whether somebody has this number now, and when that one began, if it says so.
    /// Returns those that do not any more.
    pub(super) fn ended(&mut self, began: impl Fn(i32) -> Option<Option<u64>>) -> Vec<i32> {
        let behind = self.asked.map_or(Unbounded, Excluded);
        let mut some = self.processes.range_mut((behind, Unbounded)).take(ASKED_AT_ONCE);
        let mut ended = Vec::new();
        let mut last = None;
        for (&whose, process) in &mut some {
            last = Some(whose);
            if process.has_ended {
                continue;
            }
            let now = began(whose.0);
            let is_other = |now: Option<u64>| {
                now.zip(process.start_time).is_some_and(|(now, before)| now != before)
            };
            process.has_ended = now.is_none_or(is_other);
            ended.extend(process.has_ended.then_some(whose.0));
        }
        self.asked = last;
        ended
    }

    /// Processes that have not ended, as far as that is known.
    pub(super) fn alive(&self) -> impl Iterator<Item = i32> + '_ {
        self.processes.iter().filter(|(_, process)| !process.has_ended).map(|(whose, _)| whose.0)
    }

    /// The registry does not have these any more.
    pub(super) fn forget(&mut self, pids: &HashSet<i32>) {
        self.processes.retain(|(pid, _), _| !pids.contains(pid));
        self.kept.forget(|pid| pids.contains(&pid));
    }
}

#[cfg(test)]
mod tests {
    use ft_trace::spool::mapping::Mapping;

    use super::*;

    fn found(pid: i32, start_time: u64, starts: std::ops::Range<u64>) -> Mappings {
        let mapping = |start| Mapping { start, path: "/a".into(), ..Mapping::default() };
        let (user, start_time) = (Some(7), Some(start_time));
        let mappings = starts.map(mapping).collect();
        Mappings { pid, ts: 1, user, start_time, mappings, ..Mappings::default() }
    }

    fn tell(told: &mut Told, mut found: Mappings) -> (usize, bool, bool) {
        let New { is_any, is_cut } = told.new_of(&mut found);
        (found.mappings.len(), is_any, is_cut)
    }

    #[test]
    fn what_is_known_is_not_told_again() {
        let mut told = Told::default();
        assert_eq!(tell(&mut told, found(1, 10, 0..3)), (3, true, false));
        assert_eq!(tell(&mut told, found(1, 10, 0..3)), (0, false, false));
        assert_eq!(tell(&mut told, found(1, 10, 1..4)), (1, true, false));
        assert_eq!(tell(&mut told, found(1, 11, 1..4)), (0, true, false), "another process");
        assert_eq!(tell(&mut told, found(2, 10, 0..3)), (3, true, false));
        let mut gone = found(1, 11, 1..4);
        gone.mappings[1].is_gone = true;
        assert_eq!(tell(&mut told, gone), (1, true, false));
        let of_another = Mappings { user: Some(8), ..found(1, 11, 0..3) };
        assert_eq!(tell(&mut told, of_another), (3, true, false));
    }

    /// As one that executes itself over and over, with its text elsewhere each time.
    #[test]
    fn a_process_that_maps_other_text_without_end_comes_to_an_end() {
        let mut told = Told::default();
        let looks =
            (0..100).map(|look| tell(&mut told, found(1, 10, 4096 * look..4096 * (look + 1))));
        let looks: Vec<_> = looks.collect();
        assert_eq!(looks[1], (4096, true, false));
        assert_eq!(looks[2..].iter().map(|(told, ..)| told).sum::<usize>(), 0);
        assert_eq!(looks[99], (0, false, true));
        assert_eq!(tell(&mut told, found(2, 10, 0..3)), (3, true, false));
    }

    #[test]
    fn who_does_not_say_when_it_began_is_who_it_was() {
        let mut told = Told::default();
        tell(&mut told, found(1, 10, 0..3));
        let mut unsaid = Mappings { start_time: None, ..found(1, 10, 0..4) };
        assert!(told.new_of(&mut unsaid).is_any);
        assert_eq!((unsaid.start_time, unsaid.mappings.len()), (Some(10), 1));
        tell(&mut told, Mappings { start_time: None, ..found(2, 10, 0..3) });
        assert!(told.ended(|pid| Some((pid == 2).then_some(11))).is_empty());
        assert!(told.ended(|_| None).is_empty(), "the next round begins");
        assert_eq!(told.ended(|_| None), [1, 2]);
    }

    #[test]
    fn what_an_ended_process_had_is_forgotten() {
        let mut told = Told::default();
        let most = 4 * ASKED_AT_ONCE as i32;
        for pid in 0..most {
            tell(&mut told, found(pid, 10, 0..3));
        }
        // Of the odd ones another process has the number now, of which nothing is known yet.
        let began = |pid| (pid != 2).then_some((pid != 4).then_some(10 + pid as u64 % 2));
        let ended: Vec<i32> = (0..6).flat_map(|_| told.ended(began)).collect();
        let expected: Vec<i32> = (0..most).filter(|pid| pid % 2 == 1 || *pid == 2).collect();
        assert_eq!(ended, expected, "each is told once");
        tell(&mut told, found(3, 11, 0..4));
        let alive: Vec<i32> = told.alive().collect();
        assert!(alive.contains(&0) && alive.contains(&3) && !alive.contains(&5));
        told.forget(&[1, 5].into());
        assert_eq!(tell(&mut told, found(1, 12, 0..3)), (3, true, false));
        assert_eq!(tell(&mut told, found(7, 12, 0..3)), (0, true, false));
    }
}
