//! A row of `functions`: what is known of one function in one thread.

use super::{Sum, Which};
use crate::world::{Thread, World};
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{Counts, Function};

pub(super) fn row(thread: &Thread, sum: &Sum, mark: Mark, world: &World) -> Function {
    let Sum { first, counts, total, own, counter, .. } = sum;
    let (function, place, address) = match &sum.which {
        Which::At(address) => {
            let (name, place) = world.context().function(thread.key.pid, *address);
            (name, place, Some(*address))
        }
        Which::Named(event, place) => (name_of(event), place.clone(), None),
        Which::Others => ("(others)".into(), "".into(), None),
        Which::Unknown => ("(unknown)".into(), "".into(), None),
    };
    let part = |ns| world.context().kernel.then_some(ns);
    // Until the first one nobody knows whether they are recorded.
    let faults = sum.happened.faults.filter(|_| world.knows_faults_since(*first));
    let counts_of = world.context().kernel.then_some(Counts { faults, ..sum.happened });
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Function {
        ts: Nanos(*first),
        pid: thread.key.pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        function,
        place,
        address,
        calls: count(counts.calls),
        unfinished: count(counts.unfinished),
        left: count(counts.left),
        begun_before: count(counts.begun_before),
        entered: count(counts.entered),
        total_ns: total.ns,
        total_running_ns: part(total.parts.running_ns),
        total_preempted_ns: part(total.parts.runnable_ns()),
        total_blocked_ns: part(total.parts.blocked_ns),
        total_interrupts_ns: part(total.parts.interrupts_ns()),
        total_unexplained_ns: part(total.parts.unexplained_ns),
        total_agent_ns: world.agent_part(total.agent_ns, &total.parts),
        self_ns: own.ns,
        self_running_ns: part(own.parts.running_ns),
        self_preempted_ns: part(own.parts.runnable_ns()),
        self_blocked_ns: part(own.parts.blocked_ns),
        self_interrupts_ns: part(own.parts.interrupts_ns()),
        self_unexplained_ns: part(own.parts.unexplained_ns),
        self_agent_ns: world.agent_part(own.agent_ns, &own.parts),
        counts: counts_of,
        // Nothing was counted where no time was.
        counter: if own.ns > 0 { *counter } else { [None; 2] },
        mark,
    }
}

/// `fn.parser::next` → `parser::next`.
fn name_of(event: &Name) -> Name {
    event.split_once('.').map_or_else(|| event.clone(), |(_, name)| name.into())
}
