//! Where all the time of a thread went: by part, and by who or what took it.
//!
//! **Goal.** From the first sight of a thread to its end, or to the end of the trace, one row for each part and
//! culprit. They add up to the wall time to the nanosecond. The account that they are made of is the world's
//! (`world/spent.rs`).

use crate::Rows;
use crate::analysis::Analysis;
use crate::world::{Change, Spent, Thread, World};
use ft_trace::Mark;
use ft_trace::ids::Nanos;
use ft_trace::tables::ThreadTime;

/// Makes the table `thread_time`.
#[derive(Debug, Default)]
pub struct Time;

impl Analysis for Time {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        if let Change::Ended { thread, seen } = *change
            && world.context().kernel
        {
            let first = thread.spent.first();
            let lost = world.losses().kernel_since(first) || thread.doubtful_since(first);
            let mark = match () {
                () if lost => Mark::LowerBound,
                () if seen && thread.born => Mark::Exact,
                () => Mark::Censored,
            };
            let mark = mark.max(thread.disturbed.mark(first));
            rows.thread_time.extend(of(thread, world, mark));
        }
    }
}

/// The rows of a thread, in the order of the parts, most time first.
fn of(thread: &Thread, world: &World, mark: Mark) -> Vec<ThreadTime> {
    let first = thread.spent.first();
    let agent = world.context().agent;
    let row = |sum: &Spent| ThreadTime {
        ts: Nanos(first),
        pid: thread.key.pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        part: sum.part,
        culprit: sum.culprit.name(),
        culprit_tid: sum.culprit.tid().map(|tid| tid.0),
        spent_ns: sum.ns,
        stretches: sum.stretches,
        agent_ns: agent.map(|_| sum.agent_ns),
        wall_ns: world.now() - first,
        mark,
    };
    let mut rows: Vec<ThreadTime> = thread.spent.sums().map(row).collect();
    rows.sort_by_key(|r| (r.part, -r.spent_ns, r.culprit_tid));
    rows
}
