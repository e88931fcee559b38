//! Histograms that can be added: how often what was how long, for traces of many hosts, whose percentiles cannot be.
//!
//! **Rule.** Each row of holds, waits, wake-ups, gaps, scopes and requests counts once, in the bucket of its length, with those of
//! the same name, place, thread name, neighbour and mark. Bounds of buckets are the same in every trace, and whole nanoseconds: a
//! length below 64 ns is a bucket of its own, and each power of two beyond is divided into 32. So a percentile that is
//! read off the upper bound of its bucket is at most 1/32 too high, and never too low, however many histograms were added.
//!
//! **Memory** is bounded by [`MAX_BUCKETS`]. When there are more, the groups with the fewest intervals become one of
//! others, and from then on what has no group counts there. So a group that has rows has all of its intervals.

use std::collections::{BTreeMap, HashMap};

use crate::world::World;
use crate::{Mark, Rows};
use ft_trace::ids::{Name, Nanos, Pid, ThreadKey, Tid};
use ft_trace::tables::{Bucket, Quantity};

/// Buckets of all groups together; beyond that, half of them become those of others.
///
/// Limit: the groups with the fewest intervals become one `(others)`, where everything without a group is counted from
/// then on; groups that have rows are complete.
/// Shown by: `groups_that_do_not_fit_are_others_and_those_that_are_there_are_whole`.
const MAX_BUCKETS: usize = 1 << 18;

/// The name of a group of others, which has no place, no thread and no neighbour.
const OTHERS: &str = "(others)";

/// A power of two is divided into as many buckets as 2 to the power of this.
const BITS: u32 = 5;

/// What intervals have in common that are in one histogram.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Group {
    quantity: Quantity,
    name: Name,
    place: Name,
    comm: Name,
    neighbour: Name,
    mark: Mark,
}

/// Intervals of about one length.
#[derive(Clone, Copy, Debug)]
struct Cell {
    count: i64,
    sum_ns: i64,
    max_ns: i64,
    /// The longest one.
    ts: Nanos,
    thread: ThreadKey,
}

/// Makes the table `histograms` of the rows of others.
#[derive(Debug)]
pub struct Histograms {
    groups: HashMap<Group, BTreeMap<u32, Cell>>,
    buckets: usize,
    most: usize,
    /// What is in no group counts with the others.
    full: bool,
}

impl Default for Histograms {
    fn default() -> Self {
        Histograms::with_most(MAX_BUCKETS)
    }
}

impl Histograms {
    fn with_most(most: usize) -> Self {
        Histograms { groups: HashMap::new(), buckets: 0, most, full: false }
    }

    /// Counts rows that are finished, each once.
    pub fn add(&mut self, rows: &Rows, world: &World) {
        let empty = Name::default();
        let named = |quantity, name: &Name, place: &Name, comm: &Name, neighbour, mark| Group {
            quantity,
            name: name.clone(),
            place: place.clone(),
            comm: comm.clone(),
            neighbour,
            mark,
        };
        for r in &rows.critical_sections {
            let comm = world.context().comm(ThreadKey { pid: r.pid, tid: r.tid });
            let behind = neighbour(r.preemptor_tid, r.preemptor_comm.as_ref());
            let group = named(Quantity::Hold, &r.lock_name, &r.place, &comm, behind, r.mark);
            self.count(group, r.dur, r.ts, (r.pid, r.tid));
        }
        for r in &rows.lock_waits {
            let group =
                named(Quantity::Wait, &r.lock_name, &r.place, &r.comm, empty.clone(), r.mark);
            self.count(group, r.dur, r.ts, (r.pid, r.tid));
        }
        for r in &rows.dispatch_latency {
            let behind = neighbour(r.running_tid, r.running_comm.as_ref());
            let group = named(Quantity::Dispatch, &empty, &empty, &r.comm, behind, r.mark);
            self.count(group, r.dur, r.ts, (r.pid, r.tid));
        }
        for r in &rows.gaps {
            let cause = r.cause.map_or_else(Name::default, |cause| cause.word().into());
            // Without a thread it is an interrupt, or the tick of a host.
            let thread = r.culprit.as_ref().filter(|_| r.culprit_tid.is_some());
            let behind = neighbour(r.culprit_tid, thread);
            let group = named(Quantity::Gap, &cause, &empty, &r.comm, behind, r.mark);
            self.count(group, r.dur, r.ts, (r.pid, r.tid));
        }
        for r in &rows.scopes {
            let behind = neighbour(r.preemptor_tid, r.preemptor_comm.as_ref());
            let group = named(Quantity::Scope, &r.event, &empty, &r.comm, behind, r.mark);
            self.count(group, r.dur, r.ts, (r.pid, r.tid));
        }
        for r in &rows.requests {
            let group =
                named(Quantity::Request, &r.kind, &empty, &r.end_comm, empty.clone(), r.mark);
            self.count(group, r.dur, r.ts, (r.end_pid, r.end_tid));
        }
    }

