//! Sums up the rows of `breakdown` and `wake_pairs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::BreakdownReport;
use super::pairs::Pairs;
use super::places::Places;
use super::process::ProcessBreakdown;
use crate::stats::{Groups, Marks, OTHERS, own};
use ft_analysis::Mark;
use ft_trace::ids::{Nanos, Pid, Tid};
use ft_trace::tables::{Breakdown, Decomposition, FaultKind, WakePair};

/// Threads with a line of their own in JSON; further ones are in all sums.
///
/// Limit: the time of further threads is in all sums, and stated (`others_ns`); one line `(others)` of each.
/// Shown by: `what_has_no_room_is_with_the_others`.
pub(super) const MAX_THREADS: usize = 16_384;

/// Processes whose names are kept; further ones are one of others.
///
/// Limit: as `MAX_THREADS`.
const MAX_PROCESSES: usize = 16_384;

/// One thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadBreakdown {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its newest name.
    pub comm: String,
    /// First sight to last, ns.
    pub wall_ns: i64,
    /// Sum of all parts, ns.
    pub sum_ns: i64,
    /// How far it can be believed.
    pub mark: Mark,
    /// Its rows: call (or `user`, `unknown`), kind of fault, count, parts.
    pub places: Vec<(String, Option<FaultKind>, i64, Decomposition)>,
}

/// A row of a thread: process, thread, and when it began.
type ThreadKey = (Pid, Tid, Nanos);

/// Makes a [`BreakdownReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub(super) struct Breakdowns {
    threads: HashMap<ThreadKey, ThreadBreakdown>,
    /// The last thread that did not fit: its rows come together.
    beyond: Option<ThreadKey>,
    /// Time of threads that did not fit, ns.
    others_ns: i64,
    processes: Groups<MAX_PROCESSES, Pid, ProcessBreakdown>,
    places: Places,
    pairs: Pairs,
    own_calls: own::Rows,
    own_faults: own::Rows,
}

impl Breakdowns {
    /// Of a recording by this process.
    pub(super) fn by(agent: Option<Pid>) -> Breakdowns {
        let own = own::Rows::of(agent);
        Breakdowns { own_calls: own, own_faults: own, ..Breakdowns::default() }
    }

    /// Counts a row.
    pub(super) fn add(&mut self, r: &Breakdown) {
        let Some(parts) = r.parts else { return };
        self.places.add(r, parts);
        let own = match (r.fault, &r.call) {
            (Some(_), _) => Some(&mut self.own_faults),
            (None, Some(_)) => Some(&mut self.own_calls),
            (None, None) => None,
        };
        if let Some(own) = own {
            own.add(r.pid, r.count.unsigned_abs(), parts.total_ns());
        }
        let process = self.processes.entry(r.pid);
        process.add(r, parts);
        let key = (r.pid, r.tid, r.ts);
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&key) {
            self.others_ns += parts.total_ns();
            if self.beyond.replace(key) != Some(key) {
                process.has(r);
            }
            return;
        }
        let thread = self.threads.entry(key).or_insert_with(|| {
            process.has(r);
            ThreadBreakdown::new(r)
        });
        thread.sum_ns += parts.total_ns();
        let place = r.call.as_deref().unwrap_or(r.place.word()).to_owned();
        thread.places.push((place, r.fault, r.count, parts));
    }

    /// Counts a pair.
    pub(super) fn pair(&mut self, r: WakePair) {
        self.pairs.add(r);
    }

    /// Finishes the statistics. Processes of one name are together: those of a shell or a compiler are many, and short.
    pub(super) fn finish(self, recorded: bool, faults: bool, kernel: bool) -> BreakdownReport {
        let mut threads: Vec<_> = self.threads.into_values().collect();
        threads.sort_by_key(|t| (Reverse(t.wall_ns), t.pid, t.tid));
        let mut marks = Marks::default();
        threads.iter().for_each(|t| marks.add(t.mark));
        let wrong = threads.iter().filter(|t| t.sum_ns != t.wall_ns).count() as u64;

        let mut by_pid: BTreeMap<Pid, ProcessBreakdown> =
            self.processes.into_ranked(|process| process, |_| ()).into_iter().collect();
        if let Some(others) = by_pid.get_mut(&Pid(0)) {
            others.name = OTHERS.to_owned();
        }
        let name = |pid: Pid| by_pid.get(&pid).map_or(OTHERS, |p| &p.name).to_owned();
        let (calls, page_faults) = self.places.finish(name);
        let mut processes: BTreeMap<&str, ProcessBreakdown> = BTreeMap::new();
        for process in by_pid.values() {
            processes.entry(&process.name).or_default().merge(process);
        }
        let mut processes: Vec<_> = processes.into_values().collect();
        processes.sort_by_key(|p| Reverse(p.wall_ns));
        BreakdownReport {
            recorded,
            faults,
            kernel,
            balanced: threads.len() as u64 - wrong,
            unbalanced: wrong,
            others_ns: self.others_ns,
            marks,
            calls_of_recording: self.own_calls.finish(),
            faults_of_recording: self.own_faults.finish(),
            processes,
            calls,
            page_faults,
            pairs: self.pairs.finish(),
            threads,
        }
    }
}

impl ThreadBreakdown {
    /// Of the first row of a thread, without it.
    fn new(r: &Breakdown) -> ThreadBreakdown {
        ThreadBreakdown {
            pid: r.pid.0,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            wall_ns: r.wall_ns,
            sum_ns: 0,
            mark: r.mark,
            places: Vec::new(),
        }
    }
}
