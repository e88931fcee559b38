//! Requests: how long they took, what the slowest have that the others have not, and what their critical paths are made
//! of.

mod causes;
mod mean;
mod slowest;

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use serde::Serialize;

use super::Input;
use super::scopes::not_counted;
use crate::document::{IntoText, MeanNs, N, Ns, Of, Section, Share, Table, Text, Word};
use crate::stats::{Distribution, Groups, Marks, OTHERS, Own, Tail, Top, own, ranked};
use crate::text;
use ft_analysis::{Mark, RequestCounts, SLOWEST};
use ft_trace::ids::Name;
use ft_trace::spool::frame::Probe;
use ft_trace::store::Result;
use ft_trace::tables::{PathPiece, Request};

pub use causes::PathCause;
pub(super) use causes::says;
pub use mean::Mean;
pub use slowest::SlowRequest;

use causes::Same;

/// Kinds of requests with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_KINDS: usize = 1024;

/// Causes with a line of their own; further ones are in one of others.
///
/// Limit: as `MAX_KINDS`.
const MAX_CAUSES: usize = 16_384;

/// Lines that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Probes that are named where it is said what they cost.
const NAMED: usize = 3;

/// Slowest requests that are shown.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsReport {
    /// There is a kernel stream; without one there are no paths.
    pub kernel: bool,
    /// What was asked for, and what is in no statistic.
    pub counts: RequestCounts,
    /// What was probed, and what that cost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// How sure the lengths and parts of the others are.
    pub marks: Marks,
    /// How sure their paths are.
    pub path_marks: Marks,
    /// Each kind, the most time first.
    pub kinds: Vec<RequestsOfKind>,
    /// What the critical paths of the slowest are made of, the most time first.
    pub causes: Vec<PathCause>,
    /// The slowest.
    pub slowest: Vec<SlowRequest>,
}

/// All requests of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsOfKind {
    /// Name of the scope, or both events.
    pub kind: String,
    /// Requests.
    pub requests: u64,
    /// Sum of their lengths, ns.
    pub total_ns: i64,
    /// Percentiles of their lengths.
    #[serde(flatten)]
    pub tail: Tail,
    /// Which are the slowest, in percent: 1, or 10 where there are too few of them.
    pub slowest_percent: Option<u32>,
    /// Averages of the slowest.
    pub slowest: Option<Mean>,
    /// Averages of the tenth around the median.
    pub around_median: Option<Mean>,
    /// What of their paths, or else of their threads' time, threads of the agent had the CPU, ns.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
}

#[derive(Debug, Default)]
struct Lengths {
    lengths: Distribution,
    total_ns: i64,
    slowest: Top<i64>,
    /// From which length on they are the slowest, and between which they are around the median.
    slow: Option<i64>,
    middle: (i64, i64),
    slow_sums: Mean,
    middle_sums: Mean,
    agent_ns: Own,
}

