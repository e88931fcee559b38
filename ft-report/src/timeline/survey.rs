//! What the tables of a trace say before it is drawn: which threads and locks get a row, and which incidents are worth
//! every detail.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use ft_trace::ids::{Name, ThreadKey};
use ft_trace::store::{Result, Row, Trace};
use ft_trace::tables::{
    CriticalSection, DispatchLatency, Gap, LoadRun, LockPreemption, LockWait, Part, Scope,
    ThreadRow, ThreadTime,
};

use crate::render::number::ns;
use crate::stats::Top;

/// Incidents of each kind: as many as the reports name.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// Threads with a row of their own; the others share one.
///
/// Limit: the other threads share a row with their sums, other locks are shown in the rows of threads; the page states
/// how many.
/// Shown by: `threads_beyond_the_bound_share_a_row_that_keeps_their_sums`.
const MAX_THREADS: usize = 96;

/// Locks with a row.
///
/// Limit: as `MAX_THREADS`.
const MAX_LOCKS: usize = 64;

/// Threads and locks among which the rows are chosen.
///
/// Limit: one that appears later has no row, however much it did, unless an incident names it first; the count stops
/// there.
/// Shown by: `who_is_named_comes_first_and_the_rest_is_counted`.
const MAX_CANDIDATES: usize = 1 << 16;

/// Threads and locks beyond those that are counted.
///
/// Limit: as `MAX_CANDIDATES`.
const MAX_COUNTED: usize = 1 << 20;

/// A lock: its process and its address.
pub(super) type LockKey = (i32, i64);

/// A place that a report names.
#[derive(Clone, Debug)]
pub(super) struct Incident {
    /// CLOCK_MONOTONIC ns.
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) thread: ThreadKey,
    pub(super) lock: Option<i64>,
    /// In a line.
    pub(super) says: String,
}

/// What has a row, and how many have none.
#[derive(Debug)]
pub(super) struct Chosen<K> {
    /// With the newest name.
    pub(super) rows: Vec<(K, Name)>,
    /// How many more there are.
    pub(super) more: usize,
}

/// What is known beforehand.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) incidents: Vec<Incident>,
    pub(super) threads: Chosen<ThreadKey>,
    pub(super) locks: Chosen<LockKey>,
    /// Threads that have recorded gaps.
    pub(super) pollers: HashSet<ThreadKey>,
    /// First sight of any thread, CLOCK_MONOTONIC ns.
    pub(super) first: Option<i64>,
}

/// Candidates for rows: each with its name and how much there is to see of it; and those that are none any more.
#[derive(Debug)]
struct Candidates<K>(HashMap<K, (Name, i64)>, HashSet<K>);

impl<K> Default for Candidates<K> {
    fn default() -> Self {
        Candidates(HashMap::new(), HashSet::new())
    }
}

impl<K: Copy + Eq + Ord + std::hash::Hash> Candidates<K> {
    fn add(&mut self, key: K, name: &Name, weight: i64) {
        if self.0.len() >= MAX_CANDIDATES && !self.0.contains_key(&key) {
            if self.1.len() < MAX_COUNTED {
                self.1.insert(key);
            }
            return;
        }
        let (newest, sum) = self.0.entry(key).or_insert_with(|| (name.clone(), 0));
        if *newest != *name {
            *newest = name.clone();
        }
        *sum = sum.saturating_add(weight);
    }

    /// The `most` with most to see, those that incidents name before all others; the most first.
    fn choose(self, most: usize, named: &HashSet<K>) -> Chosen<K> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_by_key(|(key, (_, weight))| (!named.contains(key), Reverse(*weight), *key));
        let more = all.len().saturating_sub(most) + self.1.len();
        all.truncate(most);
        Chosen { rows: all.into_iter().map(|(key, (name, _))| (key, name)).collect(), more }
    }
}

/// Shows the rows of a table, if it is there.
fn each<R: Row>(trace: &Trace, mut to: impl FnMut(R)) -> Result<()> {
    if trace.has::<R>() { trace.rows::<R>().try_for_each(|row| row.map(&mut to)) } else { Ok(()) }
}

/// A survey that goes on.
#[derive(Debug, Default)]
pub(super) struct Surveyor {
    threads: Candidates<ThreadKey>,
    locks: Candidates<LockKey>,
    pollers: HashSet<ThreadKey>,
    first: Option<i64>,
    holds: Top<Incident>,
    waits: Top<Incident>,
    preempted: Top<Incident>,
    wakes: Top<Incident>,
    gaps: Top<Incident>,
    scopes: Top<Incident>,
}

/// Declares of a row of a result table when and whose it was.
macro_rules! incident {
    ($row:ident, $lock:expr, $($says:tt)*) => {
        || Incident {
            from: $row.ts.0,
            to: $row.ts.0 + $row.dur,
            thread: ThreadKey { pid: $row.pid, tid: $row.tid },
            lock: $lock,
            says: format!($($says)*),
        }
    };
}

impl Surveyor {
    pub(super) fn thread(&mut self, r: &ThreadRow) {
        if r.observed && r.tid.0 != 0 {
            self.threads.add(ThreadKey { pid: r.pid, tid: r.tid }, &r.name, 0);
        }
    }

