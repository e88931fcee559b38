//! What engineers call the way in which time is lost, where what is known of a finding shows it.
//!
//! **Rule.**
//! - *priority inversion*: for most of its wait a real-time thread waits for a less urgent one that has no CPU, and who has that is less
//!   urgent than the one that waits, too. The priorities are the newest ones that were seen.
//! - *holder preempted*: of most of a wait for a lock, one who is none of those that wait had the lock, and had to leave its CPU.
//! - *convoy*: at least three threads of a role wait for one lock behind each other, very often, for a large part of their time, and none
//!   of them sleeps while it has the lock.
//! - *thundering herd*: many are woken for nothing.
//! - *blocked loop*: who else waits for any of several descriptors waits for a lock, a disk or a child, and hears nobody meanwhile.

use std::collections::HashMap;

use ft_trace::ids::Name;
use ft_trace::tables::{Blame, PathKind, ThreadRow};
use serde::Serialize;

use super::group::{Behind, Group, Key};
use super::kind::{Kind, is_poll};
use super::{Finding, Idle};

/// The first kernel priority that is none of a real-time thread.
const FIRST_ORDINARY: i32 = 100;

/// Waits of a convoy.
const MANY: i64 = 100;

/// Threads of a convoy.
const THREADS: usize = 3;

/// The part of their time that those of a convoy wait, at least: one in so many.
const LARGE_ONE_IN: i64 = 4;

/// A way in which time is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// An urgent thread waits for one that a less urgent one keeps from its CPU.
    PriorityInversion,
    /// Who has the lock has no CPU.
    HolderPreempted,
    /// Threads follow each other through a lock.
    Convoy,
    /// Of many that are woken, one goes on.
    Herd,
    /// An event loop waits for something else.
    BlockedLoop,
}

impl Pattern {
    /// What it is called.
    pub(super) fn word(self) -> &'static str {
        match self {
            Pattern::PriorityInversion => "priority inversion",
            Pattern::HolderPreempted => "holder preempted",
            Pattern::Convoy => "convoy",
            Pattern::Herd => "thundering herd",
            Pattern::BlockedLoop => "blocked loop",
        }
    }
}

/// Newest kernel priorities of threads.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    threads: HashMap<i32, i32>,
    /// The most urgent one of those of a name, for rows in which several threads are summed.
    names: HashMap<Name, i32>,
}

impl Priorities {
    pub(super) fn add(&mut self, row: &ThreadRow) {
        let Some(prio) = row.prio else { return };
        self.threads.insert(row.tid.0, prio);
        let most_urgent = self.names.entry(row.name.clone()).or_insert(prio);
        *most_urgent = prio.min(*most_urgent);
    }

    /// Whether a thread waits so for a less urgent one that has no CPU, and one that is less urgent than it has that.
    pub(super) fn is_inverted(&self, row: &Blame) -> bool {
        let has_no_cpu = matches!(row.kind, PathKind::Preempted | PathKind::Dispatch);
        let own = self.threads.get(&row.tid.0).filter(|prio| **prio < FIRST_ORDINARY);
        let Some(own) = own else { return false };
        let is_less_urgent = |tid: Option<i32>, name: &Option<Name>| {
            let prio = match (tid, name) {
                (Some(tid), _) => self.threads.get(&tid),
                (None, Some(name)) => self.names.get(name),
                (None, None) => None,
            };
            prio.is_some_and(|prio| prio > own)
        };
        let is_idle = row.culprit_tid == Some(0);
        row.depth > 0
            && has_no_cpu
            && !is_idle
            && is_less_urgent(row.behind_tid, &row.behind_comm)
            && is_less_urgent(row.culprit_tid, &row.culprit)
    }
}

/// That of those who wait for something; `wall_ns`: how long they lived.
pub(super) fn of_wait(key: &Key, group: &Group, wall_ns: i64) -> Option<Pattern> {
    if 2 * group.inverted_ns > group.lost_ns {
        return Some(Pattern::PriorityInversion);
    }
    if !key.kind.is_held() {
        return None;
    }
    let most = group.behind.values().max_by_key(|behind| behind.ns)?;
    if 2 * most.ns <= group.lost_ns {
        return None;
    }
    let did = |which: fn(PathKind) -> bool| {
        let states = most.states.iter().filter(|(state, _)| which(state.kind));
        states.map(|(_, ns)| *ns).sum::<i64>()
    };
    let is_most = |ns: i64| 2 * ns > most.ns;
    if is_among(group, most) {
        let awake = did(|kind| {
            matches!(kind, PathKind::Running | PathKind::Preempted | PathKind::Dispatch)
        });
        let is_large = group.lost_ns > wall_ns / LARGE_ONE_IN;
        let is_convoy = is_large && group.waits >= MANY && group.who.tids.len() >= THREADS;
        return (is_convoy && is_most(awake)).then_some(Pattern::Convoy);
    }
    is_most(did(|kind| kind == PathKind::Preempted)).then_some(Pattern::HolderPreempted)
}

/// Whether those who are behind it are of those that wait.
fn is_among(group: &Group, behind: &Behind) -> bool {
    behind.who.is_like(&group.who)
}