    /// The table: of each group its buckets, the shortest first.
    pub fn into_rows(self) -> Vec<Bucket> {
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let buckets = groups.into_iter().flat_map(|(group, cells)| {
            cells.into_iter().map(move |(bucket, cell)| {
                let (from_ns, to_ns) = bounds(bucket);
                Bucket {
                    ts: cell.ts,
                    pid: cell.thread.pid,
                    tid: cell.thread.tid,
                    quantity: group.quantity,
                    name: group.name.clone(),
                    place: group.place.clone(),
                    comm: group.comm.clone(),
                    neighbour: group.neighbour.clone(),
                    from_ns,
                    to_ns,
                    count: cell.count,
                    sum_ns: cell.sum_ns,
                    max_ns: cell.max_ns,
                    mark: group.mark,
                }
            })
        });
        buckets.collect()
    }

    fn count(&mut self, group: Group, ns: i64, ts: Nanos, (pid, tid): (Pid, Tid)) {
        let cell = Cell { count: 1, sum_ns: ns, max_ns: ns, ts, thread: ThreadKey { pid, tid } };
        let group = match self.full && !self.groups.contains_key(&group) {
            true => group.others(),
            false => group,
        };
        self.put(group, bucket(ns), cell);
        if self.buckets > self.most {
            self.make_room();
        }
    }

    fn put(&mut self, group: Group, bucket: u32, cell: Cell) {
        let cells = self.groups.entry(group).or_default();
        let before = cells.len();
        cells.entry(bucket).and_modify(|known| known.add(cell)).or_insert(cell);
        self.buckets += cells.len() - before;
    }

    /// Makes the smallest groups one of others, of each quantity and mark, until half of the buckets are free.
    fn make_room(&mut self) {
        self.full = true;
        let intervals = |cells: &BTreeMap<u32, Cell>| cells.values().map(|c| c.count).sum::<i64>();
        let mut smallest: Vec<(i64, Group)> = self
            .groups
            .iter()
            .filter(|(group, _)| &*group.name != OTHERS)
            .map(|(group, cells)| (intervals(cells), group.clone()))
            .collect();
        smallest.sort_unstable();
        for (_, group) in smallest {
            if self.buckets <= self.most / 2 {
                break;
            }
            let Some(cells) = self.groups.remove(&group) else { continue };
            self.buckets -= cells.len();
            for (bucket, cell) in cells {
                self.put(group.others(), bucket, cell);
            }
        }
    }
}

impl Group {
    /// Where it counts when it has no room of its own.
    fn others(&self) -> Group {
        let [place, comm, neighbour] = [Name::default(), Name::default(), Name::default()];
        let (quantity, mark) = (self.quantity, self.mark);
        Group { quantity, name: OTHERS.into(), place, comm, neighbour, mark }
    }
}

impl Cell {
    fn add(&mut self, other: Cell) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        if other.max_ns > self.max_ns {
            (self.max_ns, self.ts, self.thread) = (other.max_ns, other.ts, other.thread);
        }
    }
}

/// The name under which a thread that had the CPU is counted; the idle threads of all CPUs have one.
fn neighbour(tid: Option<i32>, comm: Option<&Name>) -> Name {
    match (tid, comm) {
        (Some(0), _) => "swapper".into(),
        (_, comm) => comm.cloned().unwrap_or_default(),
    }
}

/// The bucket of a length; a negative one is 0.
fn bucket(ns: i64) -> u32 {
    let ns = ns.max(0).unsigned_abs();
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) + (ns >> shift) as u32
}

