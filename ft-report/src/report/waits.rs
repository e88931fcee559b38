//! Statistics of the waits for locks: per lock, per acquiring place, and whose fault they were.

use std::collections::HashMap;

use serde::Serialize;

use super::locks::Parts;
use super::marks::Marks;
use super::order::{Abba, Edges};
use super::tail::Tail;
use super::top::Top;
use crate::stats::Distribution;
use ft_analysis::{Incomplete, Mark, Tally};
use ft_trace::ids::{Name, Pid};
use ft_trace::tables::{LockOrder, LockWait, UnfinishedWait};

/// Groups of one kind that are told apart; further ones go into one named `(others)`.
const MAX_GROUPS: usize = 16_384;

/// Longest waits that are shown.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct WaitsReport {
    /// Waits with their end.
    pub waits: u64,
    /// Sum of their lengths, ns.
    pub total_ns: i64,
    /// Holds and waits that were recorded in part; in no statistic.
    pub incomplete: Incomplete,
    /// How many are exact, lower bounds, censored.
    pub marks: Marks,
    /// There is a kernel stream: it is known what the holders did.
    pub decomposed: bool,
    /// All waits together.
    pub all: LockWaits,
    /// Each lock, the longest total first.
    pub locks: Vec<LockWaits>,
    /// Each place that acquires a lock, the longest total first.
    pub places: Vec<PlaceWaits>,
    /// Each thread that was to blame, by its name, and the lock that it held; the longest total first.
    pub roots: Vec<RootWaits>,
    /// The longest waits.
    pub longest: Vec<LongWait>,
    /// Waits that never ended, by their begin.
    pub unfinished: Vec<Unended>,
    /// Locks that were acquired in both orders.
    pub abba: Vec<Abba>,
    /// Such pairs that cannot meet, since a common lock was held around both.
    pub gated: u64,
    /// Edges of the lock order that were seen.
    pub order_edges: u64,
    /// Acquisitions whose edge did not fit.
    pub order_not_kept: u64,
}

/// Waits for one lock, or for locks of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockWaits {
    /// Process; 0 over all.
    pub pid: i32,
    /// Name of the lock; empty over all.
    pub lock: String,
    /// What the waiters wanted.
    pub kind: String,
    /// Waits.
    pub waits: u64,
    /// Sum, ns.
    pub total_ns: i64,
    /// Average, ns.
    pub mean_ns: f64,
    /// Percentiles.
    #[serde(flatten)]
    pub tail: Tail,
    /// Who waited longest.
    pub max_tid: i32,
    /// What the threads to blame did.
    pub parts: Parts,
    /// Nobody was known to hold the lock, ns.
    pub no_holder_ns: i64,
    /// Threads waited for each other, ns.
    pub cycle_ns: i64,
    /// Of all, the holder waited for a lock itself, ns.
    pub holder_waits_ns: i64,
}

/// Waits of one place for one lock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlaceWaits {
    /// Process.
    pub pid: i32,
    /// Name of the lock.
    pub lock: String,
    /// Where it is acquired.
    pub place: String,
    /// Waits.
    pub waits: u64,
    /// Sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
    /// Who waited longest.
    pub max_tid: i32,
    /// Name of that thread.
    pub max_comm: String,
    /// The place that held the lock in the longest wait.
    pub held_at: Option<String>,
}

/// Waits that one thread is to blame for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RootWaits {
    /// Process.
    pub pid: i32,
    /// Name of the thread that was longest at the end of the chain of holders.
    pub comm: String,
    /// The lock that it held.
    pub lock: String,
    /// Where it had acquired that.
    pub place: String,
    /// Waits.
    pub waits: u64,
    /// How long it was to blame in these, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
}

/// One of the longest waits.
#[derive(Clone, Debug, Serialize)]
pub struct LongWait {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Lock.
    pub lock: String,
    /// Where it was acquired.
    pub place: String,
    /// Thread that waited.
    pub waiter: String,
    /// Its thread id.
    pub waiter_tid: i32,
    /// Holds of the lock meanwhile.
    pub holders: i32,
    /// Who held it longest.
    pub holder: Option<String>,
    /// That thread's id.
    pub holder_tid: Option<i32>,
    /// Where that thread had acquired it.
    pub holder_place: Option<String>,
    /// Threads in the longest chain.
    pub chain: i32,
    /// Who was at its end longest.
    pub root: Option<String>,
    /// That thread's id.
    pub root_tid: Option<i32>,
    /// The lock that it held.
    pub root_lock: Option<String>,
    /// What the threads to blame did.
    pub parts: Option<Parts>,
    /// Nobody was known to hold the lock, ns.
    pub no_holder_ns: i64,
    /// Threads waited for each other, ns.
    pub cycle_ns: i64,
    /// How far it can be believed.
    pub mark: Mark,
}

