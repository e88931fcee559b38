//! Waits that never ended, and the deadlocks among them.

use serde::Serialize;

use super::{SHOWN, at};
use crate::document::{Id, Lock, Ns, Of, Place, Section, Table, Text, Thread, Word};
use crate::text;
use ft_trace::tables::{UnfinishedWait, WaitEnd};

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
    /// What ended.
    pub ended: WaitEnd,
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
            ended: r.ended,
            holder: r.holder_comm.as_ref().map(ToString::to_string),
            holder_tid: r.holder_tid,
            holder_place: r.holder_place.as_ref().map(ToString::to_string),
            holder_gone: r.holder_gone,
            cycle: r.cycle,
        }
    }
}

impl Unended {
    fn holder(&self) -> Thread {
        Thread::of(self.holder_tid, self.holder.as_deref())
    }
}

/// Circles of threads that wait for each other.
fn cycles(waits: &[Unended]) -> Vec<(i32, i32)> {
    let mut cycles: Vec<(i32, i32)> =
        waits.iter().filter_map(|u| Some((u.pid, u.cycle?))).collect();
    cycles.sort_unstable();
    cycles.dedup();
    cycles
}

/// By what the summary refers to their table.
pub(in crate::sections) const UNFINISHED: &str = "unfinished";

/// Says which there are: deadlocks first.
pub(super) fn say(waits: &[Unended], s: &mut Section) {
    for (pid, cycle) in cycles(waits) {
        let members: Vec<&Unended> =
            waits.iter().filter(|u| (u.pid, u.cycle) == (pid, Some(cycle))).collect();
        let each = members.iter().map(|u| {
            text!(
                "{} (thread {}) waits for {}{}, held by {}{}",
                Thread::named(&u.waiter),
                Id(u.waiter_tid),
                Lock::named(&u.lock),
                at(&u.place),
                u.holder(),
                u.holder_place.as_deref().map_or(Text::default(), at)
            )
        });
        s.warn(text!(
            "DEADLOCK in process {}: {} wait for each other: {}",
            Id(pid),
            Of(members.len() as u64, "thread"),
            Text::join(each, "; ").unwrap_or_default()
        ));
    }
    if waits.is_empty() {
        return;
    }
    let t = Table::first(SHOWN, waits.iter())
        .column("thread", |u| Thread::named(&u.waiter))
        .column("tid", |u| Id(u.waiter_tid))
        .column("lock", |u| Lock::named(&u.lock))
        .column("place", |u| Place(&u.place))
        .column("at least", |u| Ns(u.at_least_ns))
        .column("until end of", |u| Word(u.ended.word()))
        .column("held by", |u| u.holder())
        .column("ended", |u| Word(if u.holder_gone { "yes" } else { "no" }))
        .column("acquired at", |u| u.holder_place.as_deref().map(Place))
        .anchored(UNFINISHED)
        .counted("waits");
    s.table(t.titled("Waits that never ended, and the holders that never released"));
}