impl RequestsReport {
    /// Of a trace; without its reactions and the cycles with a deadline, which have reports of their own.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<RequestsReport> {
        RequestsReport::read_those(input, |kind| !input.is_reaction(kind) && !input.is_cycle(kind))
    }

    /// The same, of these kinds.
    pub(super) fn read_those(
        input: Input<'_>,
        is: impl Fn(&str) -> bool,
    ) -> Result<RequestsReport> {
        let mut kinds: Groups<MAX_KINDS, Name, Lengths> = Groups::default();
        let (mut marks, mut path_marks) = (Marks::default(), Marks::default());
        let mut slowest: Top<SlowRequest> = Top::default();
        input.rows(|r: Request| {
            if !is(&r.kind) {
                return;
            }
            marks.add(r.mark);
            path_marks.add_many(r.path_mark, u64::from(r.path_pieces.is_some()));
            let kind = kinds.entry(r.kind.clone());
            kind.lengths.add(r.dur);
            kind.total_ns = kind.total_ns.saturating_add(r.dur);
            kind.agent_ns.add(r.path_agent_ns.or(r.agent_ns));
            kind.slowest.offer(SLOWEST, r.dur, || r.request);
            slowest.offer(LONGEST, r.dur, || SlowRequest::from(&r));
        })?;
        let mut kinds: HashMap<Name, Lengths> =
            kinds.into_ranked(|kind| kind, |(name, _)| name.clone()).into_iter().collect();
        let mut numbers: HashMap<i64, Name> = HashMap::new();
        for (name, kind) in &mut kinds {
            let d = &mut kind.lengths;
            kind.slow = d.supported_percentile(99.0).or_else(|| d.supported_percentile(90.0));
            kind.middle = (d.percentile(45.0), d.percentile(55.0));
            let slowest = std::mem::take(&mut kind.slowest).into_sorted();
            numbers.extend(slowest.into_iter().map(|request| (request, name.clone())));
        }
        input.rows(|r: Request| {
            if !is(&r.kind) {
                return;
            }
            let name = if kinds.contains_key(&r.kind) { r.kind.clone() } else { OTHERS.into() };
            let Some(kind) = kinds.get_mut(&name) else { return };
            if kind.slow.is_some_and(|slow| r.dur > slow) {
                kind.slow_sums.add(&r);
            }
            if (kind.middle.0..=kind.middle.1).contains(&r.dur) {
                kind.middle_sums.add(&r);
            }
        })?;
        let mut causes: Groups<MAX_CAUSES, Same, (i64, u64)> = Groups::default();
        let mut paths: HashMap<Name, i64> = HashMap::new();
        input.rows(|p: PathPiece| {
            let Some(request) = numbers.get(&p.request) else { return };
            *paths.entry(request.clone()).or_default() += p.dur;
            let (comm, idle) = (p.comm, p.culprit_tid == Some(0));
            let culprit = p.culprit.filter(|_| !idle);
            let same =
                Same { request: request.clone(), kind: p.kind, comm, culprit, idle, wait: p.wait };
            let (ns, pieces) = causes.entry(same);
            (*ns, *pieces) = (*ns + p.dur, *pieces + 1);
        })?;
        let cause = |(same, (total_ns, pieces)): (Same, (i64, u64))| PathCause {
            of_ns: paths.get(&same.request).copied().unwrap_or(0),
            request: same.request.to_string(),
            kind: same.kind,
            thread: same.comm.to_string(),
            what: says(same.kind, same.culprit.as_deref(), same.idle),
            culprit: same.culprit.map(|name| name.to_string()),
            wait: same.wait.map(|name| name.to_string()),
            total_ns,
            pieces,
        };
        let rank = |c: &PathCause| (Reverse(c.total_ns), c.request.clone(), c.what.clone());
        let kinds = kinds.into_iter().map(|(name, kind)| of_kind(&name, kind)).collect();
        let kinds = ranked(kinds, |k: &RequestsOfKind| (Reverse(k.total_ns), k.kind.clone()));
        Ok(RequestsReport {
            kernel: input.tally.kernel,
            counts: input.tally.requests.clone(),
            probes: input.trace.meta().start.probes.clone(),
            marks,
            path_marks,
            kinds,
            causes: causes.into_ranked(cause, rank),
            slowest: slowest.into_sorted(),
        })
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s =
            Section::new("requests", "how long requests took, and what the slowest waited for");
        self.coverage(&mut s);
        self.tables(&mut s);
        s.with(self)
    }

    /// How long they took, and what for.
    pub(super) fn tables(&self, s: &mut Section) {
        if self.kinds.is_empty() {
            return;
        }
        self.lengths(s);
        if self.kernel {
            self.differences(s);
            self.causes(s);
        }
        s.table(slowest::table(&self.slowest, self.kinds.len() > 1));
        if slowest::some_cross_threads(&self.slowest) {
            s.say(
                "A request that one thread began and another ended has no parts there: no thread's time is all of it. Its critical \
                 path has where that went.",
            );
        }
        own::explain(
            s,
            " Of a critical path, waits count whole in which one of these had the CPU longest.",
        );
        self.marks.legend(s);
    }

    fn coverage(&self, s: &mut Section) {
        if self.marks.any() {
            s.say(self.marks.line("request"));
        } else {
            s.say(
                "No request was recorded from its beginning to its end: mark one with `ft_user::scope!`, or name the events that \
                 begin and end it (`--request BEGIN,END`, and `--key ARGUMENT` if it moves between threads).",
            );
        }
        self.doubts(s);
        not_counted(s, "request", &self.counts.unpaired, "more than can go on at once");
        self.without_path(s, "request");
        if self.counts.left > 0 {
            s.say(text!(
                "{} left without a recorded return, which have no row: left by `longjmp`, or more than 64 calls deep in probed \
                 functions, where the kernel follows no return",
                Of(self.counts.left, "call")
            ));
        }
        self.costs(s);
        Tail::legend(s, "request", self.kinds.iter().map(|kind| &kind.tail));
    }

    /// How many paths are not known to be right.
    pub(super) fn doubts(&self, s: &mut Section) {
        if self.path_marks.mark > Some(Mark::Exact) {
            s.say(text!(
                "{} of {} is in part unknown, or goes through what records are missing of",
                Of(self.path_marks.lower_bounds, "critical path"),
                N(self.path_marks.counted())
            ));
        }
    }

    /// How many of them have no path.
    pub(super) fn without_path(&self, s: &mut Section, thing: &'static str) {
        if self.counts.without_path > 0 {
            s.say(text!(
                "{} without a critical path: they overlap so much that all paths would have taken too long",
                Of(self.counts.without_path, thing)
            ));
        }
    }

    /// Says what probes cost the program, those that cost the same together.
    fn costs(&self, s: &mut Section) {
        let cost = |probe: &Probe| probe.cost_ns.zip(probe.within_ns);
        let mut probes: Vec<&Probe> = self.probes.iter().collect();
        probes.sort_by(|a, b| cost(b).partial_cmp(&cost(a)).unwrap_or(Ordering::Equal));
        for alike in probes.chunk_by(|a, b| cost(a) == cost(b)) {
            let names = alike.iter().take(NAMED).map(|probe| Word(&probe.name).into_text());
            let names = Text::join(names, ", ").unwrap_or_default();
            let names = match alike.len().saturating_sub(NAMED) {
                0 => names,
                more => text!("{} and {} more", names, N(more as u64)),
            };
            s.say(match cost(alike[0]) {
                Some((ns, within)) => text!(
                    "Each begin and end of {} takes about {} of the program's time, {} of it within its own length, all of it \
                     within those around it: measured before the recording, by a function of the agent's own that begins \
                     alike, and subtracted nowhere",
                    names,
                    MeanNs(ns),
                    MeanNs(within)
                ),
                None => text!(
                    "What each begin and end of {} takes of the program's time, which is in these figures, could not be measured",
                    names
                ),
            });
        }
    }

    fn lengths(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.kinds)
            .counted("kinds")
            .column("request", |k| Word(&k.kind))
            .column("requests", |k| N(k.requests))
            .column("total", |k| Ns(k.total_ns))
            .column("p50", |k| Ns(k.tail.p50_ns))
            .column("p90", |k| k.tail.p90_ns.map(Ns))
            .column("p99", |k| k.tail.p99_ns.map(Ns))
            .column("p99.9", |k| k.tail.p999_ns.map(Ns))
            .column("max", |k| Ns(k.tail.max_ns));
        let t = own::beside(t, |k| (k.agent_ns, k.total_ns));
        s.table(t.titled("By kind, the most time first"));
    }

    fn differences(&self, s: &mut Section) {
        // The kind, which of its requests, how many of how many, and their averages.
        type Line<'a> = (&'a str, &'static str, Option<(u64, u64)>, Mean);
        let mut lines: Vec<Line<'_>> = Vec::new();
        for kind in &self.kinds {
            let (Some(slow), Some(middle)) = (kind.slowest, kind.around_median) else {
                continue;
            };
            let of_all = |some: &Mean| Some((some.requests, kind.requests));
            lines.push((&kind.kind, "slowest", of_all(&slow), slow));
            lines.push(("", "near median", of_all(&middle), middle));
            lines.push(("", "difference", None, slow.minus(middle)));
        }
        if lines.is_empty() {
            return;
        }
        let part = |of: fn(&Mean) -> f64| {
            move |line: &Line<'_>| Some(MeanNs(of(&line.3))).filter(|ns| ns.0 != 0.0)
        };
        let t = Table::first(3 * SHOWN, lines)
            .column("request", |l| Word(l.0))
            .column("which", |l| Word(l.1))
            .column("requests", |l| l.2.map(|(some, _)| N(some)))
            .column("of all", |l| l.2.map(|(some, all)| Share::of(some, all)))
            .column("length", |l| MeanNs(l.3.dur_ns))
            .notes("running", part(|m| m.running_ns))
            .notes("preempted", part(|m| m.preempted_ns))
            .notes("dispatch", part(|m| m.dispatch_ns))
            .notes("irqs", part(|m| m.interrupt_ns))
            .notes("timer", part(|m| m.timer_ns))
            .notes("device", part(|m| m.device_ns))
            .notes("outside", part(|m| m.outside_ns))
            .notes("unknown", part(|m| m.unknown_ns))
            .notes("elsewhere", part(|m| m.elsewhere_ns));
        let t = own::beside(t, |l| l.2.map_or_else(Default::default, |_| l.3.own()));
        s.table(t.titled(
            "What makes the slowest differ: averages of their critical paths (elsewhere: of these, in threads for which the one \
             waited that ended the request)",
        ));
    }

    fn causes(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.causes)
            .counted("causes")
            .when(self.kinds.len() > 1, |t| t.column("request", |c| Word(&c.request)))
            .column("thread", |c| Word(&c.thread))
            .column("what it did", |c| Word(&c.what))
            .column("in a wait for", |c| c.wait.as_deref().map(Word))
            .column("total", |c| Ns(c.total_ns))
            .column("share", |c| Share(c.total_ns, c.of_ns))
            .column("pieces", |c| N(c.pieces));
        s.table(t.titled(text!(
            "What the critical paths of the slowest {} of each kind are made of",
            N(SLOWEST as u64)
        )));
    }
}

fn of_kind(name: &Name, mut kind: Lengths) -> RequestsOfKind {
    let tail = Tail::of(&mut kind.lengths);
    RequestsOfKind {
        kind: name.to_string(),
        requests: kind.lengths.count(),
        total_ns: kind.total_ns,
        slowest_percent: kind.slow.map(|_| if tail.p99_ns.is_some() { 1 } else { 10 }),
        tail,
        slowest: kind.slow_sums.finish(),
        around_median: kind.middle_sums.finish(),
        agent_ns: kind.agent_ns,
    }
}
