//! One cycle: what its time went to, and which of that is to blame that it took so long.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use ft_trace::ids::Name;
use ft_trace::tables::{FileKind, PathKind, PathPiece, Sleep};

/// Kinds of parts, and sleeps, that are kept of one cycle; further parts are unknown, and in what it slept further on.
///
/// Limit: further parts are *unknown*, and waits have no call.
/// Shown by: `what_one_cycle_is_made_of_is_bounded`.
const MAX_PARTS: usize = 64;

/// What a part of a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Its thread ran.
    Own,
    /// It served page faults.
    Faults,
    /// It had to leave its CPU.
    Preempted,
    /// It had been woken, and waited for a CPU.
    Dispatch,
    /// The quota of its group was used up.
    Throttled,
    /// An interrupt struck it, or the CPU for which it waited.
    Interrupt,
    /// The timer that begins the cycle came late.
    LateTimer,
    /// It waited for a thread.
    Thread,
    /// It waited for a thread that is not observed.
    Outside,
    /// It waited for a device.
    Device,
    /// It waited until a timer came.
    Timer,
    /// No record tells.
    Unknown,
}

/// What the time of cycles goes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MissCause {
    /// What it is.
    pub class: Class,
    /// Who or what did that, if it is known.
    pub by: Option<Name>,
    /// Of a wait, what it was in.
    pub within: Option<Name>,
}

impl MissCause {
    /// One that needs no more words.
    pub(super) fn plain(class: Class) -> MissCause {
        MissCause { class, by: None, within: None }
    }

    pub(super) fn by(class: Class, by: Option<Name>) -> MissCause {
        MissCause { class, by, within: None }
    }

    /// In words.
    pub fn says(&self) -> String {
        let by = |before: &str, none: &str| {
            self.by.as_ref().map_or_else(|| none.to_owned(), |by| format!("{before}{by}"))
        };
        let said = match self.class {
            Class::Own => "its own work".to_owned(),
            Class::Faults => "page faults".to_owned(),
            Class::Preempted => by("preempted by ", "preempted"),
            Class::Dispatch => by("woken, behind ", "woken, no CPU yet"),
            Class::Throttled => by("throttled: cgroup ", "throttled"),
            Class::Interrupt => by("interrupt ", "interrupts"),
            Class::LateTimer => "late timer".to_owned(),
            Class::Thread | Class::Outside => by("waited for ", "waited"),
            Class::Device => by("waited for interrupt ", "waited for a device"),
            Class::Timer => by("waited for timer ", "waited for a timer"),
            Class::Unknown => by("unknown: ", "unknown"),
        };
        match &self.within {
            Some(within) => format!("{said} in {within}"),
            None => said,
        }
    }
}

/// What a thread slept in, by its call.
fn slept_in(sleep: &Sleep) -> Option<Name> {
    // What a mutex that is taken and waited for has, in glibc and Rust; and operations of a lock with priority inheritance
    // (include/uapi/linux/futex.h).
    const CONTENDED: i64 = 2;
    const LOCK_PI: [i64; 2] = [6, 13];
    const OPERATION: i64 = 0x7f;
    let call = sleep.call.as_ref()?;
    let [_, operation, value, _] = sleep.argument;
    let is_futex = matches!(&**call, "futex" | "futex_wait");
    let is_lock = value == Some(CONTENDED)
        || operation.is_some_and(|operation| LOCK_PI.contains(&(operation & OPERATION)));
    Some(match sleep.file {
        _ if is_futex && is_lock => format!("{call} (a lock)").into(),
        Some(file) if file != FileKind::Other => format!("{call} ({file})").into(),
        _ => call.clone(),
    })
}

/// What a wait is for that is known better than by its call: by the words of `thread_time`, of the thread of the cycle itself.
fn waited_in(piece: &PathPiece) -> Option<Name> {
    let of_waker = piece.depth > 0 && piece.waiter_tid == Some(piece.tid.0);
    let is_vague = |wait: &Name| {
        wait.starts_with("system call ")
            || matches!(&**wait, "asleep" | "uninterruptible" | "stopped")
    };
    piece.wait.clone().filter(|wait| !of_waker && !is_vague(wait))
}

/// A cycle that is to be explained.
#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) from: i64,
    pub(super) to: i64,
    parts: HashMap<MissCause, i64>,
    sleeps: Vec<(i64, Option<Name>)>,
    /// By the sleep: how long it waited for threads, for whom last, and in what.
    waits: BTreeMap<usize, (i64, Option<Name>, Option<Name>)>,
}

