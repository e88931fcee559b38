//! Statistics of the critical sections: per lock and over all (Feather-Trace, section 3).
//!
//! Locks of one name in one process are one group, however many instances there are; a lock without a
//! name is a group of its own. Shared and exclusive holds of one lock differ by their kind.

mod group;
mod longest;

use std::cmp::Reverse;

use serde::Serialize;

use super::apart::locks_apart;
use super::{Input, without_kernel};
use crate::document::{
    Data, Drawn, Histogram, Kind, Lock, MeanNs, N, Ns, Of, Section, Share, Step, Table, Typed,
    Value, Word,
};
use crate::stats::{Groups, Marks, Tail, Top, Window, counted, happened, own, parts};
use crate::text;
use ft_analysis::{Incomplete, Mark, Overlaps, Tally};
use ft_trace::ids::{Name, Pid};
use ft_trace::store::Result;
use ft_trace::tables::CriticalSection;
pub use group::Group;
use group::HoldSums;
pub use longest::LongHold;

/// Locks with a group of their own; further ones are in one group of others.
///
/// Limit: as `MAX_GROUPS` of `preempted.rs`.
const MAX_GROUPS: usize = 16_384;

/// Locks that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Longest holds that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct LocksReport {
    /// Holds in these statistics.
    pub holds: u64,
    /// Holds and waits that were recorded in part; in no statistic.
    pub incomplete: Incomplete,
    /// Holds of one lock that overlap, though it lets one in after the other.
    #[serde(skip_serializing_if = "Overlaps::is_none")]
    pub overlaps: Overlaps,
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

