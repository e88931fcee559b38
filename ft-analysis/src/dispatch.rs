//! How long a woken thread waits for a CPU (Hourglass, section 5.3).
//!
//! **Goal.** One row for each wake-up of an observed thread, from the waking to the switch that let it run. When a wake-up
//! begins, and what is none, the world knows (`world/wakes.rs`).

use crate::analysis::Analysis;
use crate::world::{Change, Shares, Thread, Wake, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Nanos};
use ft_trace::tables::DispatchLatency;

/// Makes the table `dispatch_latency`.
#[derive(Debug, Default)]
pub struct Dispatch {
    rows: u64,
}

impl Analysis for Dispatch {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        if let Change::Dispatched { thread, shares, wake: Some(wake), cpu, .. } = *change {
            self.rows += 1;
            rows.dispatch_latency.push(row(thread, wake, shares, cpu, world));
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.dispatches = self.rows;
    }
}

fn row(thread: &Thread, wake: &Wake, shares: &Shares, cpu: Cpu, world: &World) -> DispatchLatency {
    // Between the two the thread may have run, slept and been woken unseen.
    let lost = world.losses().scheduling_since(wake.ts) || thread.unseen >= wake.ts;
    let doubtful = thread.unsure >= wake.ts || !shares.is_exact();
    let mark = if lost { Mark::Censored } else { Mark::lower_bound_if(doubtful) };
    // It was the tracer that put the thread to sleep.
    let mark = mark.max(thread.disturbed.mark(wake.ts));
    let longest = shares.longest();
    DispatchLatency {
        ts: Nanos(wake.ts),
        dur: world.now() - wake.ts,
        pid: thread.key.pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        cpu,
        prio: wake.prio,
        waker_tid: wake.waker_tid,
        waker_comm: wake.waker_comm.clone(),
        running_tid: longest.map(|s| s.who.thread.tid.0),
        running_comm: longest.map(|s| s.who.comm.clone()),
        running_ns: longest.map(|s| s.ns),
        migrated: wake.migrated,
        stack: wake.stack,
        agent_ns: world.agent_share(shares),
        mark,
    }
}
