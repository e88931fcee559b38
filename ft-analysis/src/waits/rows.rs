//! The rows of waits for locks.

use super::own::Own;
use super::queues::Verdict;
use super::spared::Spared;
use crate::world::{Holder, Nest, Over, Thread, Wait, World};
use ft_trace::Mark;
use ft_trace::ids::{Nanos, ThreadKey, Tid};
use ft_trace::tables::{LockWait, UnfinishedWait, WaitEnd};

/// The row of a wait that ends now with the lock.
pub(super) fn row(
    thread: &Thread,
    wait: &Wait,
    verdict: &Verdict,
    own: &Own,
    spared: Spared,
    touched: bool,
    world: &World,
) -> LockWait {
    let (pid, context) = (thread.key.pid, world.context());
    let (blame, dur) = (&verdict.blame, world.now() - wait.ts);
    debug_assert_eq!(blame.total_ns(), dur, "the parts sum");
    let place = |held: &Holder| context.place(pid, held.site, held.word);
    let comm = |held: &Holder| world.comm(ThreadKey { pid, tid: held.tid });
    let name = |held: &Holder| context.lock_name(pid, held.lock, held.site, held.word);
    let did = context.kernel.then_some(own.did);
    let behind = own.behind.longest();
    let woken = own.woken.as_ref();
    let (holder, root) = (verdict.holder.as_ref(), verdict.root.as_ref());
    LockWait {
        ts: Nanos(wait.ts),
        dur,
        pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        lock: wait.lock,
        lock_name: context.lock_name(pid, wait.lock, wait.site, wait.word),
        kind: wait.kind.clone(),
        site: wait.site,
        place: context.place(pid, wait.site, wait.word),
        // The lock itself is held by now.
        depth: thread.locks.locks().count().saturating_sub(1) as i32,
        depth_mark: thread.begun.mark(Nest::Locks),
        holders: verdict.holders.try_into().unwrap_or(i32::MAX),
        holder_tid: holder.map(|h| h.0.tid.0),
        holder_comm: holder.map(|h| comm(&h.0)),
        holder_place: holder.map(|h| place(&h.0)),
        holder_ns: holder.map(|h| h.1),
        holder_waits_ns: blame.holder_waits_ns,
        chain: verdict.chain,
        root_tid: root.map(|r| r.0.tid.0),
        root_comm: root.map(|r| comm(&r.0)),
        root_lock: root.map(|r| name(&r.0)),
        root_place: root.map(|r| place(&r.0)),
        root_ns: root.map(|r| r.1),
        parts: context.kernel.then_some(blame.parts),
        no_holder_ns: blame.no_holder_ns,
        cycle_ns: blame.cycle_ns,
        free_asleep_ns: did.map(|did| did.blocked_ns),
        free_runnable_ns: did.map(|did| did.runnable_ns()),
        free_running_ns: did.map(|did| did.running_ns + did.interrupts_ns()),
        free_unknown_ns: did.map(|did| did.unexplained_ns),
        waker_tid: woken.map(|woken| woken.by.0),
        waker_comm: woken.map(|woken| woken.comm.clone()),
        woken_after_ns: woken.map(|woken| woken.after_ns),
        behind_tid: behind.map(|sum| sum.who.thread.tid.0),
        behind_comm: behind.map(|sum| sum.who.comm.clone()),
        behind_ns: behind.map(|sum| sum.ns),
        overtaken: verdict.overtaken.try_into().unwrap_or(i32::MAX),
        own_cpu_ns: spared.filter(|_| context.kernel).map(|ns| ns.min(dur)),
        stack: wait.asleep.map(|(_, stack)| stack),
        agent_ns: world.agent_part(blame.agent_ns, &blame.parts),
        mark: Mark::lower_bound_if(touched).max(world.disturbed_since(pid, wait.ts)),
    }
}

/// The row of a wait that goes on now, when its thread or the trace ends; `cycle` is the circle that it belongs to.
pub(super) fn unfinished(
    thread: &Thread,
    wait: &Wait,
    why: Over,
    cycle: Option<Tid>,
    world: &World,
) -> UnfinishedWait {
    let (pid, context) = (thread.key.pid, world.context());
    let holder = world.locks().holder(thread.process, wait.lock);
    let ended = match why {
        Over::Thread => WaitEnd::Thread,
        Over::Exec => WaitEnd::Exec,
        Over::Trace | Over::Loss => WaitEnd::Trace,
    };
    UnfinishedWait {
        ts: Nanos(wait.ts),
        dur: world.now() - wait.ts,
        pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        lock: wait.lock,
        lock_name: context.lock_name(pid, wait.lock, wait.site, wait.word),
        kind: wait.kind.clone(),
        place: context.place(pid, wait.site, wait.word),
        ended,
        holder_tid: holder.map(|h| h.tid.0),
        holder_comm: holder.map(|h| world.comm(ThreadKey { pid, tid: h.tid })),
        holder_place: holder.map(|h| context.place(pid, h.site, h.word)),
        holder_since: holder.map(|h| h.since),
        holder_gone: holder.is_some_and(|h| h.gone),
        cycle: cycle.map(|tid| tid.0),
    }
}
