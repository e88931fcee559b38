//! Statistics of the gaps of polling threads: what the kernel saw in them, and what was inferred without it
//! (Hourglass, section 4).

mod longest;
mod pollers;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::apart::apart;
use super::{Input, without_kernel};
use crate::document::{Data, Histogram, Id, N, Ns, Of, Section, Share, Table, Thread, Typed, Word};
use crate::stats::{Bins, Groups, Marks, Own, Tail, Top, own};
use crate::text;
use ft_analysis::{Tally, Unaccounted};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::Gap;
pub use longest::LongGap;
pub use pollers::{GapCauseSum, Poller};

use pollers::{CAUSES, PollerSums, Sum, cause, poller};

/// Inferred causes, in the order of the tables.
const INFERRED: [&str; 4] = ["switch-to-sibling", "tick", "interrupt", "long"];

/// Pollers, and pairs of cause and culprit, with a group of their own; further ones are in groups of others.
///
/// Limit: as `MAX_GROUPS` of `preempted.rs`.
const MAX_GROUPS: usize = 4096;

/// Rows of the longer tables that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Longest gaps that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
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
    /// Histogram: (lower edge in ns, gaps) of each bin of 0.1 µs that is not empty.
    pub histogram_100ns: Vec<(i64, u64)>,
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
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
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

/// Makes a [`GapsReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Gaps {
    gaps: u64,
    bins: Bins,
    pollers: Groups<MAX_GROUPS, (Pid, Tid), PollerSums>,
    culprits: Groups<MAX_GROUPS, (usize, Option<Name>), Sum>,
    inference: BTreeMap<(usize, usize), u64>,
    marks: Marks,
    longest: Top<LongGap>,
}

impl Gaps {
    /// Counts a gap.
    pub fn add(&mut self, r: &Gap) {
        self.gaps += 1;
        self.bins.add(r.dur);
        let cause = cause(r);
        let poller = self.pollers.entry((r.pid, r.tid));
        poller.comm = Some(r.comm.clone());
        poller.gaps.add(r.dur);
        poller.bins.add(r.dur);
        poller.causes[cause].add(r);
        poller.agent_ns.add(r.agent_ns);
        if let Some(parts) = r.parts {
            poller.parts += parts;
        }
        if let Some(culprit) = &r.culprit {
            self.culprits.entry((cause, Some(culprit.clone()))).add(r);
        }
        if let Some(inferred) = INFERRED.iter().position(|i| *i == r.inferred.word()) {
            *self.inference.entry((inferred, cause)).or_default() += 1;
        }
        self.marks.add(r.mark);
        self.longest.offer(LONGEST, r.dur, || LongGap::of(r, CAUSES[cause]));
    }