/// That of a finding that has none yet, by what the same threads do else.
pub(super) fn of_loop(finding: &Finding, idle: &[Idle]) -> Option<Pattern> {
    let blocks = finding.kind.is_held()
        || matches!(finding.kind, Kind::Sync | Kind::File | Kind::Child | Kind::Fault);
    let own = || idle.iter().find(|idle| idle.who.is_like(&finding.who));
    let polls = || own()?.calls.first().map(|call| is_poll(call));
    (blocks && finding.who.tids.len() == 1 && polls() == Some(true)).then_some(Pattern::BlockedLoop)
}

#[cfg(test)]
mod tests {
    use super::super::All;
    use super::super::tests::{MS, behind_logger, report, report_of, row, text};
    use super::*;
    use crate::code::Code;
    use ft_trace::ids::{Nanos, Pid, Tid};

    const THREE: [(i32, &str); 4] =
        [(7, "worker-0"), (8, "worker-1"), (6, "worker-2"), (9, "logger")];

    /// worker-0 waits for the lock that the logger has, who has no CPU.
    fn behind_preempted(culprit_tid: i32) -> Blame {
        Blame {
            kind: PathKind::Preempted,
            culprit: Some("grinder".into()),
            culprit_tid: Some(culprit_tid),
            behind_call: None,
            ..behind_logger(7, "worker-0", 500)
        }
    }

    #[test]
    fn who_has_the_lock_and_no_cpu_is_said_to_be_preempted() {
        let said = text(report(&THREE, &[behind_preempted(11)]));
        let expected =
            "holder preempted: 100 % of it behind logger: 100 % without a CPU, behind grinder";
        assert!(said.contains(expected), "{said}");
        let sleeps = behind_logger(7, "worker-0", 600);
        let found = report(&THREE, &[behind_preempted(11), sleeps]);
        assert_eq!(found.findings[0].pattern, None, "it slept for longer");
    }

    #[test]
    fn an_urgent_thread_behind_two_that_are_less_urgent_waits_by_inversion() {
        let of = |[own, holder, other]: [i32; 3], culprit: Option<i32>| {
            let mut all = All::default();
            let named = [(7, own, "worker-0"), (9, holder, "logger"), (0, 120, "swapper")];
            for (tid, prio, name) in
                named.into_iter().chain([(11, other, "grinder"), (12, 120, "grinder")])
            {
                all.prios.add(&ThreadRow {
                    ts: Nanos(0),
                    tid: Tid(tid),
                    pid: Pid(1),
                    name: name.into(),
                    process: "".into(),
                    prio: Some(prio),
                    observed: true,
                });
            }
            let row = Blame { culprit_tid: culprit, ..behind_preempted(11) };
            report_of(all, &THREE, &[row], &Code::default()).findings[0].pattern
        };
        let pattern = |prios| of(prios, Some(11));
        assert_eq!(pattern([29, 84, 59]), Some(Pattern::PriorityInversion));
        // Several of that name, the most urgent of which counts.
        assert_eq!(of([29, 84, 59], None), Some(Pattern::PriorityInversion));
        assert_eq!(of([29, 84, 9], None), Some(Pattern::HolderPreempted));
        assert_eq!(pattern([29, 120, 120]), Some(Pattern::PriorityInversion));
        // Who has the CPU is more urgent than all; an ordinary thread has no claim to it.
        assert_eq!(pattern([29, 84, 9]), Some(Pattern::HolderPreempted));
        assert_eq!(pattern([120, 139, 125]), Some(Pattern::HolderPreempted));
    }

    #[test]
    fn those_who_follow_each_other_through_a_lock_are_a_convoy() {
        let behind = |tid: i32, comm: &str, kind| Blame {
            waker_comm: Some("worker-1".into()),
            behind_comm: Some("worker-1".into()),
            behind_tid: Some(8),
            behind_call: None,
            kind,
            waits: 50,
            ..behind_logger(tid, comm, 400)
        };
        let of = |kind| {
            let all = THREE.iter().take(3).map(|(tid, comm)| behind(*tid, comm, kind));
            let found = report(&THREE, &all.collect::<Vec<_>>());
            (found.findings[0].pattern, text(found))
        };
        let (pattern, said) = of(PathKind::Running);
        assert_eq!(pattern, Some(Pattern::Convoy));
        assert!(said.contains("convoy: 100 % of it behind worker-1: 100 % running"), "{said}");
        assert_eq!(of(PathKind::Timer).0, None, "they sleep while they have it");
        let two =
            [behind(7, "worker-0", PathKind::Running), behind(8, "worker-1", PathKind::Running)];
        assert_eq!(report(&THREE, &two).findings[0].pattern, None);
    }

    #[test]
    fn a_loop_that_waits_for_a_disk_is_blocked() {
        let polls = |call: &str| Blame {
            call: Some(call.into()),
            kind: PathKind::Timer,
            ns: 300 * MS,
            ..row()
        };
        let syncs = Blame {
            call: Some("fsync".into()),
            kind: PathKind::Device,
            culprit: Some("BLOCK".into()),
            ns: 400 * MS,
            ..row()
        };
        let said = |call| text(report(&THREE[..1], &[polls(call), syncs.clone()]));
        let of_loop = said("epoll_wait");
        assert!(
            of_loop.contains("blocked loop: 100 % of it: 100 % asleep until the disk"),
            "{of_loop}"
        );
        assert!(!said("nanosleep").contains("blocked loop"));
    }
}
