//! Loops that nothing should interrupt (`ft-load npt`): how long their passes took, and why some took long.

mod loops;

use std::cmp::Reverse;

use serde::Serialize;

use super::Input;
use crate::document::{Id, Interval, MeanNs, N, Ns, Of, Section, Share, Table, Thread, Word};
use crate::stats::{Groups, Marks, Top};
use crate::text;
use ft_analysis::{LoopCounts, Mark, Tally};
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{LoopBin, LoopPeak, PeakCause};
use loops::Loops;
pub use loops::{Lengths, LoopSum};

/// Pairs of cause and culprit with a row of their own.
///
/// Limit: as `MAX_GROUPS` of `preempted.rs`.
const MAX_GROUPS: usize = 4096;

/// Rows of the longer tables that are shown; the machine values have all.
const SHOWN: usize = 15;

/// Longest peaks that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// What a peak without a kernel's account has for a cause.
const NO_ACCOUNT: &str = "no account";

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct NptReport {
    /// There is a kernel stream to explain peaks.
    pub kernel: bool,
    /// What the loops reported, and what of it is in no row.
    pub counts: LoopCounts,
    /// Each loop that reported its histogram.
    pub loops: Vec<LoopSum>,
    /// How many passes of all loops took how long: (lower edge in ns, passes).
    pub histogram: Vec<(u64, u64)>,
    /// Rows of the histogram, of more loops than are kept, that are in none of these figures but in `histogram`.
    pub left_out: u64,
    /// How sure the peaks are.
    pub marks: Marks,
    /// Peaks by cause, most excess first.
    pub causes: Vec<PeakCauseSum>,
    /// Who or what caused peaks, most excess first.
    pub culprits: Vec<CulpritSum>,
    /// The longest peaks.
    pub longest: Vec<LongPeak>,
}

/// Where what passes took too long went, ns. The parts sum to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExcessParts {
    /// In interrupts.
    pub interrupt_ns: i64,
    /// Others had the CPU.
    pub preempted_ns: i64,
    /// Waiting for something.
    pub blocked_ns: i64,
    /// The recording itself.
    pub tracer_ns: i64,
    /// Covered by no record.
    pub unexplained_ns: i64,
}

impl ExcessParts {
    fn of(r: &LoopPeak) -> Option<ExcessParts> {
        Some(ExcessParts {
            interrupt_ns: r.interrupt_ns?,
            preempted_ns: r.preempted_ns?,
            blocked_ns: r.blocked_ns?,
            tracer_ns: r.tracer_ns?,
            unexplained_ns: r.unexplained_ns?,
        })
    }

    fn add(&mut self, other: &ExcessParts) {
        // A program may claim peaks that overlap, and so have a larger sum than there was time.
        for (mine, theirs) in [
            (&mut self.interrupt_ns, other.interrupt_ns),
            (&mut self.preempted_ns, other.preempted_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.tracer_ns, other.tracer_ns),
            (&mut self.unexplained_ns, other.unexplained_ns),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// Peaks of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct PeakCauseSum {
    /// Cause; `no account` without a kernel's account.
    pub cause: &'static str,
    /// Peaks.
    pub peaks: u64,
    /// What they took beyond their passes' own time, ns.
    pub excess_ns: i64,
    /// Where that went; they sum to `excess_ns`, or to 0 without an account.
    pub parts: ExcessParts,
    /// The longest, ns.
    pub max_ns: i64,
}

/// Peaks by one culprit.
#[derive(Clone, Debug, Serialize)]
pub struct CulpritSum {
    /// Cause.
    pub cause: &'static str,
    /// Name of the thread or interrupt.
    pub culprit: String,
    /// Peaks.
    pub peaks: u64,
    /// What they took beyond their passes' own time, ns.
    pub excess_ns: i64,
    /// The longest, ns.
    pub max_ns: i64,
}

/// One of the longest peaks.
#[derive(Clone, Debug, Serialize)]
pub struct LongPeak {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length of the pass, ns.
    pub dur_ns: i64,
    /// Its number.
    pub pass: Option<i64>,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// CPU.
    pub cpu: i32,
    /// What a pass takes by itself, ns.
    pub own_ns: i64,
    /// The rest, ns.
    pub excess_ns: i64,
    /// Cause.
    pub cause: &'static str,
    /// Who or what it was.
    pub culprit: Option<String>,
    /// Its thread id.
    pub culprit_tid: Option<i32>,
    /// Where the excess went.
    pub parts: Option<ExcessParts>,
    /// How sure it is.
    pub mark: Mark,
}

impl LongPeak {
    fn of(r: &LoopPeak) -> LongPeak {
        LongPeak {
            ts: r.ts.0,
            dur_ns: r.dur,
            pass: r.pass,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            cpu: r.cpu.0,
            own_ns: r.own_ns,
            excess_ns: r.excess_ns,
            cause: cause(r),
            culprit: r.culprit.as_ref().map(ToString::to_string),
            culprit_tid: r.culprit_tid,
            parts: ExcessParts::of(r),
            mark: r.mark,
        }
    }

    /// Where it lies in the trace.
    fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: None }
    }
}