    /// Finishes the statistics; `tally` says what is not in them.
    pub fn finish(self, tally: &Tally) -> GapsReport {
        let inference = inference(&self.inference);
        let pollers = self.pollers.into_ranked(poller, |p| (Reverse(p.total_ns), p.tid, p.pid));
        let culprits = self.culprits.into_ranked(
            |((cause, culprit), s)| CulpritSum {
                cause: CAUSES[cause],
                culprit: culprit.as_deref().unwrap_or_default().to_owned(),
                gaps: s.gaps,
                total_ns: s.total_ns,
                max_ns: s.max_ns,
                agent_ns: s.agent_ns,
            },
            |c| (Reverse(c.total_ns), c.cause, c.culprit.clone()),
        );
        GapsReport {
            gaps: self.gaps,
            pollers_seen: tally.pollers,
            kernel: tally.kernel,
            unaccounted: tally.unaccounted,
            histogram_100ns: self.bins.iter().collect(),
            marks: self.marks,
            pollers,
            culprits,
            inference,
            longest: self.longest.into_sorted(),
        }
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

impl GapsReport {
    /// Sum of all gaps, ns.
    pub(super) fn total_ns(&self) -> i64 {
        self.pollers.iter().fold(0, |sum, p| sum.saturating_add(p.total_ns))
    }

    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<GapsReport> {
        let mut gaps = Gaps::default();
        input.rows(|r: Gap| gaps.add(&r))?;
        Ok(gaps.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("gaps", "intervals in which a polling thread did not run");
        if self.gaps == 0 {
            s.say(match self.pollers_seen {
                0 => text!(
                    "No thread polled. Call ft_user::gap::Poller in a loop, and enable its events: -e 'gap.*'."
                ),
                n => text!("{} saw no gap above the threshold.", Of(n, "polling thread")),
            });
            return s.with(self);
        }
        self.coverage(&mut s);
        self.pollers(&mut s);
        self.figures(&mut s);
        if self.kernel {
            self.causes(&mut s);
        }
        self.inference(&mut s);
        s.table(longest::table(&self.longest, self.kernel));
        own::explain(&mut s, "");
        if self.kernel { s.with(self) } else { s.with(without_kernel(self, &["parts"])) }
    }

    fn coverage(&self, s: &mut Section) {
        let pollers = Of(self.pollers.len() as u64, "polling thread");
        s.say(text!("{}; {}", self.marks.line("gap"), pollers).reasons(&[
            (self.unaccounted.before_history, "without the kernel's account"),
            (self.unaccounted.impossible, "more with impossible times, not counted"),
        ]));
        self.marks.legend(s);
        if !self.kernel {
            s.say(
                "The kernel was not recorded, so causes are inferred from user time stamps alone.",
            );
        }
        Tail::legend(s, "gap", self.pollers.iter().map(|p| &p.tail));
    }

    fn pollers(&self, s: &mut Section) {
        let t = Table::first(SHOWN, self.pollers.iter())
            .column("thread", |p| Thread::named(&p.comm))
            .column("tid", |p| Id(p.tid))
            .column("gaps", |p| N(p.gaps))
            .column("total", |p| Ns(p.total_ns))
            .column("p50", |p| Ns(p.tail.p50_ns))
            .column("p90", |p| p.tail.p90_ns.map(Ns))
            .column("p99", |p| p.tail.p99_ns.map(Ns))
            .column("p99.9", |p| p.tail.p999_ns.map(Ns))
            .column("p99.99", |p| p.tail.p9999_ns.map(Ns))
            .column("max", |p| Ns(p.tail.max_ns))
            .counted("threads");
        let t = own::beside(t, |p| (p.agent_ns, p.total_ns));
        s.table(t.titled("By polling thread (-: too few samples)"));
    }

    fn figures(&self, s: &mut Section) {
        let shown = || self.pollers.iter().take(if self.pollers.len() > 1 { SHOWN } else { 0 });
        let all =
            Histogram { of: Thread::named("all").value(), bins: self.histogram_100ns.clone() };
        let names = apart(shown().map(|p| (&*p.comm, p.tid)), "");
        let histogram = |(p, name): (&Poller, String)| Histogram {
            of: Thread::named(&name).value(),
            bins: p.histogram_100ns.clone(),
        };
        let each = shown().zip(names).map(histogram);
        let each = [all].into_iter().chain(each).collect();
        s.figure("Distribution of the gaps", Data::Histograms { counted: "gaps", each });
    }

    fn causes(&self, s: &mut Section) {
        let shown = self.pollers.iter().take(SHOWN).map(|p| p.causes.len()).sum();
        let causes = self.pollers.iter().flat_map(|p| p.causes.iter().map(move |c| (p, c)));
        let t = Table::first(shown, causes)
            .column("thread", |(p, _)| Thread::named(&p.comm))
            .column("tid", |(p, _)| Id(p.tid))
            .column("cause", |(_, c)| Word(c.cause))
            .column("gaps", |(_, c)| N(c.gaps))
            .column("total", |(_, c)| Ns(c.total_ns))
            .column("share", |(p, c)| Share(c.total_ns, p.total_ns))
            .column("max", |(_, c)| Ns(c.max_ns));
        s.table(t.titled(
            "By cause, the largest recorded part of each gap; total, share and max: of whole gaps",
        ));
        if self.culprits.is_empty() {
            return;
        }
        let t = Table::first(SHOWN, self.culprits.iter())
            .column("cause", |c| Word(c.cause))
            .column("who or what", |c| Word(&c.culprit))
            .column("gaps", |c| N(c.gaps))
            .column("total", |c| Ns(c.total_ns))
            .column("max", |c| Ns(c.max_ns))
            .counted("culprits");
        let t = own::beside(t, |c| (c.agent_ns, c.total_ns));
        s.table(
            t.titled("Who or what had the largest part of a gap; total and max: of whole gaps"),
        );
    }

    fn inference(&self, s: &mut Section) {
        let of = |i: &Inferred, causes: &[&str]| {
            N(i.kernel.iter().filter(|(cause, _)| causes.contains(cause)).map(|(_, n)| n).sum())
        };
        let t = Table::of(&self.inference)
            .column("inferred", |i| Word(i.inferred))
            .column("gaps", |i| N(i.gaps))
            .when(self.kernel, |t| {
                t.column("switched-out", |i| of(i, &["switched-out"]))
                    .column("blocked", |i| of(i, &["blocked"]))
                    .column("irqs", |i| of(i, &["hardirq", "softirq", "vector"]))
                    .column("steal", |i| of(i, &["steal"]))
                    .column("unexpl.", |i| of(i, &["unexplained"]))
                    .column("no account", |i| of(i, &["no account"]))
            });
        s.table(t.titled(match self.kernel {
            true => "Causes inferred from user time stamps alone, against what the kernel saw",
            false => "Causes inferred from user time stamps alone",
        }));
    }
}

#[cfg(test)]
mod tests;
