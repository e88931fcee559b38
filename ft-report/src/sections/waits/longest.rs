//! The longest waits.

use serde::Serialize;

use super::super::apart::Names;
use super::super::called::Called;
use crate::document::{Interval, Lock, N, Ns, Place, Table, Thread, Word};
use crate::stats::{Own, own};
use ft_analysis::Mark;
use ft_trace::tables::{Decomposition, LockWait};

/// One of the longest waits.
#[derive(Clone, Debug, Serialize)]
pub struct LongWait {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Address of the lock.
    #[serde(skip)]
    pub address: i64,
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
    pub parts: Option<Decomposition>,
    /// Nobody was known to hold the lock, ns.
    pub no_holder_ns: i64,
    /// Threads waited for each other, ns.
    pub cycle_ns: i64,
    /// Functions in which it slept longest, the innermost first; missing where there is none.
    #[serde(skip_serializing_if = "Called::is_unknown")]
    pub called: Called,
    /// Of `dur_ns`, while the threads to blame waited for a CPU, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// How far it can be believed.
    pub mark: Mark,
}

impl From<&LockWait> for LongWait {
    fn from(r: &LockWait) -> Self {
        LongWait {
            ts: r.ts.0,
            dur_ns: r.dur,
            address: r.lock,
            lock: r.lock_name.to_string(),
            place: r.place.to_string(),
            waiter: r.comm.to_string(),
            waiter_tid: r.tid.0,
            holders: r.holders,
            holder: r.holder_comm.as_ref().map(ToString::to_string),
            holder_tid: r.holder_tid,
            holder_place: r.holder_place.as_ref().map(ToString::to_string),
            chain: r.chain,
            root: r.root_comm.as_ref().map(ToString::to_string),
            root_tid: r.root_tid,
            root_lock: r.root_lock.as_ref().map(ToString::to_string),
            parts: r.parts,
            no_holder_ns: r.no_holder_ns,
            cycle_ns: r.cycle_ns,
            called: Called::of(r.stack),
            agent_ns: Own(r.agent_ns),
            mark: r.mark,
        }
    }
}

impl LongWait {
    /// Where it lies in the trace.
    pub(in crate::sections) fn interval(&self) -> Interval {
        Interval {
            ts: self.ts,
            dur_ns: self.dur_ns,
            tid: self.waiter_tid,
            lock: Some(self.address),
        }
    }
}

/// The table of them.
pub(super) fn table(waits: &[LongWait], decomposed: bool) -> Table {
    let part = |w: &LongWait, of: fn(&Decomposition) -> i64| w.parts.as_ref().map(|p| Ns(of(p)));
    let all = waits.iter().flat_map(|w| {
        let others = [(w.holder.as_deref(), w.holder_tid), (w.root.as_deref(), w.root_tid)];
        let others = others.into_iter().filter_map(|(name, tid)| name.zip(tid));
        [(&*w.waiter, w.waiter_tid)].into_iter().chain(others)
    });
    let names = Names::of(all, "");
    let thread = |name: Option<&str>, tid: Option<i32>| {
        let name = name.map(|name| names.name(name, tid.unwrap_or(0)));
        name.map(|name| Thread::of(tid, Some(&name)))
    };
    let free = |w: &&LongWait| w.no_holder_ns > w.dur_ns / 2;
    let blamed = |w: &&LongWait| match free(w) {
        true => Some(Thread::named("(nobody)")),
        false => thread(w.root.as_deref().filter(|_| w.chain > 1), w.root_tid),
    };
    let title = match waits.iter().any(|w| free(&w)) {
        true => {
            "The longest waits; (nobody): most of the time, nobody is known to have held the lock"
        }
        false => "The longest waits",
    };
    let t = Table::of(waits)
        .marks(|w| w.mark)
        .column("thread", |w| Thread::named(&names.name(&w.waiter, w.waiter_tid)))
        .column("lock", |w| Lock::named(&w.lock))
        .column("wait", |w| w.interval())
        .notes("in, called from", |w| w.called.way().map(Word))
        .column("held by", |w| thread(w.holder.as_deref(), w.holder_tid))
        .column("at", |w| w.holder_place.as_deref().map(Place))
        .column("holds", |w| N(w.holders.unsigned_abs().into()))
        .column("blamed", blamed)
        .when(decomposed, |t| {
            t.column("running", |w| part(w, |p| p.running_ns))
                .column("preempt.", |w| part(w, |p| p.preempted_ns))
                .column("dispatch", |w| part(w, |p| p.dispatch_ns))
                .column("blocked", |w| part(w, |p| p.blocked_ns))
        });
    own::beside(t, |w| (w.agent_ns, w.dur_ns)).titled(title)
}
