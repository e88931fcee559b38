//! Statistics of the critical sections: per lock and over all (Feather-Trace, section 3).
//!
//! Locks of one name in one process are one group, however many instances there are; a lock without a
//! name is a group of its own. Shared and exclusive holds of one lock are told apart by their kind.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::marks::Marks;
use super::tail::Tail;
use super::top::Top;
use crate::stats::{Bins, Distribution, Thresholds};
use ft_analysis::{Incomplete, Mark, Tally};
use ft_trace::ids::{Name, Pid};
use ft_trace::tables::{CriticalSection, Decomposition};

/// Upper edges of the cumulative distribution, ns.
pub(super) const EDGES_NS: [i64; 16] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
];

/// Groups that are told apart; further locks go into one group named `(others)`.
const MAX_GROUPS: usize = 16_384;

/// Instances of a group that are counted.
const MAX_INSTANCES: usize = 1 << 16;

/// Longest holds that are shown.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct LocksReport {
    /// Holds in these statistics.
    pub holds: u64,
    /// Holds and waits that were recorded in part; in no statistic.
    pub incomplete: Incomplete,
    /// How sure they are.
    pub marks: Marks,
    /// Holds were decomposed: there is a kernel stream.
    pub decomposed: bool,
    /// How many holds of each nesting depth, from 0.
    pub depths: Vec<u64>,
    /// Holds whose depth is at least what is counted: events of their thread were lost before.
    pub depth_lower_bounds: u64,
    /// All holds together.
    pub all: Group,
    /// Each lock, most held time first.
    pub locks: Vec<Group>,
    /// The longest holds.
    pub longest: Vec<LongHold>,
}

/// Statistics of the holds of one lock, or of locks of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Group {
    /// Process; 0 over all.
    pub pid: i32,
    /// Name of the lock.
    pub lock: String,
    /// `mutex`, `rwlock-read`, …
    pub kind: String,
    /// Locks of this name and kind.
    pub instances: u64,
    /// There are no more than these; more than 65,536 are not counted.
    pub instances_exact: bool,
    /// Holds.
    pub holds: u64,
    /// Of these, with lost records: their `parts` are at least what is stated.
    pub lower_bounds: u64,
    /// Of these, while another lock was held.
    pub nested: u64,
    /// Of these, with a condition wait at an end.
    pub condition: u64,
    /// Sum of the hold times, ns.
    pub total_ns: i64,
    /// Average hold, ns.
    pub mean_ns: f64,
    /// Percentiles of the holds.
    #[serde(flatten)]
    pub tail: Tail,
    /// Holds that were waited for.
    pub waits: u64,
    /// Sum of these waits, ns.
    pub wait_total_ns: i64,
    /// Longest wait, ns.
    pub wait_max_ns: i64,
    /// Where the held time went; sums over the holds that were decomposed.
    pub parts: Parts,
    /// Holds that were preempted at least once.
    pub preempted_holds: u64,
    /// (ns, holds not longer).
    pub cumulative: Vec<(i64, u64)>,
    /// Histogram: (lower edge in ns, holds) of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
}

/// [`Decomposition`], named as in the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    pub(super) running_ns: i64,
    pub(super) preempted_ns: i64,
    pub(super) dispatch_ns: i64,
    pub(super) blocked_ns: i64,
    pub(super) hardirq_ns: i64,
    pub(super) softirq_ns: i64,
    pub(super) vector_ns: i64,
    pub(super) unexplained_ns: i64,
}

impl Parts {
    /// Time in any interrupt.
    pub(super) fn interrupts_ns(&self) -> i64 {
        self.hardirq_ns + self.softirq_ns + self.vector_ns
    }

    /// Sum of all parts.
    pub(super) fn total_ns(&self) -> i64 {
        self.running_ns
            + self.preempted_ns
            + self.dispatch_ns
            + self.blocked_ns
            + self.interrupts_ns()
            + self.unexplained_ns
    }