impl Cycle {
    pub(super) fn new(from: i64, to: i64) -> Cycle {
        let (parts, sleeps, waits) = (HashMap::new(), Vec::new(), BTreeMap::new());
        Cycle { from, to, parts, sleeps, waits }
    }

    /// Its thread went to sleep; the sleeps come in the order of time, and before the pieces.
    pub(super) fn sleeps(&mut self, sleep: &Sleep) {
        let n = self.sleeps.len();
        if n < MAX_PARTS {
            // Of the last that is kept it is not known, for it stands for all behind it.
            let within = if n + 1 < MAX_PARTS { slept_in(sleep) } else { None };
            self.sleeps.push((sleep.ts.0, within));
        }
    }

    /// A piece of its path, in the order of time.
    pub(super) fn piece(&mut self, piece: &PathPiece) {
        let ts = piece.ts.0;
        // None: of the sleep that ends as the cycle begins.
        let asleep = self.sleeps.partition_point(|(slept, _)| *slept <= ts).checked_sub(1);
        let within = waited_in(piece).or_else(|| asleep.and_then(|i| self.sleeps[i].1.clone()));
        if piece.depth > 0 {
            let at = asleep.map_or(0, |i| i + 1);
            let (ns, by, what) = self.waits.entry(at).or_default();
            *ns += piece.dur;
            if piece.depth == 1 {
                (*by, *what) = (Some(piece.comm.clone()), within);
            }
            return;
        }
        let culprit = piece.culprit.clone();
        let cause = match piece.kind {
            PathKind::Running => MissCause::plain(Class::Own),
            PathKind::Preempted => MissCause::by(Class::Preempted, culprit),
            PathKind::Dispatch => {
                let idle = piece.culprit_tid == Some(0);
                MissCause::by(Class::Dispatch, culprit.filter(|_| !idle))
            }
            PathKind::Interrupt => MissCause::by(Class::Interrupt, culprit),
            PathKind::Timer if asleep.is_none() => MissCause::plain(Class::LateTimer),
            PathKind::Timer => MissCause { class: Class::Timer, by: None, within },
            PathKind::Device => MissCause { class: Class::Device, by: culprit, within },
            PathKind::Outside => MissCause { class: Class::Outside, by: culprit, within },
            PathKind::Unknown => MissCause::by(Class::Unknown, culprit),
        };
        self.add(cause, piece.dur);
    }

    fn add(&mut self, cause: MissCause, ns: i64) {
        let fits = self.parts.len() < MAX_PARTS || self.parts.contains_key(&cause);
        let cause = if fits { cause } else { MissCause::plain(Class::Unknown) };
        *self.parts.entry(cause).or_default() += ns;
    }

    /// So much of what is of these classes was something else in truth: as much of it as there is.
    pub(super) fn takes(&mut self, of: &[Class], ns: i64, cause: MissCause) {
        let mut left = ns;
        let mut those: Vec<(&MissCause, &mut i64)> =
            self.parts.iter_mut().filter(|(cause, _)| of.contains(&cause.class)).collect();
        those.sort_by(|a, b| (*b.1, a.0).cmp(&(*a.1, b.0)));
        for (_, part) in those {
            let taken = left.min(*part);
            (*part, left) = (*part - taken, left - taken);
        }
        if left < ns {
            self.add(cause, ns - left);
        }
    }

    /// Its parts, the longest first; they sum to it if its path is known, and there are none if it is not.
    pub(super) fn parts(mut self) -> Vec<(MissCause, i64)> {
        for (ns, by, within) in std::mem::take(&mut self.waits).into_values() {
            self.add(MissCause { class: Class::Thread, by, within }, ns);
        }
        let mut parts: Vec<_> = self.parts.into_iter().filter(|(_, ns)| *ns > 0).collect();
        parts.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        parts
    }
}

/// Which of these parts is to blame for a cycle, and how much of it: of what its thread does itself that is what lies beyond the
/// usual, unless that alone is longer than the deadline and than all else.
pub(super) fn to_blame(
    parts: &[(MissCause, i64)],
    usual_ns: i64,
    deadline_ns: i64,
) -> Option<(MissCause, i64)> {
    let own = |cause: &MissCause| cause.class == Class::Own;
    if let Some((first, ns)) = parts.first()
        && own(first)
        && *ns > deadline_ns
    {
        return Some((first.clone(), *ns));
    }
    let beyond = |(cause, ns): &(MissCause, i64)| {
        let ns = if own(cause) { ns - usual_ns } else { *ns };
        (cause.clone(), ns)
    };
    // Of equal ones the first.
    parts.iter().map(beyond).rev().max_by_key(|(_, ns)| *ns)
}

#[cfg(test)]
mod tests;
