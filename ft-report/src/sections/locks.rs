//! Statistics of the critical sections: per lock and over all (Feather-Trace, section 3).
//!
//! Locks of one name in one process are one group, however many instances there are; a lock without a
//! name is a group of its own. Shared and exclusive holds of one lock differ by their kind.

mod longest;

use std::cmp::Reverse;
use std::collections::HashSet;

use serde::Serialize;

use super::Source;
use crate::document::{
    Data, Drawn, Histogram, Kind, Lock, MeanNs, N, Ns, Of, Section, Share, Table, Typed, Word,
};
use crate::stats::{
    Bins, Depths, Distribution, Groups, Marks, OverTime, Own, Tail, Thresholds, Top, Window, own,
    parts,
};
use crate::text;
use ft_analysis::{Incomplete, Mark, Tally};
use ft_trace::ids::{Name, Pid};
use ft_trace::store::Result;
use ft_trace::tables::{CriticalSection, Decomposition};
pub use longest::LongHold;

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

/// Locks with a group of their own; further ones are in one group of others.
const MAX_GROUPS: usize = 16_384;

/// Instances of a group that are counted.
const MAX_INSTANCES: usize = 1 << 16;

/// Locks that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Longest holds that are kept.
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
    /// The time that the trace is of.
    #[serde(skip)]
    pub window: Window,
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
    pub parts: Decomposition,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
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
    parts: Decomposition,
    own: Own,
    cumulative: Thresholds<16>,
    bins: Bins,
    depths: Depths,
    over_time: OverTime,
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
            parts: Decomposition::default(),
            own: Own::default(),
            cumulative: Thresholds::new(EDGES_NS),
            bins: Bins::default(),
            depths: Depths::default(),
            over_time: OverTime::default(),
        }
    }
}

impl Counts {
    fn add(&mut self, r: &CriticalSection, window: Window) {
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
        self.cumulative.add(r.dur);
        self.bins.add(r.dur);
        self.depths.add(r.depth, r.depth_mark);
        self.over_time.add(window, r.ts.0, r.dur);
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
            agent_ns: self.own,
            preempted_holds: self.preempted,
            cumulative: self.cumulative.iter().collect(),
            histogram_100ns: self.bins.iter().collect(),
            depths: self.depths.counts,
            over_time: self.over_time,
        }
    }
}

/// Makes a [`LocksReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Locks {
    /// Of the trace.
    window: Window,
    all: Counts,
    groups: Groups<MAX_GROUPS, (Pid, Name, Name), Counts>,
    marks: Marks,
    longest: Top<LongHold>,
}

impl Locks {
    /// Of a trace with this length.
    pub fn over(window: Window) -> Locks {
        Locks { window, ..Locks::default() }
    }

