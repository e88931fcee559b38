//! The threads that poll: how long each had work and no CPU.

use std::cmp::Reverse;

use serde::Serialize;

use super::MAX_TASK_GROUPS;
use crate::stats::Groups;
use ft_analysis::Mark;
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::tables::{AsyncSwitch, Decomposition};

/// A thread that polled; one of number 0 is all those that have no line of their own.
#[derive(Clone, Debug, Serialize)]
pub struct Worker {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its newest name.
    pub comm: String,
    /// Polls that were not within another one.
    pub polls: u64,
    /// Of these, with lost records.
    pub doubtful: u64,
    /// Sum of their lengths, ns.
    pub polled_ns: i64,
    /// Where that went; the sum of the parts is `polled_ns`, or 0 without a kernel stream.
    pub parts: Decomposition,
    /// Woken and without a CPU while a task was queued that it then polled, ns.
    pub dispatch_ns: i64,
    /// The longest of these times, ns.
    pub longest_dispatch_ns: i64,
}

impl Worker {
    /// How long it had work and no CPU, ns.
    pub fn starved_ns(&self) -> i64 {
        let in_polls = self.parts.preempted_ns.saturating_add(self.parts.dispatch_ns);
        in_polls.saturating_add(self.dispatch_ns)
    }
}

#[derive(Debug, Default)]
struct Sums {
    comm: Name,
    polls: u64,
    doubtful: u64,
    polled_ns: i64,
    parts: Decomposition,
    dispatch_ns: i64,
    longest_dispatch_ns: i64,
}

#[derive(Debug, Default)]
pub(super) struct Workers(Groups<MAX_TASK_GROUPS, (Pid, Tid), Sums>);

impl Workers {
    pub(super) fn add(&mut self, r: &AsyncSwitch) {
        if r.depth > 0 {
            return;
        }
        let sums = self.0.entry((r.pid, r.tid));
        if sums.comm != r.comm {
            sums.comm = r.comm.clone();
        }
        sums.polls += 1;
        sums.doubtful += u64::from(r.mark != Mark::Exact);
        sums.polled_ns = sums.polled_ns.saturating_add(r.dur);
        sums.parts += r.parts.unwrap_or_default();
        let dispatch = r.queued_dispatch_ns.unwrap_or(0);
        sums.dispatch_ns = sums.dispatch_ns.saturating_add(dispatch);
        sums.longest_dispatch_ns = sums.longest_dispatch_ns.max(dispatch);
    }

    pub(super) fn finish(self) -> Vec<Worker> {
        let worker = |((pid, tid), sums): ((Pid, Tid), Sums)| Worker {
            pid: pid.0,
            tid: tid.0,
            comm: if tid.0 == 0 { "(others)".to_owned() } else { sums.comm.to_string() },
            polls: sums.polls,
            doubtful: sums.doubtful,
            polled_ns: sums.polled_ns,
            parts: sums.parts,
            dispatch_ns: sums.dispatch_ns,
            longest_dispatch_ns: sums.longest_dispatch_ns,
        };
        self.0.into_ranked(worker, |w| (Reverse((w.starved_ns(), w.polled_ns)), w.pid, w.tid))
    }
}