/// A wait that never ended.
#[derive(Clone, Debug, Serialize)]
pub struct Unended {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// It lasted at least so long, ns.
    pub at_least_ns: i64,
    /// Process.
    pub pid: i32,
    /// Thread that waited.
    pub waiter: String,
    /// Its thread id.
    pub waiter_tid: i32,
    /// Lock.
    pub lock: String,
    /// Where it was to be acquired.
    pub place: String,
    /// What ended: `trace`, `thread`, `exec`.
    pub ended: String,
    /// Who held the lock.
    pub holder: Option<String>,
    /// That thread's id.
    pub holder_tid: Option<i32>,
    /// Where it had acquired it.
    pub holder_place: Option<String>,
    /// The holder had ended without a release.
    pub holder_gone: bool,
    /// Deadlock: waits with the same number wait for each other.
    pub cycle: Option<i32>,
}

fn text(name: &Option<Name>) -> Option<String> {
    name.as_ref().map(ToString::to_string)
}

impl From<&LockWait> for LongWait {
    fn from(r: &LockWait) -> Self {
        LongWait {
            ts: r.ts.0,
            dur_ns: r.dur,
            lock: r.lock_name.to_string(),
            place: r.place.to_string(),
            waiter: r.comm.to_string(),
            waiter_tid: r.tid.0,
            holders: r.holders,
            holder: text(&r.holder_comm),
            holder_tid: r.holder_tid,
            holder_place: text(&r.holder_place),
            chain: r.chain,
            root: text(&r.root_comm),
            root_tid: r.root_tid,
            root_lock: text(&r.root_lock),
            parts: r.parts.as_ref().map(Parts::from),
            no_holder_ns: r.no_holder_ns,
            cycle_ns: r.cycle_ns,
            mark: r.mark,
        }
    }
}

impl From<&UnfinishedWait> for Unended {
    fn from(r: &UnfinishedWait) -> Self {
        Unended {
            ts: r.ts.0,
            at_least_ns: r.dur,
            pid: r.pid.0,
            waiter: r.comm.to_string(),
            waiter_tid: r.tid.0,
            lock: r.lock_name.to_string(),
            place: r.place.to_string(),
            ended: r.ended.to_string(),
            holder: text(&r.holder_comm),
            holder_tid: r.holder_tid,
            holder_place: text(&r.holder_place),
            holder_gone: r.holder_gone,
            cycle: r.cycle,
        }
    }
}

/// What is counted of one lock while rows come.
#[derive(Debug, Default)]
struct Counts {
    sums: LockWaits,
    lengths: Distribution,
}

impl Counts {
    fn add(&mut self, r: &LockWait) {
        let s = &mut self.sums;
        if r.dur > self.lengths.max() {
            s.max_tid = r.tid.0;
        }
        self.lengths.add(r.dur);
        if let Some(parts) = &r.parts {
            s.parts.add(parts);
        }
        s.no_holder_ns += r.no_holder_ns;
        s.cycle_ns += r.cycle_ns;
        s.holder_waits_ns += r.holder_waits_ns;
    }

    fn finish(mut self, pid: i32, lock: &str, kind: &str) -> LockWaits {
        LockWaits {
            pid,
            lock: lock.to_owned(),
            kind: kind.to_owned(),
            waits: self.lengths.count(),
            total_ns: self.lengths.sum(),
            mean_ns: self.lengths.mean(),
            tail: Tail::of(&mut self.lengths),
            ..self.sums
        }
    }
}

/// The group of `key`, or the one of all that do not fit.
fn group<K: std::hash::Hash + Eq, V: Default>(
    groups: &mut HashMap<K, V>,
    key: K,
    others: impl FnOnce() -> K,
) -> &mut V {
    let fits = groups.len() < MAX_GROUPS || groups.contains_key(&key);
    groups.entry(if fits { key } else { others() }).or_default()
}