/// Makes a [`LocksReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Locks {
    /// Of the trace.
    window: Window,
    all: HoldSums,
    groups: Groups<MAX_GROUPS, (Pid, Name, Name), HoldSums>,
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
        let counters = &tally.counting.names;
        let locks = self.groups.into_ranked(
            |((pid, lock, kind), c)| c.group(pid.0, lock.to_string(), kind.to_string(), counters),
            |g| (Reverse(g.total_ns), g.lock.clone(), g.kind.clone(), g.pid),
        );
        let window = self.window;
        let depth_lower_bounds = self.all.depths.lower_bounds;
        let all = self.all.group(0, String::new(), String::new(), counters);
        LocksReport {
            window,
            holds: all.holds,
            incomplete: tally.incomplete,
            overlaps: tally.overlaps,
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
    pub fn read(input: Input<'_>) -> Result<LocksReport> {
        let mut locks = Locks::over(input.window());
        input.rows(|r: CriticalSection| locks.add(&r))?;
        Ok(locks.finish(input.tally))
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
        if self.decomposed {
            s.with(self)
        } else {
            s.with(without_kernel(self, &["parts", "preempted_holds"]))
        }
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
        if !self.overlaps.is_none() {
            s.say(text!(
                "{} ended after another thread had acquired the same lock, by {} at most: times of different CPUs are wrong by \
                 that much, or what is recorded as a lock lets several in.",
                Of(self.overlaps.holds, "hold"),
                Ns(self.overlaps.longest_ns)
            ));
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
    fn shown(&self) -> impl Iterator<Item = &Group> + Clone {
        self.locks.iter().take(SHOWN).chain(self.total())
    }

    fn tables(&self, s: &mut Section) {
        let holds = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |g| g.name())
            .column("kind", |g| Word(&g.kind))
            .processes(|g| g.pid)
            .column("holds", |g| N(g.holds))
            .column("nested", |g| Share::of(g.nested, g.holds))
            .column("total", |g| Ns(g.total_ns))
            .column("mean", |g| MeanNs(g.mean_ns))
            .column("p50", |g| Ns(g.tail.p50_ns))
            .column("p99", |g| g.tail.p99_ns.map(Ns))
            .column("max", |g| Ns(g.tail.max_ns));
        let holds = own::beside(holds, |g| (g.agent_ns, g.total_ns));
        s.table(holds.counted("locks").titled("Hold times"));
        let names = Group::told_apart(self.shown());
        let tails = self.shown().zip(names).map(|(g, name)| (name, g.holds, g.tail));
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
                .processes(|g| g.pid)
                .column("waits", |g| N(g.waits))
                .column("of holds", |g| Share::of(g.waits, g.holds))
                .column("total", |g| Ns(g.wait_total_ns))
                .column("mean", |g| MeanNs(g.wait_total_ns as f64 / g.waits as f64))
                .column("max", |g| Ns(g.wait_max_ns));
            s.table(waits.titled("Waits before these holds, for a lock that was taken"));
        }
        counted::tables(
            s,
            &self.locks,
            SHOWN,
            |g| &g.counted,
            |t| t.column("lock", |(g, _)| g.name()),
            "holds",
        );
        if !self.decomposed {
            return s.say("The kernel was not recorded, so where the held time went is unknown.");
        }
        let t = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |g| g.name())
            .column("kind", |g| Word(&g.kind))
            .processes(|g| g.pid);
        let t = parts::shares(t, |g| (g.parts, g.parts.total_ns()))
            .column("n preempted", |g| N(g.preempted_holds));
        s.table(t.titled(
            "Where the held time went (dispatch: woken and waiting for a CPU; n preempted: holds)",
        ));
        parts::explain(s, self.locks.iter().map(|g| &g.parts));
        let t = Table::first(SHOWN, &self.locks)
            .total(self.total())
            .column("lock", |g| g.name())
            .column("kind", |g| Word(&g.kind))
            .processes(|g| g.pid)
            .column("holds", |g| N(g.holds));
        happened::table(s, t, "What happened to the holders, and how often", |g| g.happened);
    }

    fn figures(&self, s: &mut Section) {
        let bars = |depths: &[u64]| (0..).zip(depths.iter().copied()).collect();
        let names = || Group::told_apart(self.drawn()).into_iter();
        s.figure(
            text!(
                "Nesting depth: locks already held at the acquisition{}",
                Drawn(" (bars: logarithmic)")
            ),
            Data::Bars {
                axis: "depth",
                counted: "holds",
                bars: bars(&self.depths),
                each: names().zip(self.drawn()).map(|(n, g)| (n, bars(&g.depths))).collect(),
            },
        );
        if self.depth_lower_bounds > 0 {
            let n = Of(self.depth_lower_bounds, "hold");
            s.say(text!("{} may be nested deeper: their threads may hold what was acquired before they were recorded, or in a loss.", n));
        }
        let histogram =
            |(of, g): (Value, &Group)| Histogram { of, bins: g.histogram_100ns.clone() };
        s.figure(
            text!(
                "Distribution of the hold times{}",
                Drawn(" (bars: logarithmic; --json has bins of 0.1 µs)")
            ),
            Data::Cumulative {
                axis: "up to",
                counted: "holds",
                steps: Step::between(&self.all.cumulative, self.holds),
                bins: self.all.histogram_100ns.clone(),
                each: names().zip(self.drawn()).map(histogram).collect(),
            },
        );
        let all = (self.all.name().value(), &self.all);
        let each = [all].into_iter().chain(names().zip(self.drawn()));
        s.figure(
            "Hold times over the time of the acquisition",
            Data::OverTime {
                counted: "holds",
                window: self.window,
                each: each.map(|(name, g)| (name, g.over_time.clone())).collect(),
            },
        );
    }

    /// The locks that have figures of their own: none where that would be the one of all.
    fn drawn(&self) -> impl Iterator<Item = &Group> + Clone {
        self.locks.iter().take(if self.locks.len() > 1 { SHOWN } else { 0 })
    }
}

impl Group {
    /// Its name, and how many locks have it.
    fn name(&self) -> Lock {
        Lock { instances: self.instances, more: !self.instances_exact, ..Lock::named(&self.lock) }
    }

    /// Names of these that tell them apart.
    fn told_apart<'a>(groups: impl Iterator<Item = &'a Group> + Clone) -> Vec<Value> {
        let names = locks_apart(groups.clone().map(|g| (&*g.lock, &*g.kind, g.pid)));
        groups.zip(names).map(|(g, name)| Lock { name, ..g.name() }.value()).collect()
    }
}
