//! Statistics of the gaps of polling threads: what the kernel saw in them, and what was inferred without it
//! (Hourglass, section 4).

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::locks::Parts;
use super::marks::Marks;
use super::tail::Tail;
use super::top::Top;
use crate::stats::Distribution;
use ft_analysis::{Mark, Tally, Unaccounted};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::tables::Gap;

/// Causes, in the order of the tables.
pub(super) const CAUSES: [&str; 8] = [
    "switched-out",
    "blocked",
    "hardirq",
    "softirq",
    "vector",
    "steal",
    "unexplained",
    "no account",
];

/// Inferred causes, in the order of the tables.
pub(super) const INFERRED: [&str; 4] = ["switch-to-sibling", "tick", "interrupt", "long"];

/// Pollers, and pairs of cause and culprit, that are told apart; further ones are in one group.
const MAX_GROUPS: usize = 4096;

/// Longest gaps that are shown.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct GapsReport {
    /// Gaps in these statistics.
    pub gaps: u64,
    /// Threads that polled, with or without gaps.
    pub pollers_seen: u64,
    /// There is a kernel stream to explain them.
    pub kernel: bool,
    /// Gaps that the kernel's account does not cover.
    pub unaccounted: Unaccounted,
    /// How sure they are.
    pub marks: Marks,
    /// Each polling thread, most gap time first.
    pub pollers: Vec<Poller>,
    /// Who or what made the gaps, most time first.
    pub culprits: Vec<CulpritSum>,
    /// How often each inferred cause met each cause that the kernel saw.
    pub inference: Vec<Inferred>,
    /// The longest gaps.
    pub longest: Vec<LongGap>,
}

/// The gaps of one thread.
#[derive(Clone, Debug, Serialize)]
pub struct Poller {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Gaps.
    pub gaps: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// What the gap time consisted of.
    pub parts: Parts,
    /// By cause.
    pub causes: Vec<CauseSum>,
}

/// Gaps of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct CauseSum {
    /// Cause; `no account` without a kernel's account.
    pub cause: &'static str,
    /// Gaps.
    pub gaps: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
}

/// Gaps of one cause by one thread or interrupt.
#[derive(Clone, Debug, Serialize)]
pub struct CulpritSum {
    /// Cause.
    pub cause: &'static str,
    /// Name of the thread or interrupt.
    pub culprit: String,
    /// Gaps.
    pub gaps: u64,
    /// Their sum, ns.
    pub total_ns: i64,
    /// Longest, ns.
    pub max_ns: i64,
}

/// One inferred cause against what the kernel saw.
#[derive(Clone, Debug, Serialize)]
pub struct Inferred {
    /// Inferred cause.
    pub inferred: &'static str,
    /// Gaps of which it was inferred.
    pub gaps: u64,
    /// Gaps by the kernel's cause, in the order of the causes.
    pub kernel: Vec<(&'static str, u64)>,
}

/// One of the longest gaps.
#[derive(Clone, Debug, Serialize)]
pub struct LongGap {
    /// Last poll before, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// CPU of the first poll after.
    pub cpu: i32,
    /// Cause.
    pub cause: &'static str,
    /// Who or what it was.
    pub culprit: Option<String>,
    /// Its thread id.
    pub culprit_tid: Option<i32>,
    /// What the gap consisted of.
    pub parts: Option<Parts>,
    /// Inferred cause.
    pub inferred: String,
    /// How sure it is.
    pub mark: Mark,
}

/// The cause as one of [`CAUSES`].
fn cause(gap: &Gap) -> usize {
    let known = gap.cause.and_then(|c| CAUSES.iter().position(|k| *k == c.word()));
    known.unwrap_or(CAUSES.len() - 1)
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    gaps: u64,
    total_ns: i64,
    max_ns: i64,
}

impl Sum {
    fn add(&mut self, ns: i64) {
        self.gaps += 1;
        // An application may tell gaps that overlap, and so have a larger sum than there was time.
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }
}

#[derive(Debug, Default)]
struct Counts {
    comm: Option<Name>,
    gaps: Distribution,
    parts: Parts,
    causes: [Sum; CAUSES.len()],
}

/// Makes a [`GapsReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Gaps {
    gaps: u64,
    pollers: HashMap<(Pid, Tid), Counts>,
    culprits: HashMap<(usize, Name), Sum>,
    inference: BTreeMap<(usize, usize), u64>,
    marks: Marks,
    longest: Top<LongGap>,
}