/// Makes a [`WaitsReport`] of rows, in memory that does not grow with the number of waits.
#[derive(Debug, Default)]
pub struct Waits {
    all: Counts,
    locks: HashMap<(Pid, Name, Name), Counts>,
    places: HashMap<(Pid, Name, Name), PlaceWaits>,
    roots: HashMap<(Pid, Name, Name, Name), RootWaits>,
    marks: Marks,
    longest: Top<LongWait>,
    unfinished: Vec<Unended>,
    edges: Edges,
}

impl Waits {
    /// Counts a wait.
    pub fn add(&mut self, r: &LockWait) {
        self.all.add(r);
        let others: Name = "(others)".into();
        let key = (r.pid, r.lock_name.clone(), r.kind.clone());
        group(&mut self.locks, key, || (Pid(0), others.clone(), "".into())).add(r);

        let key = (r.pid, r.lock_name.clone(), r.place.clone());
        let place = group(&mut self.places, key, || (Pid(0), others.clone(), "".into()));
        place.waits += 1;
        place.total_ns += r.dur;
        if r.dur > place.max_ns {
            (place.max_ns, place.max_tid) = (r.dur, r.tid.0);
            place.max_comm = r.comm.to_string();
            place.held_at = text(&r.holder_place);
        }

        if let (Some(comm), Some(lock), Some(at), Some(ns)) =
            (&r.root_comm, &r.root_lock, &r.root_place, r.root_ns)
        {
            let key = (r.pid, comm.clone(), lock.clone(), at.clone());
            let others = || (Pid(0), others.clone(), "".into(), "".into());
            let root = group(&mut self.roots, key, others);
            root.waits += 1;
            root.total_ns += ns;
            root.max_ns = root.max_ns.max(ns);
        }
        self.marks.add(r.mark);
        self.longest.offer(LONGEST, r.dur, || LongWait::from(r));
    }

    /// Takes a wait that never ended; there are no more of them than threads.
    pub fn add_unfinished(&mut self, r: &UnfinishedWait) {
        self.unfinished.push(Unended::from(r));
    }

    /// Takes an edge of the lock order.
    pub fn add_order(&mut self, r: LockOrder) {
        self.edges.add(r);
    }

    /// Finishes the statistics; `tally` tells what is not in them.
    pub fn finish(self, tally: &Tally) -> WaitsReport {
        let locks = self.locks.into_iter();
        let mut locks: Vec<_> =
            locks.map(|((pid, lock, kind), c)| c.finish(pid.0, &lock, &kind)).collect();
        locks.sort_by(|a, b| {
            (b.total_ns, &a.lock, &a.kind, a.pid).cmp(&(a.total_ns, &b.lock, &b.kind, b.pid))
        });
        let places = self.places.into_iter().map(|((pid, lock, place), sums)| PlaceWaits {
            pid: pid.0,
            lock: lock.to_string(),
            place: place.to_string(),
            ..sums
        });
        let mut places: Vec<_> = places.collect();
        places.sort_by(|a, b| {
            (b.total_ns, &a.lock, &a.place, a.pid).cmp(&(a.total_ns, &b.lock, &b.place, b.pid))
        });
        let roots = self.roots.into_iter().map(|((pid, comm, lock, place), sums)| RootWaits {
            pid: pid.0,
            comm: comm.to_string(),
            lock: lock.to_string(),
            place: place.to_string(),
            ..sums
        });
        let mut roots: Vec<_> = roots.collect();
        roots.sort_by(|a, b| {
            (b.total_ns, &a.comm, &a.lock, &a.place).cmp(&(a.total_ns, &b.comm, &b.lock, &b.place))
        });
        let all = self.all.finish(0, "", "");
        let mut marks = self.marks;
        marks.add_many(Mark::Censored, tally.incomplete.wait_only);
        let (order_edges, abba, gated) = self.edges.finish();
        WaitsReport {
            waits: all.waits,
            total_ns: all.total_ns,
            incomplete: tally.incomplete,
            marks,
            decomposed: tally.kernel,
            all,
            locks,
            places,
            roots,
            longest: self.longest.into_sorted(),
            unfinished: self.unfinished,
            abba,
            gated,
            order_edges,
            order_not_kept: tally.order_not_kept,
        }
    }
}