fn cause(r: &LoopPeak) -> &'static str {
    r.cause.map_or(NO_ACCOUNT, PeakCause::word)
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    peaks: u64,
    excess_ns: i64,
    parts: ExcessParts,
    max_ns: i64,
}

impl Sum {
    fn add(&mut self, r: &LoopPeak) {
        self.peaks += 1;
        self.excess_ns = self.excess_ns.saturating_add(r.excess_ns);
        self.max_ns = self.max_ns.max(r.dur);
        if let Some(parts) = ExcessParts::of(r) {
            self.parts.add(&parts);
        }
    }
}

/// Makes an [`NptReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
struct Npt {
    loops: Loops,
    marks: Marks,
    culprits: Groups<MAX_GROUPS, (&'static str, Option<Name>), Sum>,
    causes: Groups<8, (&'static str, Option<Name>), Sum>,
    longest: Top<LongPeak>,
}

impl Npt {
    fn add(&mut self, r: &LoopPeak) {
        self.marks.add(r.mark);
        self.causes.entry((cause(r), None)).add(r);
        if let Some(culprit) = &r.culprit {
            self.culprits.entry((cause(r), Some(culprit.clone()))).add(r);
        }
        self.longest.offer(LONGEST, r.dur, || LongPeak::of(r));
    }

    fn finish(self, tally: &Tally) -> NptReport {
        let told = self.loops.finish();
        let causes = self.causes.into_ranked(
            |((cause, _), s)| PeakCauseSum {
                cause,
                peaks: s.peaks,
                excess_ns: s.excess_ns,
                parts: s.parts,
                max_ns: s.max_ns,
            },
            |c| (Reverse(c.excess_ns), c.cause),
        );
        let culprits = self.culprits.into_ranked(
            |((cause, culprit), s)| CulpritSum {
                cause,
                culprit: culprit.as_deref().unwrap_or_default().to_owned(),
                peaks: s.peaks,
                excess_ns: s.excess_ns,
                max_ns: s.max_ns,
            },
            |c| (Reverse(c.excess_ns), c.cause, c.culprit.clone()),
        );
        NptReport {
            kernel: tally.kernel,
            counts: tally.loops,
            loops: told.loops,
            histogram: told.coarse,
            left_out: told.left_out,
            marks: self.marks,
            causes,
            culprits,
            longest: self.longest.into_sorted(),
        }
    }
}

impl NptReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<NptReport> {
        let mut npt = Npt::default();
        input.rows(|r: LoopBin| npt.loops.add(r))?;
        input.rows(|r: LoopPeak| npt.add(&r))?;
        Ok(npt.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("npt", "loops that nothing should interrupt");
        if self.counts.is_none() {
            s.say("No loop was recorded: ft-agent record -k sched,irq -- ft-load npt");
            return s.with(self);
        }
        self.coverage(&mut s);
        self.passes(&mut s);
        if self.marks.any() {
            self.causes(&mut s);
            self.longest(&mut s);
            self.marks.legend(&mut s);
        }
        s.with(self)
    }

    fn coverage(&self, s: &mut Section) {
        let c = &self.counts;
        s.say(text!("{}; {}", Of(c.begun, "loop"), self.marks.line("peak")).reasons(&[
            (c.begun.saturating_sub(c.ended), "not at its end when the recording ended"),
            (c.without_gap, "peaks more that the loop counted, and that have no gap"),
            (c.told_peaks.saturating_sub(c.peaks), "fewer than the loops have counted"),
            (c.impossible, "bins of the histogram that cannot be"),
            (self.left_out, "bins of more loops than are kept"),
        ]));
        if !self.kernel && self.marks.any() {
            s.say("The kernel was not recorded, so nothing is known of what caused the peaks; record with -k sched,irq.");
        }
    }

    fn passes(&self, s: &mut Section) {
        let ns =
            |of: fn(&Lengths) -> f64| move |l: &&LoopSum| l.lengths.as_ref().map(|l| MeanNs(of(l)));
        let tail = |of: fn(&Lengths) -> Option<f64>| {
            move |l: &&LoopSum| l.lengths.as_ref().and_then(of).map(MeanNs)
        };
        let t = Table::first(SHOWN, self.loops.iter())
            .marks(|l| l.mark)
            .column("thread", |l| Thread::of(Some(l.tid), Some(&l.comm)))
            .column("tid", |l| Id(l.tid))
            .column("passes", |l| N(l.passes))
            .column("min", ns(|l| l.min_ns))
            .column("mean", ns(|l| l.mean_ns))
            .column("p50", ns(|l| l.p50_ns))
            .column("p99", tail(|l| l.p99_ns))
            .column("p99.9", tail(|l| l.p999_ns))
            .column("p99.99", tail(|l| l.p9999_ns))
            .column("max", ns(|l| l.max_ns))
            .counted("loops");
        s.table(t.titled("Length of a pass, by the program's own histogram"));
        let all = self.histogram.iter().fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
        let t = Table::of(&self.histogram)
            .column("from", |(from, _)| Ns(*from as i64))
            .column("to", |(from, _)| Ns(loops::next_edge(*from) as i64))
            .column("passes", |(_, n)| N(*n))
            .column("share", move |(_, n)| Share::of(*n, all));
        s.table(t.titled("Passes by their length"));
    }

    fn causes(&self, s: &mut Section) {
        let parts = |of: fn(&ExcessParts) -> i64| move |c: &&PeakCauseSum| Ns(of(&c.parts));
        let t = Table::of(&self.causes)
            .column("cause", |c| Word(c.cause))
            .column("peaks", |c| N(c.peaks))
            .column("excess", |c| Ns(c.excess_ns))
            .when(self.kernel, |t| {
                t.column("irqs", parts(|p| p.interrupt_ns))
                    .column("preempted", parts(|p| p.preempted_ns))
                    .column("blocked", parts(|p| p.blocked_ns))
                    .column("tracer", parts(|p| p.tracer_ns))
                    .column("unexpl.", parts(|p| p.unexplained_ns))
            })
            .column("max", |c| Ns(c.max_ns));
        s.table(t.titled(
            "Peaks by what took the largest part of their excess, and where all of it went",
        ));
        if !self.culprits.is_empty() {
            let t = Table::first(SHOWN, self.culprits.iter())
                .column("cause", |c| Word(c.cause))
                .column("who or what", |c| Word(&c.culprit))
                .column("peaks", |c| N(c.peaks))
                .column("excess", |c| Ns(c.excess_ns))
                .column("max", |c| Ns(c.max_ns))
                .counted("culprits");
            s.table(t.titled(
                "Who or what took the largest part of a peak's excess; excess and max: of whole peaks",
            ));
        }
    }

    fn longest(&self, s: &mut Section) {
        let part = |of: fn(&ExcessParts) -> i64| {
            move |p: &&LongPeak| p.parts.as_ref().map(|parts| Ns(of(parts)))
        };
        let t = Table::of(&self.longest)
            .marks(|p| p.mark)
            .column("thread", |p| Thread::of(Some(p.tid), Some(&p.comm)))
            .column("length", |p| p.interval())
            .when(self.kernel, |t| {
                t.column("cause", |p| Word(p.cause))
                    .column("who or what", |p| p.culprit.as_deref().map(Word))
                    .column("irqs", part(|p| p.interrupt_ns))
                    .column("preempted", part(|p| p.preempted_ns))
                    .column("blocked", part(|p| p.blocked_ns))
                    .column("tracer", part(|p| p.tracer_ns))
                    .column("unexpl.", part(|p| p.unexplained_ns))
            });
        s.table(t.titled("The longest peaks"));
    }
}

#[cfg(test)]
mod tests;