    /// Counts a hold.
    pub fn add(&mut self, r: &CriticalSection) {
        self.all.add(r, self.window);
        let group = self.groups.entry((r.pid, r.lock_name.clone(), r.kind.clone()));
        group.add(r, self.window);
        self.marks.add(r.mark);
        self.longest.offer(LONGEST, r.dur, || LongHold::from(r));
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(mut self, tally: &Tally) -> LocksReport {
        self.marks.add_many(Mark::Censored, tally.incomplete.holds());
        let locks = self.groups.into_ranked(
            |((pid, lock, kind), c)| c.group(pid.0, lock.to_string(), kind.to_string()),
            |g| (Reverse(g.total_ns), g.lock.clone(), g.kind.clone(), g.pid),
        );
        let window = self.window;
        let depth_lower_bounds = self.all.depths.lower_bounds;
        let all = self.all.group(0, String::new(), String::new());
        LocksReport {
            window,
            holds: all.holds,
            incomplete: tally.incomplete,
            marks: self.marks,
            decomposed: tally.kernel,
            depths: all.depths.clone(),
            depth_lower_bounds,
            all,
            locks,
            longest: self.longest.into_sorted(),
        }
    }
}

impl LocksReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(source: Source<'_>) -> Result<LocksReport> {
        let mut locks = Locks::over(source.window());
        source.rows(|r: CriticalSection| locks.add(&r))?;
        Ok(locks.finish(source.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("locks", "critical sections, from acquisition to release");
        self.coverage(&mut s);
        if self.holds > 0 {
            self.tables(&mut s);
            self.figures(&mut s);
            s.table(longest::table(&self.longest, self.decomposed));
            own::explain(&mut s, "");
        }
        s.with(self)
    }

    fn coverage(&self, s: &mut Section) {
        let i = &self.incomplete;
        if self.marks.any() {
            s.say(self.marks.line("hold").reasons(&[
                (i.release_only, "released without acquisition"),
                (i.never_released, "never released"),
                (i.held_at_loss, "held when events were lost"),
                (i.acquired_again, "acquired again"),
                (i.too_many, "too many held at once"),
            ]));
        }
        self.marks.legend(s);
        Tail::legend(s, "hold", std::iter::once(&self.all.tail));
        if self.holds == 0 {
            s.say(
                "No hold was recorded. Feather-Trace sees the locks of ft-user (Mutex, RwLock, Condvar) when their \
                 events are enabled (-e 'lock.*'), and pthread locks under --preload. Locks that a program implements \
                 itself, such as those of Rust's std or of Java, make no call that could be intercepted; what their \
                 threads wait for is seen by the kernel group `futex` (-k default,futex; report futexes).",
            );
        }
    }

    /// All locks together, where there are several.
    fn total(&self) -> Option<&Group> {
        (self.locks.len() > 1).then_some(&self.all)
    }

    /// The locks that are shown, and all of them together.
    fn shown(&self) -> impl Iterator<Item = &Group> {
        self.locks.iter().take(SHOWN).chain(self.total())
    }

    fn tables(&self, s: &mut Section) {
        let holds = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |g| g.name())
            .column("kind", |g| Word(&g.kind))
            .column("holds", |g| N(g.holds))
            .column("nested", |g| Share::of(g.nested, g.holds))
            .column("total", |g| Ns(g.total_ns))
            .column("mean", |g| MeanNs(g.mean_ns))
            .column("p50", |g| Ns(g.tail.p50_ns))
            .column("p99", |g| g.tail.p99_ns.map(Ns))
            .column("max", |g| Ns(g.tail.max_ns));
        let holds = own::beside(holds, |g| (g.agent_ns, g.total_ns));
        s.table(holds.counted("locks").titled("Hold times"));
        let tails = self.shown().map(|g| (g.name().value(), g.holds, g.tail));
        s.tails("Tails of the hold times", ("lock", Kind::Lock), tails);
        if self.all.waits == 0 {
            s.say("No hold had to wait for its lock.");
        } else {
            let waited = |g: &&Group| g.waits > 0;
            let shown = self.locks.iter().take(SHOWN).filter(waited).count();
            let waits = Table::first(shown, self.locks.iter().filter(waited))
                .total(self.total())
                .column("lock", |g| g.name())
                .column("kind", |g| Word(&g.kind))
                .column("waits", |g| N(g.waits))
                .column("of holds", |g| Share::of(g.waits, g.holds))
                .column("total", |g| Ns(g.wait_total_ns))
                .column("mean", |g| MeanNs(g.wait_total_ns as f64 / g.waits as f64))
                .column("max", |g| Ns(g.wait_max_ns));
            s.table(waits.titled("Waits before these holds, for a lock that was taken"));
        }
        if !self.decomposed {
            return s.say("The kernel was not recorded, so where the held time went is unknown.");
        }
        let t = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |g| g.name())
            .column("kind", |g| Word(&g.kind));
        let t = parts::shares(t, |g| (g.parts, g.parts.total_ns()))
            .column("n preempted", |g| N(g.preempted_holds));
        s.table(t.titled(
            "Where the held time went (dispatch: woken and waiting for a CPU; n preempted: holds)",
        ));
    }

    fn figures(&self, s: &mut Section) {
        let bars = |depths: &[u64]| (0..).zip(depths.iter().copied()).collect();
        s.figure(
            text!(
                "Nesting depth: locks already held at the acquisition{}",
                Drawn(" (bars: logarithmic)")
            ),
            Data::Bars {
                axis: "depth",
                counted: "holds",
                bars: bars(&self.depths),
                each: self.drawn().map(|g| (g.name().value(), bars(&g.depths))).collect(),
            },
        );
        if self.depth_lower_bounds > 0 {
            let n = Of(self.depth_lower_bounds, "hold");
            s.say(text!("{} may be nested deeper: events of the thread were lost before.", n));
        }
        let histogram =
            |g: &Group| Histogram { of: g.name().value(), bins: g.histogram_100ns.clone() };
        s.figure(
            text!(
                "Distribution of the hold times{}",
                Drawn(" (bars: logarithmic; --json has bins of 0.1 µs)")
            ),
            Data::Cumulative {
                axis: "up to",
                counted: "holds",
                steps: self.all.cumulative.clone(),
                total: self.holds,
                bins: self.all.histogram_100ns.clone(),
                each: self.drawn().map(histogram).collect(),
            },
        );
        let over_time = |g: &Group| (g.name().value(), g.over_time.clone());
        s.figure(
            "Hold times over the time of the acquisition",
            Data::OverTime {
                counted: "holds",
                window: self.window,
                each: [&self.all].into_iter().chain(self.drawn()).map(over_time).collect(),
            },
        );
    }

    /// The locks that have figures of their own: none where that would be the one of all.
    fn drawn(&self) -> impl Iterator<Item = &Group> {
        self.locks.iter().take(if self.locks.len() > 1 { SHOWN } else { 0 })
    }
}

impl Group {
    /// Its name, and how many locks have it.
    fn name(&self) -> Lock {
        Lock { instances: self.instances, more: !self.instances_exact, ..Lock::named(&self.lock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::hold;

    #[test]
    fn instances_that_do_not_fit_are_marked() {
        let mut counts = Counts::default();
        let mut add = |pid, lock| {
            counts.add(&CriticalSection { pid: Pid(pid), lock, ..hold(1) }, Window::default());
            let group = std::mem::take(&mut counts);
            let counted = (group.instances.len(), !group.more_instances);
            counts = group;
            counted
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
