//! Which events are those of a task: `--task`.
//!
//! An event is its thread's, and a thread is in the poll of a task or in none. So those of a task lie within its polls, which
//! the conversion has found; and the others that tell of it, its making, its wake-ups and its drop, name it themselves.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use ft_user::glob;

use super::names::Names;
use super::{ListingError, Result};
use ft_trace::ids::{Pid, SiteId, Tid};
use ft_trace::store::Trace;
use ft_trace::tables::{AsyncSwitch, AsyncTask};

/// The tasks that were asked for.
#[derive(Debug)]
pub(super) struct Tasks {
    known: HashSet<(Pid, i64)>,
    /// Times in which a thread was in a poll of one of them, in order; none touches the next. Nobody else has its number then.
    polls: HashMap<Tid, Vec<RangeInclusive<i64>>>,
    /// Sites whose events begin with a task.
    sites: HashSet<SiteId>,
}

impl Tasks {
    /// By numbers, by globs over names, and over places of those without a name.
    ///
    /// # Errors
    ///
    /// When one of them names no task, or the trace cannot be read.
    pub(super) fn new(trace: &Trace, names: &Names, wanted: &[String]) -> Result<Tasks> {
        let mut known = HashSet::new();
        let mut is_found = vec![false; wanted.len()];
        for task in trace.rows::<AsyncTask>() {
            let task = task?;
            for (wanted, is_found) in wanted.iter().zip(&mut is_found) {
                let is_it = match wanted.parse::<i64>() {
                    Ok(number) => number == task.task,
                    Err(_) => glob::matches(wanted, task.label()),
                };
                if is_it {
                    *is_found = true;
                    known.insert((task.pid, task.task));
                }
            }
        }
        if let Some((wanted, _)) = wanted.iter().zip(is_found).find(|(_, is_found)| !is_found) {
            return Err(ListingError::NoTask(wanted.clone()));
        }
        let sites = names.sites().filter(|site| site.row.kind.is_of_task());
        let sites = sites.map(|site| site.row.site).collect();
        Ok(Tasks { polls: polls(trace, &known)?, known, sites })
    }

    /// Whether a thread is in a poll of one of them.
    pub(super) fn polls(&self, tid: Tid, ts: i64) -> bool {
        let Some(polls) = self.polls.get(&tid) else { return false };
        let before = polls.partition_point(|poll| *poll.end() < ts);
        polls.get(before).is_some_and(|poll| poll.contains(&ts))
    }

    /// Whether a thread ever is.
    pub(super) fn has_thread(&self, tid: Tid) -> bool {
        self.polls.contains_key(&tid)
    }

    /// Whether an event tells of one of them.
    pub(super) fn are_told(&self, pid: Pid, site: SiteId, first: i64) -> bool {
        self.sites.contains(&site) && self.known.contains(&(pid, first))
    }
}

/// The times of the polls of these tasks; those within each other are one.
fn polls(
    trace: &Trace,
    of: &HashSet<(Pid, i64)>,
) -> Result<HashMap<Tid, Vec<RangeInclusive<i64>>>> {
    let mut all: HashMap<Tid, Vec<(i64, i64)>> = HashMap::new();
    for poll in trace.rows::<AsyncSwitch>() {
        let poll = poll?;
        if of.contains(&(poll.pid, poll.task)) {
            let span = (poll.ts.0, poll.ts.0 + poll.dur);
            all.entry(poll.tid).or_default().push(span);
        }
    }
    let merged = |mut spans: Vec<(i64, i64)>| {
        spans.sort_unstable();
        spans.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
        spans.into_iter().map(|(from, to)| from..=to).collect()
    };
    Ok(all.into_iter().map(|(thread, spans)| (thread, merged(spans))).collect())
}
