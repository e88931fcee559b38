//! Gaps of polling threads: what they consisted of by the kernel's account, and what can be inferred without it.
//!
//! **Goal.** A poller reports a gap when it is over: `before`, the last time that it looked at the clock, and
//! `after`, the next. Say what the kernel saw in between ([`explanation`]), what the times alone show
//! ([`infer`]), and how well the two agree ([`agreement`]). A gap without any record may be the tick of a host
//! ([`host_tick`]).
//!
//! **Limits.** A gap of a thread whose polling was not announced, and a gap older than the history, have
//! no parts and are counted ([`Unaccounted`]).

pub mod agreement;
mod explanation;
mod grid;
mod host_tick;
mod infer;

use crate::analysis::Analysis;
use crate::world::{BlockedOn, Change, Culprit, Interval, Past, Thread, World};
use crate::{Rows, Tally};
use explanation::Explanation;
pub(crate) use explanation::is_explained;
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Nanos};
use ft_trace::tables::{Gap, GapCause};
use host_tick::HostTick;
use infer::{Inference, Seen};
use serde::{Deserialize, Serialize};

/// Gaps that the kernel's account cannot explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unaccounted {
    /// The gap begins before the thread's history does.
    pub before_history: u64,
    /// Its end lies before its start, or after the event that reports it; or its start is negative.
    pub impossible: u64,
}

/// Makes the table `gaps`, and the tally's agreement.
#[derive(Debug, Default)]
pub struct Gaps {
    inference: Inference,
    host_tick: HostTick,
    agreement: agreement::GapMatrix,
    rows: u64,
}

impl Analysis for Gaps {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Polls { thread, cpu } => {
                self.inference.polls(thread.key.pid, thread.key.tid, cpu, world.now());
            }
            Change::Gap { thread, cpu, interval, past } => {
                rows.gaps.push(self.row(thread, cpu, interval, past, world));
            }
            Change::PollingOver { missed, .. } => self.agreement.missed(missed),
            Change::Ended { thread, .. } => self.ended(thread, world),
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.gaps = self.rows;
        tally.agreement = self.agreement.finish();
    }
}

impl Gaps {
    fn ended(&mut self, thread: &Thread, world: &World) {
        let pid = thread.key.pid;
        if self.inference.knows(pid) && world.is_alone(thread) {
            self.inference.forget(pid);
            self.host_tick.forget(pid);
        }
    }

    fn row(
        &mut self,
        thread: &Thread,
        cpu: Cpu,
        interval: Interval,
        past: Option<&Past>,
        world: &World,
    ) -> Gap {
        self.rows += 1;
        let (key, before) = (thread.key, interval.before());
        let mut explanation = past.map(|past| Explanation::of(past, interval));
        let seen = Seen { pid: key.pid, tid: key.tid, cpu, interval };
        let inferred = self.inference.gap(seen);
        let lost = world.losses().any_since(key, before) || thread.doubtful_since(before);
        let lost = lost || explanation.as_ref().is_some_and(|e| e.doubtful);
        if let Some(explanation) = &mut explanation
            && !lost
            && world.interrupts().recorded
        {
            self.host_tick.look(seen, explanation);
        }
        let disturbed = thread.disturbed.mark(before);
        if let Some(explanation) = explanation.as_mut().filter(|e| e.cause == GapCause::Blocked)
            && disturbed != Mark::Exact
        {
            explanation.culprit = Some(Culprit::Blocked(BlockedOn::FullRing, None));
        }
        let sibling = explanation.as_ref().and_then(|e| match &e.culprit {
            Some(Culprit::Thread(o)) => world.thread(o.thread.pid, o.thread.tid),
            _ => None,
        });
        let sibling = sibling.is_some_and(|t| t.key.pid == key.pid && t.polled);
        let by_kernel = agreement::seen(explanation.as_ref(), sibling);
        self.agreement.gap(inferred, by_kernel, interval.len_ns());
        let culprit = explanation.as_ref().and_then(|e| e.culprit.as_ref());
        Gap {
            ts: Nanos(before),
            dur: interval.len_ns(),
            pid: key.pid,
            tid: key.tid,
            comm: thread.comm.clone(),
            cpu,
            cause: explanation.as_ref().map(|e| e.cause),
            culprit: culprit.and_then(Culprit::name),
            culprit_tid: culprit.and_then(Culprit::tid).map(|tid| tid.0),
            parts: explanation.as_ref().map(|e| e.parts),
            agent_ns: past
                .and_then(|past| world.agent_part(world.agent_share(&past.shares)?, &past.parts)),
            inferred,
            mark: Mark::lower_bound_if(lost).max(disturbed),
        }
    }
}
