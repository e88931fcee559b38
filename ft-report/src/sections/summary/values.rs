//! The summary for programs: sums and extremes. The sections of the questions have everything.

use serde::Serialize;

use super::super::dispatch::LATE_NS;
use super::super::futexes::Waits;
use super::Answers;
use crate::stats::Tail;
use ft_trace::tables::Decomposition;

#[derive(Debug, Serialize)]
pub(super) struct Values {
    /// Holds of locks.
    holds: Intervals,
    /// Of these, while another lock was held.
    nested_holds: u64,
    /// Of these, in which the holder was preempted.
    preempted_holds: u64,
    /// Where the held time went; null without a kernel stream.
    held: Option<Decomposition>,
    /// Waits for locks.
    waits: Intervals,
    /// Waits at futexes and semaphores, where they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    futex_waits: Option<Intervals>,
    /// Threads that wait for each other.
    deadlocked_threads: u64,
    /// Pairs of locks that were acquired in both orders.
    both_orders: u64,
    /// Times that a holder could run and had no CPU.
    held_up_times: u64,
    /// Their sum, ns.
    held_up_ns: i64,
    /// What that delayed waiters, ns.
    delayed_ns: i64,
    /// Wake-ups, from waking to running.
    wake_ups: Intervals,
    /// A limit, ns, and how many of the wake-ups were later.
    later_than: (i64, u64),
    /// Gaps of polling threads.
    gaps: u64,
    /// Their sum, ns.
    gaps_ns: i64,
    /// Threads whose time is known.
    threads: u64,
    /// Where it went; null without a kernel stream.
    time: Option<Decomposition>,
    /// Async tasks, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<u64>,
    /// Calls of functions, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
}

/// Lengths of intervals; without any of them, all but their number is null.
#[derive(Debug, Default, Serialize)]
struct Intervals {
    count: u64,
    total_ns: Option<i64>,
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
    max_ns: Option<i64>,
}

impl Intervals {
    fn of(count: u64, total_ns: i64, tail: Tail) -> Intervals {
        if count == 0 {
            return Intervals::default();
        }
        let Tail { p50_ns, p99_ns, max_ns, .. } = tail;
        let (total_ns, p50_ns, max_ns) = (Some(total_ns), Some(p50_ns), Some(max_ns));
        Intervals { count, total_ns, p50_ns, p99_ns, max_ns }
    }
}

impl Answers {
    pub(super) fn values(&self) -> Values {
        let Answers {
            locks,
            waits,
            futexes,
            preempted,
            dispatch,
            gaps,
            time,
            tasks,
            functions,
            ..
        } = self;
        let at_futexes = |all: &Waits| Intervals::of(all.waits, all.total_ns, all.tail);
        Values {
            holds: Intervals::of(locks.holds, locks.all.total_ns, locks.all.tail),
            nested_holds: locks.all.nested,
            preempted_holds: locks.all.preempted_holds,
            held: locks.decomposed.then_some(locks.all.parts),
            waits: Intervals::of(waits.waits, waits.total_ns, waits.all.tail),
            futex_waits: futexes.recorded.then(|| at_futexes(&futexes.all)),
            deadlocked_threads: waits.deadlocked(),
            both_orders: waits.order.abba.len() as u64,
            held_up_times: preempted.times,
            held_up_ns: preempted.total_ns,
            delayed_ns: preempted.delayed_ns(),
            wake_ups: Intervals::of(dispatch.all.wakeups, dispatch.all.total_ns, dispatch.all.tail),
            later_than: (LATE_NS[0], dispatch.all.later_than[0]),
            gaps: gaps.gaps,
            gaps_ns: gaps.total_ns(),
            threads: time.threads.len() as u64,
            time: time.kernel.then(|| time.parts()),
            tasks: Some(tasks.counts.tasks).filter(|&n| n > 0),
            calls: Some(functions.counts.calls).filter(|&n| n > 0),
        }
    }
}
