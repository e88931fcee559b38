//! Deadlines of threads that sleep until times: which cycles met them, how long they took, and why some took too long.

mod cycle;
mod kept;
mod say;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::Input;
use super::request::RequestReport;
use crate::stats::{Bins, Distribution, Groups, Key, Marks, OTHERS, Tail, Thresholds, Top};
use ft_analysis::{Deadline, Mark};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::Request;

pub use cycle::{Class, MissCause};

use cycle::to_blame;
use kept::Kept;

/// Threads with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)` for each deadline.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_THREADS: usize = 1024;

/// Causes with a line of their own; further ones are in one of others.
///
/// Limit: as `MAX_THREADS`.
const MAX_CAUSES: usize = 1024;

/// Longest cycles that are shown.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// Edges of the histogram, in percent of the deadline.
const EDGES: [i64; 11] = [5, 10, 25, 50, 75, 90, 100, 150, 200, 500, 1000];

/// The report.
#[derive(Debug, Serialize)]
pub struct DeadlinesReport {
    /// Each deadline that was asked for.
    pub deadlines: Vec<OfDeadline>,
    /// How sure the lengths of the cycles are.
    pub marks: Marks,
    /// Each thread with cycles, the most that missed first.
    pub threads: Vec<ThreadCycles>,
    /// What is to blame for those that missed their deadline, by how many.
    pub budget: Vec<Blamed>,
    /// Cycles that missed their deadline without a cause: without a path, or too many.
    pub unexplained: u64,
    /// Each that has a cause, in the order of their ends.
    pub missed: Vec<MissedCycle>,
    /// The longest cycles.
    pub longest: Vec<LongCycle>,
    /// The path of the longest.
    pub path: Option<RequestReport>,
    /// Page faults were recorded: they are apart from what threads did themselves.
    pub faults: bool,
}

/// What became of a deadline.
#[derive(Debug, Serialize)]
pub struct OfDeadline {
    /// How many there are of what.
    #[serde(flatten)]
    pub counts: Deadline,
    /// Cycles that took no longer.
    pub met: u64,
    /// Edges in ns, and how many cycles do not exceed each.
    pub cumulative: Vec<(i64, u64)>,
    /// Lower edge in ns and count of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
}

/// The cycles of one thread.
#[derive(Debug, Serialize)]
pub struct ThreadCycles {
    /// Its deadline.
    pub kind: String,
    /// Its process; 0: others together.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Cycles.
    pub cycles: u64,
    /// Of these, those that missed the deadline.
    pub missed: u64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// What it usually does itself in a cycle: the median, ns.
    pub usual_ns: i64,
}

/// What is to blame for cycles that missed their deadline.
#[derive(Debug, Serialize)]
pub struct Blamed {
    /// The deadline.
    pub kind: String,
    /// What it is.
    #[serde(flatten)]
    pub cause: MissCause,
    /// In words.
    pub what: String,
    /// Cycles.
    pub cycles: u64,
    /// What it took of them, ns.
    pub total_ns: i64,
    /// The most that it took of one, ns.
    pub max_ns: i64,
}

/// A cycle that missed its deadline.
#[derive(Debug, Serialize)]
pub struct MissedCycle {
    /// Its number, for `--of`.
    pub request: i64,
    /// The deadline.
    pub kind: String,
    /// Thread.
    pub tid: i32,
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// What is to blame.
    #[serde(flatten)]
    pub cause: MissCause,
    /// In words.
    pub what: String,
    /// How much of it, ns.
    pub ns: i64,
}

/// One of the longest cycles.
#[derive(Debug, Serialize)]
pub struct LongCycle {
    /// Its number, for `--of`.
    pub request: i64,
    /// Its deadline.
    pub kind: String,
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// It missed its deadline.
    pub missed: bool,
    /// What its time went to, the longest part first; empty where that is not known.
    pub parts: Vec<(String, i64)>,
    /// How sure it is.
    pub mark: Mark,
}

