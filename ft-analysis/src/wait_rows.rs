//! The rows of waits for locks.

use crate::Context;
use crate::contention::{Held, Verdict};
use crate::locks::Wait;
use crate::thread::{Thread, Threads};
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos, Pid, ThreadKey, Tid};
use ft_trace::tables::{LockWait, UnfinishedWait, WaitEnd};

/// What locks, places and threads are called.
pub(crate) struct Names<'a> {
    pub(crate) context: &'a mut Context,
    pub(crate) threads: &'a Threads,
}

impl Names<'_> {
    fn thread(&self, pid: Pid, tid: Tid) -> Name {
        let key = ThreadKey { pid, tid };
        let alive = self.threads.get(&key).map(|t| t.comm.clone());
        alive.unwrap_or_else(|| self.context.comm(key))
    }
}

/// The row of a wait that ended at `end` with the lock.
pub(crate) fn row(
    thread: &Thread,
    wait: &Wait,
    end: i64,
    verdict: &Verdict,
    names: Names<'_>,
    touched: bool,
) -> LockWait {
    let pid = thread.key.pid;
    let blame = &verdict.blame;
    debug_assert_eq!(blame.total_ns(), end - wait.ts, "the parts sum");
    let place = |held: &Held| names.context.place(pid, held.site, held.word);
    let (holder, root) = (verdict.holder.as_ref(), verdict.root.as_ref());
    let (holder_place, root_place) = (holder.map(|h| place(&h.0)), root.map(|r| place(&r.0)));
    LockWait {
        ts: Nanos(wait.ts),
        dur: end - wait.ts,
        pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        lock: wait.lock,
        kind: wait.kind.clone(),
        site: wait.site,
        place: names.context.place(pid, wait.site, wait.word),
        // The lock itself is held by now.
        depth: thread.locks.locks().count().saturating_sub(1) as i32,
        depth_mark: thread.locks.depth_mark(),
        holders: verdict.holders.try_into().unwrap_or(i32::MAX),
        holder_tid: holder.map(|h| h.0.tid.0),
        holder_comm: holder.map(|h| names.thread(pid, h.0.tid)),
        holder_place,
        holder_ns: holder.map(|h| h.1),
        holder_waits_ns: blame.holder_waits_ns,
        chain: verdict.chain,
        root_tid: root.map(|r| r.0.tid.0),
        root_comm: root.map(|r| names.thread(pid, r.0.tid)),
        root_place,
        root_ns: root.map(|r| r.1),
        parts: names.context.kernel.then_some(blame.parts),
        no_holder_ns: blame.no_holder_ns,
        cycle_ns: blame.cycle_ns,
        mark: Mark::lower_bound_if(touched),
        root_lock: root.map(|r| names.context.lock_name(pid, r.0.lock, r.0.site, r.0.word)),
        lock_name: names.context.lock_name(pid, wait.lock, wait.site, wait.word),
    }
}

/// The row of a wait that goes on at `now`, when the thread or the trace (`ended`) ends.
pub(crate) fn unfinished_row(
    thread: &Thread,
    wait: &Wait,
    now: i64,
    ended: WaitEnd,
    holder: Option<Held>,
    names: Names<'_>,
) -> UnfinishedWait {
    let pid = thread.key.pid;
    UnfinishedWait {
        ts: Nanos(wait.ts),
        dur: now - wait.ts,
        pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        lock: wait.lock,
        lock_name: names.context.lock_name(pid, wait.lock, wait.site, wait.word),
        kind: wait.kind.clone(),
        place: names.context.place(pid, wait.site, wait.word),
        ended,
        holder_tid: holder.map(|h| h.tid.0),
        holder_comm: holder.map(|h| names.thread(pid, h.tid)),
        holder_place: holder.map(|h| names.context.place(pid, h.site, h.word)),
        holder_since: holder.map(|h| h.since),
        holder_gone: holder.is_some_and(|h| h.gone),
        cycle: wait.cycle.map(|tid| tid.0),
    }
}
