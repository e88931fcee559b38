//! The longest polls, what polls were blocked for or ended with, and what tasks were queued behind.

use std::cmp::Reverse;

use serde::Serialize;

use super::MAX_TASK_GROUPS;
use super::names::label;
use crate::document::Interval;
use crate::sections::called::Called;
use crate::stats::{Groups, Own};
use ft_analysis::Mark;
use ft_trace::ids::Name;
use ft_trace::tables::{AsyncSwitch, Decomposition};

/// One of the longest polls.
#[derive(Clone, Debug, Serialize)]
pub struct LongPoll {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Name of the task, or where it was made.
    pub name: String,
    /// Its number.
    pub task: i64,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Where the time went.
    pub parts: Option<Decomposition>,
    /// Who ran most while the thread was preempted.
    pub preemptor: Option<String>,
    /// That thread's id.
    pub preemptor_tid: Option<i32>,
    /// What it was blocked for longest.
    pub blocked_for: Option<String>,
    /// Page faults in it; missing where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<u64>,
    /// Where in the code that was.
    #[serde(skip_serializing_if = "Called::is_unknown")]
    pub called: Called,
    /// Of `dur_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// How sure it is.
    pub mark: Mark,
}

impl LongPoll {
    /// Where it lies in the trace.
    pub(in crate::sections) fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: None }
    }
}

impl From<&AsyncSwitch> for LongPoll {
    fn from(r: &AsyncSwitch) -> Self {
        LongPoll {
            ts: r.ts.0,
            dur_ns: r.dur,
            name: label(r.label()).to_string(),
            task: r.task,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            parts: r.parts,
            preemptor: r.preemptor_comm.as_ref().map(ToString::to_string),
            preemptor_tid: r.preemptor_tid,
            blocked_for: r.blocked_for.as_ref().map(ToString::to_string),
            faults: r.counts.and_then(|counts| counts.faults).map(|[all, _]| all as u64),
            called: Called::of(r.blocked_stack),
            agent_ns: Own(r.agent_ns),
            mark: r.mark,
        }
    }
}

/// Polls of tasks of one name that were blocked for the same reason.
#[derive(Clone, Debug, Serialize)]
pub struct BlockedFor {
    /// Name of the tasks, or where they were made.
    pub name: String,
    /// What for.
    pub cause: String,
    /// Polls.
    pub times: u64,
    /// Of each the longest time at once, in all, ns.
    pub total_ns: i64,
    /// The longest, ns.
    pub longest_ns: i64,
}

/// Polls of tasks of one name that ended while their thread held a lock which it had acquired in them.
#[derive(Clone, Debug, Serialize)]
pub struct HeldAcross {
    /// Name of the tasks, or where they were made.
    pub name: String,
    /// Name of the lock, the first where there were several.
    pub lock: String,
    /// Where it was acquired.
    pub place: String,
    /// Polls.
    pub times: u64,
}

/// Tasks of one name that were queued behind those of another.
#[derive(Clone, Debug, Serialize)]
pub struct Behind {
    /// Name of the tasks, or where they were made.
    pub name: String,
    /// Of those that were polled meanwhile.
    pub behind: String,
    /// Wake-ups.
    pub times: u64,
    /// For how long those were polled meanwhile, ns.
    pub total_ns: i64,
    /// The longest, ns.
    pub longest_ns: i64,
}

#[derive(Debug, Default)]
struct Sum {
    times: u64,
    total_ns: i64,
    longest_ns: i64,
}

impl Sum {
    fn add(&mut self, ns: i64) {
        self.times += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }
}

#[derive(Debug, Default)]
pub(super) struct Blocks(Groups<MAX_TASK_GROUPS, (Name, Name), Sum>);

impl Blocks {
    pub(super) fn add(&mut self, r: &AsyncSwitch) {
        if let (Some(cause), Some(ns)) = (&r.blocked_for, r.blocked_for_ns) {
            self.0.entry((label(r.label()), cause.clone())).add(ns);
        }
    }

    pub(super) fn finish(self) -> Vec<BlockedFor> {
        let row = |((name, cause), sum): ((Name, Name), Sum)| BlockedFor {
            name: name.to_string(),
            cause: cause.to_string(),
            times: sum.times,
            total_ns: sum.total_ns,
            longest_ns: sum.longest_ns,
        };
        self.0.into_ranked(row, |b| (Reverse(b.total_ns), b.name.clone(), b.cause.clone()))
    }
}

#[derive(Debug, Default)]
pub(super) struct Helds(Groups<MAX_TASK_GROUPS, (Name, Name, Name), u64>);

impl Helds {
    pub(super) fn add(&mut self, r: &AsyncSwitch) {
        if let (Some(lock), Some(place)) = (&r.held_lock, &r.held_place) {
            let group = (label(r.label()), lock.clone(), place.clone());
            *self.0.entry(group) += 1;
        }
    }

    pub(super) fn finish(self) -> Vec<HeldAcross> {
        let row = |((name, lock, place), times): ((Name, Name, Name), u64)| HeldAcross {
            name: name.to_string(),
            lock: lock.to_string(),
            place: place.to_string(),
            times,
        };
        self.0.into_ranked(row, |h| {
            (Reverse(h.times), h.name.clone(), h.lock.clone(), h.place.clone())
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Behinds(Groups<MAX_TASK_GROUPS, (Name, Name), Sum>);

impl Behinds {
    pub(super) fn add(&mut self, r: &AsyncSwitch) {
        if let (Some(behind), Some(ns)) = (&r.behind_name, r.behind_task_ns) {
            let behind = label(behind);
            self.0.entry((label(r.label()), behind)).add(ns);
        }
    }

    pub(super) fn finish(self) -> Vec<Behind> {
        let row = |((name, behind), sum): ((Name, Name), Sum)| Behind {
            name: name.to_string(),
            behind: behind.to_string(),
            times: sum.times,
            total_ns: sum.total_ns,
            longest_ns: sum.longest_ns,
        };
        self.0.into_ranked(row, |b| (Reverse(b.total_ns), b.name.clone(), b.behind.clone()))
    }
}