    pub(super) fn add(&mut self, d: &Decomposition) {
        self.running_ns += d.running_ns;
        self.preempted_ns += d.preempted_ns;
        self.dispatch_ns += d.dispatch_ns;
        self.blocked_ns += d.blocked_ns;
        self.hardirq_ns += d.hardirq_ns;
        self.softirq_ns += d.softirq_ns;
        self.vector_ns += d.vector_ns;
        self.unexplained_ns += d.unexplained_ns;
    }
}

impl From<&Decomposition> for Parts {
    fn from(d: &Decomposition) -> Self {
        let mut parts = Parts::default();
        parts.add(d);
        parts
    }
}

/// One of the longest holds.
#[derive(Clone, Debug, Serialize)]
pub struct LongHold {
    /// Acquisition, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Lock.
    pub lock: String,
    /// Its kind.
    pub kind: String,
    /// Where it was acquired.
    pub place: String,
    /// Holder.
    pub tid: i32,
    /// Locks held already.
    pub depth: i32,
    /// Where the time went.
    pub parts: Option<Parts>,
    /// Who ran most while the holder was preempted.
    pub preemptor: Option<String>,
    /// That thread's id.
    pub preemptor_tid: Option<i32>,
    /// How sure it is.
    pub mark: Mark,
}

impl From<&CriticalSection> for LongHold {
    fn from(r: &CriticalSection) -> Self {
        LongHold {
            ts: r.ts.0,
            dur_ns: r.dur,
            lock: r.lock_name.to_string(),
            kind: r.kind.to_string(),
            place: r.place.to_string(),
            tid: r.tid.0,
            depth: r.depth,
            parts: r.parts.as_ref().map(Parts::from),
            preemptor: r.preemptor_comm.as_ref().map(ToString::to_string),
            preemptor_tid: r.preemptor_tid,
            mark: r.mark,
        }
    }
}

/// What is counted of one group while rows come.
#[derive(Debug)]
struct Counts {
    /// By process and address: processes that were forked have locks at the same ones.
    instances: HashSet<(Pid, i64)>,
    more_instances: bool,
    holds: Distribution,
    waits: Distribution,
    lower_bounds: u64,
    nested: u64,
    condition: u64,
    preempted: u64,
    parts: Parts,
    cumulative: Thresholds<16>,
    bins: Bins,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            instances: HashSet::new(),
            more_instances: false,
            holds: Distribution::default(),
            waits: Distribution::default(),
            lower_bounds: 0,
            nested: 0,
            condition: 0,
            preempted: 0,
            parts: Parts::default(),
            cumulative: Thresholds::new(EDGES_NS),
            bins: Bins::default(),
        }
    }
}

impl Counts {
    fn add(&mut self, r: &CriticalSection) {
        if self.instances.len() < MAX_INSTANCES {
            self.instances.insert((r.pid, r.lock));
        } else {
            self.more_instances |= !self.instances.contains(&(r.pid, r.lock));
        }
        self.holds.add(r.dur);
        if r.wait_ns > 0 {
            self.waits.add(r.wait_ns);
        }
        self.lower_bounds += u64::from(r.mark == Mark::LowerBound);
        self.nested += u64::from(r.depth > 0);
        self.condition += u64::from(r.condition);
        if let Some(parts) = &r.parts {
            self.parts.add(parts);
            self.preempted += u64::from(parts.preempted_ns > 0);
        }
        self.cumulative.add(r.dur);
        self.bins.add(r.dur);
    }

