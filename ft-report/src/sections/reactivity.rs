//! Reactivity: how long it took from causes to their answers, and what on the way took the time.
//!
//! A reaction is a request that an interrupt, a timer, a waking or an event begins, so its figures are those of requests.

use std::collections::BTreeMap;

use serde::Serialize;

use super::request::RequestReport;
use super::requests::{Mean, RequestsReport};
use super::{Input, NO_SCHEDULER};
use crate::document::{MeanNs, N, Section, Table, Word};
use crate::stats::own;
use ft_analysis::Reactions;
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::Request;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct ReactivityReport {
    /// Lengths, what the paths of the slowest are made of, and the slowest; its `counts` have causes without an answer.
    #[serde(flatten)]
    requests: RequestsReport,
    /// Of each kind, what the critical paths of all its reactions are made of, on average.
    pub averages: Vec<Average>,
    /// The slowest with their paths.
    pub paths: Vec<RequestReport>,
}

/// What reactions of one kind are made of.
#[derive(Clone, Debug, Serialize)]
pub struct Average {
    /// Their kind.
    pub kind: Name,
    /// Of all that have a path.
    #[serde(flatten)]
    pub mean: Mean,
}

impl ReactivityReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<ReactivityReport> {
        let requests = RequestsReport::read_those(input, |kind| input.is_reaction(kind))?;
        let mut sums: BTreeMap<Name, Mean> = BTreeMap::new();
        input.rows(|r: Request| {
            if input.is_reaction(&r.kind) {
                sums.entry(r.kind.clone()).or_default().add(&r);
            }
        })?;
        let average = |(kind, sum): (Name, Mean)| Some(Average { kind, mean: sum.finish()? });
        let slowest: Vec<i64> = requests.slowest.iter().map(|slow| slow.request).collect();
        Ok(ReactivityReport {
            requests,
            averages: sums.into_iter().filter_map(average).collect(),
            paths: RequestReport::read_those(input, &slowest)?,
        })
    }

    /// What it says.
    pub fn section(self) -> Section {
        let about =
            "how long it took from causes to their answers, and what on the way took the time";
        let mut s = Section::new("reactivity", about);
        if self.requests.counts.reactions.is_empty() {
            s.say(
                "No reaction was asked for: name its cause (`--from irq:NAME`, `timer:THREAD`, `packet:THREAD`, `wake:THREAD` or `event:NAME`) and \
                 its answer (`--to event:NAME`).",
            );
            return s.with(self);
        }
        self.causes(&mut s);
        if !self.requests.kernel {
            s.say(NO_SCHEDULER);
        }
        if self.requests.marks.any() {
            s.say(self.requests.marks.line("reaction"));
        } else {
            s.say("No cause was answered.");
        }
        self.requests.doubts(&mut s);
        self.requests.without_path(&mut s, "reaction");
        if !self.averages.is_empty() {
            self.averages(&mut s);
        }
        self.requests.tables(&mut s);
        if let Some(slowest) = self.paths.first() {
            slowest.say(&mut s);
        }
        s.with(self)
    }

    fn causes(&self, s: &mut Section) {
        let count =
            |of: fn(&Reactions) -> u64| move |r: &&Reactions| Some(N(of(r))).filter(|n| n.0 > 0);
        let t = Table::of(&self.requests.counts.reactions)
            .column("from, to", |r| Word(&r.kind))
            .column("causes", |r| N(r.causes))
            .column("answered", |r| N(r.answered))
            .notes("coalesced", count(|r| r.coalesced))
            .notes("unanswered", count(|r| r.unanswered))
            .notes("too many", count(|r| r.too_many))
            .notes("answers alone", count(|r| r.without_cause));
        s.table(t.titled(
            "Causes and their answers (coalesced: with an older one that was not answered yet, which counts; answers alone: without \
             a cause since the answer before)",
        ));
    }

    fn averages(&self, s: &mut Section) {
        let part = |of: fn(&Mean) -> f64| {
            move |a: &&Average| Some(MeanNs(of(&a.mean))).filter(|ns| ns.0 > 0.0)
        };
        let t = Table::of(&self.averages)
            .column("from, to", |a| Word(&a.kind))
            .column("length", |a| MeanNs(a.mean.dur_ns))
            .notes("running", part(|m| m.running_ns))
            .notes("preempted", part(|m| m.preempted_ns))
            .notes("dispatch", part(|m| m.dispatch_ns))
            .notes("irqs", part(|m| m.interrupt_ns))
            .notes("timer", part(|m| m.timer_ns))
            .notes("device", part(|m| m.device_ns))
            .notes("outside", part(|m| m.outside_ns))
            .notes("unknown", part(|m| m.unknown_ns))
            .notes("elsewhere", part(|m| m.elsewhere_ns));
        let t = own::beside(t, |a| a.mean.own());
        s.table(t.titled(
            "What they are made of: averages of their critical paths (elsewhere: of these, in threads for which the one waited \
             that answered)",
        ));
    }
}