/// The least and the greatest length of a bucket.
fn bounds(bucket: u32) -> (i64, i64) {
    // Of the first two powers of 2 to the power of BITS each length is a bucket.
    let shift = (bucket >> BITS).saturating_sub(1);
    let least = u64::from(bucket - (shift << BITS)) << shift;
    let greatest = least + ((1 << shift) - 1);
    (least as i64, greatest as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{feed, hold};

    #[test]
    fn every_length_is_within_the_bounds_of_its_bucket_and_these_are_near() {
        let mut lengths: Vec<i64> = (0..10_000).collect();
        for power in 0..63 {
            lengths.extend([-1, 0, 1].map(|more| (1 << power) + more));
        }
        lengths.extend([i64::MAX, i64::MAX - 1, -1, i64::MIN]);
        for ns in lengths {
            let (least, greatest) = bounds(bucket(ns));
            assert!((least..=greatest).contains(&ns.max(0)), "{ns}: {least} to {greatest}");
            assert!(greatest - least <= least / 32, "{ns}: {least} to {greatest}");
        }
        // They follow each other without a hole.
        for bucket in 0..bucket(i64::MAX) {
            let (next, _) = bounds(bucket + 1);
            assert_eq!(bounds(bucket).1.checked_add(1), Some(next), "{bucket}");
        }
    }

    /// Holds of so many locks, of the nth n, each a little longer than the one before.
    fn of_locks(most: usize, locks: i64) -> (Vec<Bucket>, i64, i64) {
        let world = feed(true, "0 0 .>a S");
        let mut histograms = Histograms::with_most(most);
        let (mut count, mut sum) = (0, 0);
        for lock in 1..=locks {
            for n in 0..lock {
                let mut row = hold(100 + 100 * n);
                row.lock_name = format!("lock {lock}").into();
                (count, sum) = (count + 1, sum + row.dur);
                let rows = Rows { critical_sections: vec![row], ..Rows::default() };
                histograms.add(&rows, world.world());
            }
        }
        (histograms.into_rows(), count, sum)
    }

    #[test]
    fn groups_that_do_not_fit_are_others_and_those_that_are_there_are_whole() {
        let (all, ..) = of_locks(usize::MAX, 60);
        let (some, count, sum) = of_locks(300, 60);
        assert!(all.len() > 700 && some.len() <= 300, "{} and {}", all.len(), some.len());
        for rows in [&all, &some] {
            assert_eq!(rows.iter().map(|r| r.count).sum::<i64>(), count);
            assert_eq!(rows.iter().map(|r| r.sum_ns).sum::<i64>(), sum);
        }
        let of = |rows: &[Bucket], name: &str| -> i64 {
            rows.iter().filter(|r| &*r.name == name).map(|r| r.count).sum()
        };
        assert!(of(&some, OTHERS) > 0);
        let kept = some.iter().filter(|r| &*r.name != OTHERS).map(|r| r.name.clone());
        let kept: std::collections::BTreeSet<_> = kept.collect();
        assert!(kept.len() > 3, "{kept:?}");
        for name in kept {
            assert_eq!(of(&some, &name), of(&all, &name), "{name}");
        }
    }

    #[test]
    fn idle_cpus_are_one_neighbour_and_holds_stand_apart_by_theirs() {
        assert_eq!(&*neighbour(Some(0), Some(&"swapper/12".into())), "swapper");
        assert_eq!(&*neighbour(None, None), "");
        let world = feed(true, "0 0 .>a S");
        let mut beside = hold(100);
        (beside.preemptor_tid, beside.preemptor_comm) = (Some(9), Some("rustc".into()));
        let rows =
            Rows { critical_sections: vec![hold(100), beside, hold(101)], ..Rows::default() };
        let mut histograms = Histograms::default();
        histograms.add(&rows, world.world());
        let found = histograms.into_rows();
        let found: Vec<_> = found.iter().map(|r| (&*r.neighbour, r.count, r.sum_ns)).collect();
        assert_eq!(found, [("", 2, 201), ("rustc", 1, 100)]);
    }

    #[test]
    fn a_bucket_names_its_longest_interval_and_marks_stand_apart() {
        let world = feed(true, "0 0 .>a S");
        let mut histograms = Histograms::default();
        let mut rows = [1000, 1006, 1005].map(hold).to_vec();
        rows.iter_mut().zip(0..).for_each(|(row, i)| row.ts = Nanos(10 + i));
        rows.push(ft_trace::tables::CriticalSection { mark: Mark::LowerBound, ..hold(1003) });
        let rows = Rows { critical_sections: rows, ..Rows::default() };
        histograms.add(&rows, world.world());
        let found = histograms.into_rows();
        let found: Vec<_> =
            found.iter().map(|r| (r.count, r.sum_ns, r.max_ns, r.ts.0, r.mark)).collect();
        assert_eq!(found[0], (3, 3011, 1006, 11, Mark::Exact));
        assert_eq!((found[1].0, found[1].4), (1, Mark::LowerBound));
        assert_eq!(found.len(), 2);
    }
}