    fn group(mut self, pid: i32, lock: String, kind: String) -> Group {
        Group {
            pid,
            lock,
            kind,
            instances: self.instances.len() as u64,
            instances_exact: !self.more_instances,
            holds: self.holds.count(),
            lower_bounds: self.lower_bounds,
            nested: self.nested,
            condition: self.condition,
            total_ns: self.holds.sum(),
            mean_ns: self.holds.mean(),
            tail: Tail::of(&mut self.holds),
            waits: self.waits.count(),
            wait_total_ns: self.waits.sum(),
            wait_max_ns: self.waits.max(),
            parts: self.parts,
            preempted_holds: self.preempted,
            cumulative: self.cumulative.iter().collect(),
            histogram_100ns: self.bins.iter().collect(),
        }
    }
}

/// Makes a [`LocksReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Locks {
    all: Counts,
    groups: HashMap<(Pid, Name, Name), Counts>,
    depths: BTreeMap<i32, u64>,
    depth_lower_bounds: u64,
    marks: Marks,
    longest: Top<LongHold>,
}

impl Locks {
    /// Counts a hold.
    pub fn add(&mut self, r: &CriticalSection) {
        self.all.add(r);
        let mut key = (r.pid, r.lock_name.clone(), r.kind.clone());
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key) {
            key = (Pid(0), "(others)".into(), "".into());
        }
        self.groups.entry(key).or_default().add(r);
        *self.depths.entry(r.depth.max(0)).or_default() += 1;
        self.depth_lower_bounds += u64::from(r.depth_mark != Mark::Exact);
        self.marks.add(r.mark);
        self.longest.offer(LONGEST, r.dur, || LongHold::from(r));
    }

    /// Finishes the statistics; `tally` tells what is not in them.
    pub fn finish(mut self, tally: &Tally) -> LocksReport {
        self.marks.add_many(Mark::Censored, tally.incomplete.holds());
        let mut locks: Vec<Group> = self
            .groups
            .into_iter()
            .map(|((pid, lock, kind), c)| c.group(pid.0, lock.to_string(), kind.to_string()))
            .collect();
        locks.sort_by(|a, b| {
            (b.total_ns, &a.lock, &a.kind, a.pid).cmp(&(a.total_ns, &b.lock, &b.kind, b.pid))
        });
        let deepest = self.depths.last_key_value().map_or(-1, |(depth, _)| *depth);
        LocksReport {
            holds: self.all.holds.count(),
            incomplete: tally.incomplete,
            marks: self.marks,
            decomposed: tally.kernel,
            depth_lower_bounds: self.depth_lower_bounds,
            depths: (0..=deepest).map(|d| self.depths.get(&d).copied().unwrap_or(0)).collect(),
            all: self.all.group(0, String::new(), String::new()),
            locks,
            longest: self.longest.into_sorted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Nanos, SiteId, Tid};

    #[test]
    fn instances_that_do_not_fit_are_told() {
        let mut counts = Counts::default();
        let mut add = |pid, lock| {
            counts.add(&CriticalSection {
                ts: Nanos(0),
                dur: 1,
                pid: Pid(pid),
                tid: Tid(1),
                lock,
                lock_name: "l".into(),
                kind: "mutex".into(),
                site: SiteId(0),
                place: "".into(),
                depth: 0,
                depth_mark: Mark::Exact,
                wait_ns: 0,
                condition: false,
                parts: None,
                preemptor_tid: None,
                preemptor_comm: None,
                preemptor_ns: None,
                mark: Mark::Exact,
            });
            let group = std::mem::take(&mut counts);
            let told = (group.instances.len(), !group.more_instances);
            counts = group;
            told
        };
        let most = MAX_INSTANCES as i64;
        (1..most).for_each(|lock| _ = add(1, lock));
        assert_eq!(add(1, 1), (MAX_INSTANCES - 1, true));
        assert_eq!(add(2, 1), (MAX_INSTANCES, true), "another process has another lock there");
        assert_eq!(add(1, 1), (MAX_INSTANCES, true));
        assert_eq!(add(2, 2), (MAX_INSTANCES, false));
        let group = counts.group(1, "l".into(), "mutex".into());
        assert!(!group.instances_exact);
    }
}
