//! Times in which a worker had the CPU without a gap.
//!
//! A run lasts from the worker's first reading of the counter, or the end of a gap, to the begin of the next gap, or its
//! last reading. So runs and the gaps between them tile the time from the first reading to the last.
//!
//! It ended because the worker yielded or slept if it said so between the two readings around the gap.

use super::{Impossible, Moment, Plan};
use crate::world::Interval;
use ft_trace::ids::{Cpu, Nanos};
use ft_trace::tables::{LoadRun, RunEnd};

/// A run that goes on.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: i64,
    cpu: Cpu,
}

/// The runs of one worker.
#[derive(Debug)]
pub(super) struct Runs {
    open: Option<Open>,
    /// When it yielded last, and went to sleep.
    yielded: i64,
    slept: i64,
    pub(super) count: i64,
    pub(super) run_ns: i64,
    pub(super) gap_ns: i64,
}

impl Default for Runs {
    fn default() -> Self {
        let never = i64::MIN;
        Runs { open: None, yielded: never, slept: never, count: 0, run_ns: 0, gap_ns: 0 }
    }
}

type Told = Option<Result<LoadRun, Impossible>>;

impl Runs {
    /// It yields the CPU.
    pub(super) fn yields(&mut self, now: i64) {
        self.yielded = now;
    }

    /// It goes to sleep.
    pub(super) fn sleeps(&mut self, now: i64) {
        self.slept = now;
    }

    /// It begins to poll; whether that can be.
    pub(super) fn first(&mut self, reading: i64, cpu: Cpu, now: i64) -> bool {
        self.open = (0..=now).contains(&reading).then_some(Open { start: reading, cpu });
        self.open.is_some()
    }

    /// It did not run in the interval, and runs on `cpu` now; the run before.
    pub(super) fn gap(&mut self, plan: &Plan, moment: Moment<'_>, gap: Interval, cpu: Cpu) -> Told {
        let ended = match gap.before() {
            before if self.slept >= before => RunEnd::Slept,
            before if self.yielded >= before => RunEnd::Yielded,
            _ => RunEnd::Unasked,
        };
        let run = self.close(plan, moment, gap.before(), ended, Some(gap.len_ns()));
        self.open = Some(Open { start: gap.after(), cpu });
        run
    }

    /// It polls no more.
    pub(super) fn last(&mut self, plan: &Plan, moment: Moment<'_>, reading: i64) -> Told {
        self.close(plan, moment, reading, RunEnd::Finished, None)
    }

    /// What is open has no end that will be recorded; whether there was any.
    pub(super) fn lose(&mut self) -> bool {
        self.open.take().is_some()
    }

    fn close(
        &mut self,
        plan: &Plan,
        moment: Moment<'_>,
        end: i64,
        ended: RunEnd,
        gap_ns: Option<i64>,
    ) -> Told {
        let Open { start, cpu } = self.open.take()?;
        if !(start..=moment.now()).contains(&end) {
            return Some(Err(Impossible));
        }
        let past = moment.past(start, end);
        let kernel = moment.world.context().kernel;
        let doubtful = past.as_ref().map_or(kernel, |past| {
            // It had the CPU. Where the kernel's account has anything else, a switch that is missing can be why.
            let had = past.parts.running_ns + past.parts.interrupts_ns() == end - start;
            past.hidden || !had && moment.thread.doubtful_since(start)
        });
        self.count += 1;
        self.run_ns = self.run_ns.saturating_add(end - start);
        self.gap_ns = self.gap_ns.saturating_add(gap_ns.unwrap_or(0));
        let thread = moment.thread;
        Some(Ok(LoadRun {
            ts: Nanos(start),
            dur: end - start,
            pid: thread.key.pid,
            tid: thread.key.tid,
            comm: thread.comm.clone(),
            worker: plan.number,
            cpu,
            ended,
            gap_ns,
            parts: past.map(|past| past.parts),
            mark: moment.mark(start, doubtful),
        }))
    }
}