/// What cycles of a thread have in common.
type OfThread = (Name, Pid, Tid);

impl Key for OfThread {
    fn others(&self) -> Self {
        (self.0.clone(), Pid(0), Tid(0))
    }
}

impl Key for (Name, MissCause) {
    fn others(&self) -> Self {
        (self.0.clone(), MissCause::by(Class::Unknown, Some(OTHERS.into())))
    }
}

#[derive(Debug)]
struct Lengths {
    comm: Name,
    missed: u64,
    lengths: Distribution,
    own: Distribution,
}

struct Sums {
    within: Thresholds<{ EDGES.len() }>,
    bins: Bins,
}

/// The cycles of a trace, as they come.
struct Cycles<'a> {
    deadlines: BTreeMap<&'a str, (i64, Sums)>,
    threads: Groups<MAX_THREADS, OfThread, Lengths>,
    marks: Marks,
    kept: Kept,
    /// Those that missed their deadline and are explained: number, thread, begin and length.
    missed: Vec<(i64, OfThread, i64, i64)>,
    unexplained: u64,
    longest: Top<LongCycle>,
}

impl<'a> Cycles<'a> {
    fn of(asked: &'a [Deadline]) -> Cycles<'a> {
        let sums = |d: &Deadline| {
            let at = EDGES.map(|percent| d.deadline_ns.saturating_mul(percent) / 100);
            Sums { within: Thresholds::new(at), bins: Bins::default() }
        };
        Cycles {
            deadlines: asked.iter().map(|d| (&*d.kind, (d.deadline_ns, sums(d)))).collect(),
            threads: Groups::default(),
            marks: Marks::default(),
            kept: Kept::default(),
            missed: Vec::new(),
            unexplained: 0,
            longest: Top::default(),
        }
    }

    fn add(&mut self, r: &Request) {
        let Some((deadline_ns, sums)) = self.deadlines.get_mut(&*r.kind) else { return };
        let missed = r.dur > *deadline_ns;
        self.marks.add(r.mark);
        sums.within.add(r.dur);
        sums.bins.add(r.dur);
        let thread = (r.kind.clone(), r.end_pid, r.end_tid);
        let lengths = self.threads.entry_or(thread.clone(), || Lengths::of(&r.end_comm));
        lengths.missed += u64::from(missed);
        lengths.lengths.add(r.dur);
        if let Some(own) = r.path_running_ns.filter(|_| r.path_elsewhere_ns == Some(0)) {
            lengths.own.add(own);
        }
        self.longest.offer(LONGEST, r.dur, || LongCycle::of(r, missed));
        let is_kept = missed && self.kept.keep(r.request, (r.end_pid, r.end_tid), (r.ts.0, r.dur));
        if is_kept {
            self.missed.push((r.request, thread, r.ts.0, r.dur));
        }
        self.unexplained += u64::from(missed && !is_kept);
    }

    /// Reads what the long ones are made of, and says which of it is to blame.
    fn finish(mut self, input: Input<'_>) -> Result<DeadlinesReport> {
        let mut longest = self.longest.into_sorted();
        for l in &longest {
            self.kept.keep(l.request, (Pid(l.pid), Tid(l.tid)), (l.ts, l.dur_ns));
        }
        self.kept.read(input)?;
        let parts = self.kept.into_parts();
        let mut threads = BTreeMap::new();
        let named = self.threads.into_ranked(ThreadCycles::of, |t| {
            (Reverse(t.missed), Reverse(t.tail.max_ns), t.kind.clone(), t.tid)
        });
        for t in &named {
            threads.insert((&*t.kind, t.pid, t.tid), t.usual_ns);
        }
        let mut budget: Groups<MAX_CAUSES, (Name, MissCause), (u64, i64, i64)> = Groups::default();
        let mut missed = Vec::new();
        for (request, (kind, pid, tid), ts, dur_ns) in self.missed {
            let others = || threads.get(&(&*kind, 0, 0));
            let usual_ns = threads.get(&(&*kind, pid.0, tid.0)).or_else(others).copied();
            let deadline_ns = self.deadlines.get(&*kind).map_or(i64::MAX, |d| d.0);
            let of = parts.get(&request).map_or(&[][..], Vec::as_slice);
            let Some((cause, ns)) = to_blame(of, usual_ns.unwrap_or(0), deadline_ns) else {
                self.unexplained += 1;
                continue;
            };
            let (n, total, max) = budget.entry((kind.clone(), cause.clone()));
            (*n, *total, *max) = (*n + 1, total.saturating_add(ns), ns.max(*max));
            let (kind, tid, what) = (kind.to_string(), tid.0, cause.says());
            missed.push(MissedCycle { request, kind, tid, ts, dur_ns, cause, what, ns });
        }
        for l in &mut longest {
            let of = parts.get(&l.request).into_iter().flatten();
            l.parts = of.map(|(cause, ns)| (cause.says(), *ns)).collect();
        }
        let slowest: Vec<i64> = longest.first().map(|l| l.request).into_iter().collect();
        let mut sums = self.deadlines;
        let of = |d: &Deadline| {
            let sums = sums.remove(&*d.kind).map(|(_, sums)| sums);
            OfDeadline {
                met: d.cycles.saturating_sub(d.missed),
                cumulative: sums.iter().flat_map(|sums| sums.within.iter()).collect(),
                histogram_100ns: sums.iter().flat_map(|sums| sums.bins.iter()).collect(),
                counts: d.clone(),
            }
        };
        Ok(DeadlinesReport {
            deadlines: input.tally.requests.deadlines.iter().map(of).collect(),
            marks: self.marks,
            threads: named,
            budget: budget.into_ranked(Blamed::of, |b| {
                (Reverse(b.cycles), Reverse(b.total_ns), b.what.clone())
            }),
            unexplained: self.unexplained,
            missed,
            longest,
            path: RequestReport::read_those(input, &slowest)?.pop(),
            faults: input.recorded("fault"),
        })
    }
}

impl Lengths {
    fn of(comm: &Name) -> Lengths {
        let (lengths, own) = (Distribution::default(), Distribution::default());
        Lengths { comm: comm.clone(), missed: 0, lengths, own }
    }
}

impl ThreadCycles {
    fn of(((kind, pid, tid), mut l): (OfThread, Lengths)) -> ThreadCycles {
        ThreadCycles {
            kind: kind.to_string(),
            pid: pid.0,
            tid: tid.0,
            comm: if tid.0 == 0 { OTHERS.to_owned() } else { l.comm.to_string() },
            cycles: l.lengths.count(),
            missed: l.missed,
            tail: Tail::of(&mut l.lengths),
            usual_ns: l.own.percentile(50.0),
        }
    }
}

impl Blamed {
    fn of(
        ((kind, cause), (cycles, total_ns, max_ns)): ((Name, MissCause), (u64, i64, i64)),
    ) -> Blamed {
        let what = cause.says();
        Blamed { kind: kind.to_string(), cause, what, cycles, total_ns, max_ns }
    }
}

impl LongCycle {
    fn of(r: &Request, missed: bool) -> LongCycle {
        LongCycle {
            request: r.request,
            kind: r.kind.to_string(),
            ts: r.ts.0,
            dur_ns: r.dur,
            pid: r.end_pid.0,
            tid: r.end_tid.0,
            comm: r.end_comm.to_string(),
            missed,
            parts: Vec::new(),
            mark: r.mark.max(r.path_mark),
        }
    }
}

impl DeadlinesReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<DeadlinesReport> {
        let asked = &input.tally.requests.deadlines;
        let mut cycles = Cycles::of(asked);
        if !asked.is_empty() {
            input.rows(|r: Request| cycles.add(&r))?;
        }
        cycles.finish(input)
    }
}

#[cfg(test)]
mod tests;
