//! Tasks of one name together.

use std::cmp::Reverse;

use serde::Serialize;

use super::MAX_TASK_GROUPS;
use crate::stats::counted::CountedSums;
use crate::stats::{Counted, Distribution, Groups, Happened, Own, Tail};
use ft_analysis::Mark;
use ft_trace::ids::Name;
use ft_trace::tables::{AsyncSwitch, AsyncTask, Decomposition, TaskEnd};

/// What a task is called: its name, or where it was made; `?` where neither is known.
pub(super) fn label(known: &Name) -> Name {
    if known.is_empty() { "?".into() } else { known.clone() }
}

/// All tasks of one name.
#[derive(Clone, Debug, Serialize)]
pub struct TaskName {
    /// Name, or place.
    pub name: String,
    /// Tasks.
    pub tasks: u64,
    /// Of these, dropped before they were ready.
    pub dropped: u64,
    /// Left by a panic.
    pub panics: u64,
    /// Without an end.
    pub unended: u64,
    /// With lost records.
    pub doubtful: u64,
    /// Sum of their lives, ns, which the next five sum to.
    pub lives_ns: i64,
    /// In polls, ns.
    pub polled_ns: i64,
    /// Woken, and not polled yet, ns.
    pub queued_ns: i64,
    /// Not woken, ns.
    pub waiting_ns: i64,
    /// Not yet polled or woken, ns.
    pub unstarted_ns: i64,
    /// Not known, ns.
    pub unknown_ns: i64,
    /// Their polls.
    pub polls: PollSums,
    /// Their times from a wake-up to the poll.
    pub queued: Queued,
}

/// Polls.
#[derive(Clone, Debug, Serialize)]
pub struct PollSums {
    /// How many.
    pub polls: u64,
    /// Of these, with lost records.
    pub doubtful: u64,
    /// Sum of their lengths, ns. What inner polls took is in it.
    pub total_ns: i64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// Where their time went; the sum of the parts is `total_ns`, or 0 without a kernel stream.
    pub parts: Decomposition,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// What happened to the threads that polled meanwhile; what did in inner polls is in it.
    pub happened: Happened,
    /// What counters counted in each of them, inner polls included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
}

/// Times from a wake-up to the poll.
#[derive(Clone, Debug, Serialize)]
pub struct Queued {
    /// Polls that a wake-up asked for.
    pub polls: u64,
    /// Sum of the times, ns.
    pub total_ns: i64,
    /// Percentiles.
    #[serde(flatten)]
    pub tail: Tail,
    /// In which the thread that then polled had polled others, ns.
    pub behind_ns: i64,
    /// In which that thread was woken itself and waited for a CPU, ns.
    pub dispatch_ns: i64,
    /// The longest of these, ns.
    pub longest_dispatch_ns: i64,
}

#[derive(Debug, Default)]
struct Sums {
    tasks: u64,
    dropped: u64,
    panics: u64,
    unended: u64,
    doubtful: u64,
    /// Lives; polled, queued, waiting, unstarted, unknown.
    lives_ns: i64,
    states_ns: [i64; 5],
    lengths: Distribution,
    doubtful_polls: u64,
    parts: Decomposition,
    agent_ns: Own,
    happened: Happened,
    counted: CountedSums,
    queued: Distribution,
    behind_ns: i64,
    dispatch_ns: i64,
    longest_dispatch_ns: i64,
}

#[derive(Debug, Default)]
pub(super) struct Names(Groups<MAX_TASK_GROUPS, Name, Sums>);

impl Names {
    pub(super) fn task(&mut self, r: &AsyncTask) {
        let sums = self.0.entry(label(r.label()));
        sums.tasks += 1;
        match r.end {
            TaskEnd::Ready => {}
            TaskEnd::Dropped => sums.dropped += 1,
            TaskEnd::Panic => sums.panics += 1,
            TaskEnd::Unended => sums.unended += 1,
        }
        sums.doubtful += u64::from(r.mark == Mark::LowerBound);
        sums.lives_ns = sums.lives_ns.saturating_add(r.dur);
        let states = [r.polled_ns, r.queued_ns, r.waiting_ns, r.unstarted_ns, r.unknown_ns];
        for (sum, ns) in sums.states_ns.iter_mut().zip(states) {
            *sum = sum.saturating_add(ns);
        }
    }

    pub(super) fn poll(&mut self, r: &AsyncSwitch) {
        let sums = self.0.entry(label(r.label()));
        sums.lengths.add(r.dur);
        sums.doubtful_polls += u64::from(r.mark != Mark::Exact);
        sums.agent_ns.add(r.agent_ns);
        sums.happened.add(r.counts);
        sums.counted.add(r.counter);
        if let Some(parts) = r.parts {
            sums.parts += parts;
        }
        if let Some(ns) = r.queued_ns {
            sums.queued.add(ns);
            sums.behind_ns = sums.behind_ns.saturating_add(r.behind_ns.unwrap_or(0));
            let dispatch = r.queued_dispatch_ns.unwrap_or(0);
            sums.dispatch_ns = sums.dispatch_ns.saturating_add(dispatch);
            sums.longest_dispatch_ns = sums.longest_dispatch_ns.max(dispatch);
        }
    }

    /// All of them; `counters` are the names of those that were read.
    pub(super) fn finish(self, counters: &[String]) -> Vec<TaskName> {
        let name = |(name, mut s): (Name, Sums)| {
            let [polled_ns, queued_ns, waiting_ns, unstarted_ns, unknown_ns] = s.states_ns;
            TaskName {
                name: name.to_string(),
                tasks: s.tasks,
                dropped: s.dropped,
                panics: s.panics,
                unended: s.unended,
                doubtful: s.doubtful,
                lives_ns: s.lives_ns,
                polled_ns,
                queued_ns,
                waiting_ns,
                unstarted_ns,
                unknown_ns,
                polls: PollSums {
                    polls: s.lengths.count(),
                    doubtful: s.doubtful_polls,
                    total_ns: s.lengths.sum(),
                    tail: Tail::of(&mut s.lengths),
                    parts: s.parts,
                    agent_ns: s.agent_ns,
                    happened: s.happened,
                    counted: s.counted.finish(counters),
                },
                queued: Queued {
                    polls: s.queued.count(),
                    total_ns: s.queued.sum(),
                    tail: Tail::of(&mut s.queued),
                    behind_ns: s.behind_ns,
                    dispatch_ns: s.dispatch_ns,
                    longest_dispatch_ns: s.longest_dispatch_ns,
                },
            }
        };
        self.0.into_ranked(name, |n| (Reverse(n.polls.total_ns), n.name.clone()))
    }
}
