//! Statistics of the holds of one lock, of locks of one name, or of all.

use std::collections::HashSet;

use serde::Serialize;

use crate::stats::counted::CountedSums;
use crate::stats::{
    Bins, Counted, Depths, Distribution, Happened, OverTime, Own, Tail, Thresholds, Window,
};
use ft_analysis::Mark;
use ft_trace::ids::Pid;
use ft_trace::tables::{CriticalSection, Decomposition};

/// Upper edges of the cumulative distribution, ns.
const EDGES_NS: [i64; 16] = [
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

/// Instances of a group that are counted.
///
/// Limit: JSON says `instances_exact: false`; texts say *65,536+*.
/// Shown by: `instances_that_do_not_fit_are_marked`.
const MAX_INSTANCES: usize = 1 << 16;

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
    pub parts: Decomposition,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// What happened to the holders meanwhile.
    pub happened: Happened,
    /// What counters counted in each hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
    /// Holds that were preempted at least once.
    pub preempted_holds: u64,
    /// Holds of each nesting depth, from 0.
    pub depths: Vec<u64>,
    /// (ns, holds not longer).
    pub cumulative: Vec<(i64, u64)>,
    /// Histogram: (lower edge in ns, holds) of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
    /// Holds by the time of their acquisition.
    #[serde(skip)]
    pub over_time: OverTime,
}

/// What is counted of one group while rows come.
#[derive(Debug)]
pub(super) struct HoldSums {
    /// By process and address: processes that were forked have locks at the same ones.
    instances: HashSet<(Pid, i64)>,
    more_instances: bool,
    holds: Distribution,
    waits: Distribution,
    lower_bounds: u64,
    nested: u64,
    condition: u64,
    preempted: u64,
    parts: Decomposition,
    own: Own,
    happened: Happened,
    counted: CountedSums,
    cumulative: Thresholds<16>,
    bins: Bins,
    pub(super) depths: Depths,
    over_time: OverTime,
}

impl Default for HoldSums {
    fn default() -> Self {
        HoldSums {
            instances: HashSet::new(),
            more_instances: false,
            holds: Distribution::default(),
            waits: Distribution::default(),
            lower_bounds: 0,
            nested: 0,
            condition: 0,
            preempted: 0,
            parts: Decomposition::default(),
            own: Own::default(),
            happened: Happened::default(),
            counted: CountedSums::default(),
            cumulative: Thresholds::new(EDGES_NS),
            bins: Bins::default(),
            depths: Depths::default(),
            over_time: OverTime::default(),
        }
    }
}

impl HoldSums {
    pub(super) fn add(&mut self, r: &CriticalSection, window: Window) {
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
        if let Some(parts) = r.parts {
            self.parts += parts;
            self.preempted += u64::from(parts.preempted_ns > 0);
        }
        self.own.add(r.agent_ns);
        self.happened.add(r.counts);
        self.counted.add(r.counter);
        self.cumulative.add(r.dur);
        self.bins.add(r.dur);
        self.depths.add(r.depth, r.depth_mark);
        self.over_time.add(window, r.ts.0, r.dur);
    }

    /// The group with these sums; `counters` are the names of those that were read.
    pub(super) fn group(
        mut self,
        pid: i32,
        lock: String,
        kind: String,
        counters: &[String],
    ) -> Group {
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
            agent_ns: self.own,
            happened: self.happened,
            counted: self.counted.finish(counters),
            preempted_holds: self.preempted,
            cumulative: self.cumulative.iter().collect(),
            histogram_100ns: self.bins.iter().collect(),
            depths: self.depths.counts,
            over_time: self.over_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::hold;

    #[test]
    fn instances_that_do_not_fit_are_marked() {
        let mut sums = HoldSums::default();
        let mut add = |pid, lock| {
            sums.add(&CriticalSection { pid: Pid(pid), lock, ..hold(1) }, Window::default());
            let group = std::mem::take(&mut sums);
            let counted = (group.instances.len(), !group.more_instances);
            sums = group;
            counted
        };
        let most = MAX_INSTANCES as i64;
        (1..most).for_each(|lock| _ = add(1, lock));
        assert_eq!(add(1, 1), (MAX_INSTANCES - 1, true));
        assert_eq!(add(2, 1), (MAX_INSTANCES, true), "another process has another lock there");
        assert_eq!(add(1, 1), (MAX_INSTANCES, true));
        assert_eq!(add(2, 2), (MAX_INSTANCES, false));
        let group = sums.group(1, "l".into(), "mutex".into(), &[]);
        assert!(!group.instances_exact);
    }
}