    pub(super) fn time(&mut self, r: &ThreadTime) {
        self.first = Some(self.first.map_or(r.ts.0, |first| first.min(r.ts.0)));
        let weight = if r.part == Part::Blocked { 0 } else { r.spent_ns };
        self.threads.add(ThreadKey { pid: r.pid, tid: r.tid }, &r.comm, weight);
    }

    pub(super) fn hold(&mut self, r: &CriticalSection) {
        // What was waited for is worth more than what was only held.
        self.locks.add((r.pid.0, r.lock), &r.lock_name, r.dur / 16);
        let (long, place) = (ns(r.dur as f64), at(&r.place));
        self.holds.offer(
            LONGEST,
            r.dur,
            incident!(r, Some(r.lock), "held {long}: {}{place}", r.lock_name),
        );
    }

    pub(super) fn wait(&mut self, r: &LockWait) {
        self.locks.add((r.pid.0, r.lock), &r.lock_name, r.dur);
        let long = ns(r.dur as f64);
        self.waits.offer(
            LONGEST,
            r.dur,
            incident!(r, Some(r.lock), "waited {long}: {} for {}", r.comm, r.lock_name),
        );
    }

    fn preemption(&mut self, r: &LockPreemption) {
        let (long, by) = (ns(r.dur as f64), by(r.preemptor_tid, r.preemptor_comm.as_ref()));
        self.preempted.offer(
            LONGEST,
            r.dur,
            incident!(r, Some(r.lock), "{} {long}: {} with {}{by}", r.cause, r.comm, r.lock_name),
        );
    }

    fn wake(&mut self, r: &DispatchLatency) {
        let (long, by) = (ns(r.dur as f64), by(r.running_tid, r.running_comm.as_ref()));
        self.wakes.offer(LONGEST, r.dur, incident!(r, None, "woken {long}: {}{by}", r.comm));
    }

    pub(super) fn gap(&mut self, r: &Gap) {
        self.pollers.insert(ThreadKey { pid: r.pid, tid: r.tid });
        let (long, by) = (ns(r.dur as f64), by(r.culprit_tid, r.culprit.as_ref()));
        self.gaps.offer(LONGEST, r.dur, incident!(r, None, "gap {long}: {}{by}", r.comm));
    }

    /// Where no kernel tells how long a thread ran, this is what there is to see of it.
    pub(super) fn run(&mut self, r: &LoadRun) {
        self.threads.add(ThreadKey { pid: r.pid, tid: r.tid }, &r.comm, r.dur);
    }

    fn scope(&mut self, r: &Scope) {
        let long = ns(r.dur as f64);
        self.scopes.offer(
            LONGEST,
            r.dur,
            incident!(r, None, "scope {long}: {} in {}", r.event, r.comm),
        );
    }

    pub(super) fn finish(self) -> Survey {
        let kinds = [self.holds, self.waits, self.preempted, self.wakes, self.gaps, self.scopes];
        let incidents: Vec<_> = kinds.into_iter().flat_map(Top::into_sorted).collect();
        let named = incidents.iter().map(|i| i.thread).collect();
        let locks = incidents.iter().filter_map(|i| Some((i.thread.pid.0, i.lock?))).collect();
        let mut threads = self.threads.choose(MAX_THREADS, &named);
        // Threads of a process stand together, in the order in which they were made.
        threads.rows.sort_by_key(|(key, _)| *key);
        Survey {
            threads,
            locks: self.locks.choose(MAX_LOCKS, &locks),
            incidents,
            pollers: self.pollers,
            first: self.first,
        }
    }
}

impl Survey {
    /// Of an analysed trace.
    pub(super) fn read(trace: &Trace) -> Result<Survey> {
        let mut s = Surveyor::default();
        each(trace, |r| s.thread(&r))?;
        each(trace, |r| s.time(&r))?;
        each(trace, |r| s.hold(&r))?;
        each(trace, |r| s.wait(&r))?;
        each(trace, |r| s.preemption(&r))?;
        each(trace, |r| s.wake(&r))?;
        each(trace, |r| s.gap(&r))?;
        each(trace, |r| s.scope(&r))?;
        each(trace, |r| s.run(&r))?;
        Ok(s.finish())
    }
}

fn at(place: &str) -> String {
    let file = place.rsplit('/').next().unwrap_or_default();
    if file.is_empty() { String::new() } else { format!(" at {file}") }
}

fn by(tid: Option<i32>, culprit: Option<&Name>) -> String {
    match culprit {
        Some(_) if tid == Some(0) => " for an idle CPU".to_owned(),
        Some(name) => format!(" behind {name}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_named_comes_first_and_the_rest_is_counted() {
        let mut all = Candidates::default();
        for i in 0..MAX_CANDIDATES as i32 + 5 {
            all.add(i, &i.to_string().as_str().into(), i64::from(i));
        }
        all.add(7, &"newest".into(), 1);
        let chosen = all.choose(3, &HashSet::from([7]));
        let names: Vec<_> = chosen.rows.iter().map(|(key, name)| (*key, &**name)).collect();
        assert_eq!(names, [(7, "newest"), (65535, "65535"), (65534, "65534")]);
        assert_eq!(chosen.more, MAX_CANDIDATES + 5 - 3);
    }
}