impl Gaps {
    /// Counts a gap.
    pub fn add(&mut self, r: &Gap) {
        self.gaps += 1;
        let cause = cause(r);
        let (mut thread, mut comm) = ((r.pid, r.tid), r.comm.clone());
        if self.pollers.len() >= MAX_GROUPS && !self.pollers.contains_key(&thread) {
            (thread, comm) = ((Pid(0), Tid(0)), "(others)".into());
        }
        let poller = self.pollers.entry(thread).or_default();
        poller.comm = Some(comm);
        poller.gaps.add(r.dur);
        poller.causes[cause].add(r.dur);
        if let Some(parts) = &r.parts {
            poller.parts.add(parts);
        }
        if let Some(culprit) = &r.culprit {
            let mut key = (cause, culprit.clone());
            if self.culprits.len() >= MAX_GROUPS && !self.culprits.contains_key(&key) {
                key.1 = "(others)".into();
            }
            self.culprits.entry(key).or_default().add(r.dur);
        }
        if let Some(inferred) = INFERRED.iter().position(|i| *i == r.inferred.word()) {
            *self.inference.entry((inferred, cause)).or_default() += 1;
        }
        self.marks.add(r.mark);
        self.longest.offer(LONGEST, r.dur, || LongGap {
            ts: r.ts.0,
            dur_ns: r.dur,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            cpu: r.cpu.0,
            cause: CAUSES[cause],
            culprit: r.culprit.as_ref().map(ToString::to_string),
            culprit_tid: r.culprit_tid,
            parts: r.parts.as_ref().map(Parts::from),
            inferred: r.inferred.to_string(),
            mark: r.mark,
        });
    }

    /// Finishes the statistics; `tally` tells what is not in them.
    pub fn finish(self, tally: &Tally) -> GapsReport {
        let inference = inference(&self.inference);
        let mut pollers: Vec<Poller> = self.pollers.into_iter().map(poller).collect();
        pollers.sort_by_key(|p| (std::cmp::Reverse(p.total_ns), p.tid));
        let mut culprits: Vec<CulpritSum> = self
            .culprits
            .into_iter()
            .map(|((cause, culprit), s)| CulpritSum {
                cause: CAUSES[cause],
                culprit: culprit.to_string(),
                gaps: s.gaps,
                total_ns: s.total_ns,
                max_ns: s.max_ns,
            })
            .collect();
        culprits.sort_by(|a, b| {
            (b.total_ns, a.cause, &a.culprit).cmp(&(a.total_ns, b.cause, &b.culprit))
        });
        GapsReport {
            gaps: self.gaps,
            pollers_seen: tally.pollers,
            kernel: tally.kernel,
            unaccounted: tally.unaccounted,
            marks: self.marks,
            pollers,
            culprits,
            inference,
            longest: self.longest.into_sorted(),
        }
    }
}

fn poller(((pid, tid), mut c): ((Pid, Tid), Counts)) -> Poller {
    let causes = CAUSES.into_iter().zip(c.causes).filter(|(_, s)| s.gaps > 0);
    let causes = causes.map(|(cause, s)| CauseSum {
        cause,
        gaps: s.gaps,
        total_ns: s.total_ns,
        max_ns: s.max_ns,
    });
    Poller {
        pid: pid.0,
        tid: tid.0,
        comm: c.comm.map_or_else(String::new, |name| name.to_string()),
        gaps: c.gaps.count(),
        total_ns: c.gaps.sum(),
        tail: Tail::of(&mut c.gaps),
        parts: c.parts,
        causes: causes.collect(),
    }
}

fn inference(counts: &BTreeMap<(usize, usize), u64>) -> Vec<Inferred> {
    let of = |i: usize, c: usize| counts.get(&(i, c)).copied().unwrap_or(0);
    let row = |(i, inferred): (usize, &'static str)| {
        let kernel: Vec<(&'static str, u64)> =
            CAUSES.into_iter().enumerate().map(|(c, name)| (name, of(i, c))).collect();
        let gaps = kernel.iter().map(|(_, n)| n).sum();
        Inferred { inferred, gaps, kernel }
    };
    INFERRED.into_iter().enumerate().map(row).filter(|r| r.gaps > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Cpu, Nanos};
    use ft_trace::tables::InferredCause;

    #[test]
    fn pollers_that_do_not_fit_are_others() {
        let mut gaps = Gaps::default();
        for tid in 1..=MAX_GROUPS as i32 + 2 {
            gaps.add(&Gap {
                ts: Nanos(1),
                dur: 10,
                pid: Pid(1),
                tid: Tid(tid),
                comm: "poller".into(),
                cpu: Cpu(0),
                cause: None,
                culprit: None,
                culprit_tid: None,
                parts: None,
                inferred: InferredCause::Long,
                mark: Mark::Exact,
            });
        }
        let report = gaps.finish(&Tally::default());
        let others: Vec<_> = report.pollers.iter().filter(|p| p.comm == "(others)").collect();
        assert_eq!(
            others.iter().map(|p| (p.pid, p.tid, p.total_ns)).collect::<Vec<_>>(),
            [(0, 0, 20)]
        );
    }
}
