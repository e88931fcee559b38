//! Requests: how long they took, what the slowest have that the others have not, and what their critical paths are made
//! of.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use super::Source;
use crate::document::{Interval, MeanNs, N, Ns, Number, Of, Section, Share, Table, Thread, Word};
use crate::stats::{Distribution, EXACT, Groups, Key, Marks, OTHERS, Own, Tail, Top, own, parts};
use crate::text;
use ft_analysis::{Mark, RequestCounts, SLOWEST};
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{Decomposition, PathKind, PathPiece, Request};

/// Kinds of requests with a line of their own; further ones are in one of others.
const MAX_KINDS: usize = 1024;

/// Things that paths are made of with a line of their own.
const MAX_CAUSES: usize = 16_384;

/// Lines that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Slowest requests that are shown.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct RequestsReport {
    /// There is a kernel stream; without one there are no paths.
    pub kernel: bool,
    /// What was asked for, and what is in no statistic.
    pub counts: RequestCounts,
    /// How sure the lengths and parts of the others are.
    pub marks: Marks,
    /// How sure their paths are.
    pub path_marks: Marks,
    /// Each kind, the most time first.
    pub kinds: Vec<RequestsOfKind>,
    /// What the critical paths of the slowest are made of, the most time first.
    pub causes: Vec<Cause>,
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
}

/// Averages of requests: their lengths, and what their critical paths are made of, which sums to that.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Mean {
    /// Requests with a path.
    pub requests: u64,
    /// Their length, ns.
    pub dur_ns: f64,
    /// Threads on the path ran, ns.
    pub running_ns: f64,
    /// They were preempted.
    pub preempted_ns: f64,
    /// They had been woken, and waited for a CPU.
    pub dispatch_ns: f64,
    /// They were interrupted.
    pub interrupt_ns: f64,
    /// They slept until a timer woke them.
    pub timer_ns: f64,
    /// They slept until another interrupt woke them.
    pub device_ns: f64,
    /// They slept until a thread woke them that is not observed.
    pub outside_ns: f64,
    /// No record tells.
    pub unknown_ns: f64,
    /// Of all these, in other threads, for which the one waited that ended the request.
    pub elsewhere_ns: f64,
}

/// Something that critical paths are made of.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// Kind of the requests.
    pub request: String,
    /// What the thread did, or what was done to it.
    pub kind: String,
    /// Thread whose time it is.
    pub thread: String,
    /// Who or what did that to it.
    pub culprit: Option<String>,
    /// What was waited for meanwhile.
    pub wait: Option<String>,
    /// All such time, ns.
    pub total_ns: i64,
    /// Paths of this kind of requests in all, ns.
    pub of_ns: i64,
    /// Pieces.
    pub pieces: u64,
    /// In words.
    #[serde(skip)]
    what: String,
}

/// One of the slowest requests.
#[derive(Clone, Debug, Serialize)]
pub struct SlowRequest {
    /// Its number, for `--of`.
    pub request: i64,
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Name of the scope, or both events.
    pub kind: String,
    /// Its key.
    pub key: Option<i64>,
    /// Thread that ended it.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Where the time of its thread went, where it is one.
    pub parts: Option<Decomposition>,
    /// What of it threads of the agent had the CPU, ns.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Of its path, in other threads, ns.
    pub elsewhere_ns: Option<i64>,
    /// Of its path, unknown, ns.
    pub unknown_ns: Option<i64>,
    /// How sure it is, with its path.
    pub mark: Mark,
}

impl From<&Request> for SlowRequest {
    fn from(r: &Request) -> Self {
        SlowRequest {
            request: r.request,
            ts: r.ts.0,
            dur_ns: r.dur,
            kind: r.kind.to_string(),
            key: r.key,
            tid: r.end_tid.0,
            comm: r.end_comm.to_string(),
            parts: r.parts,
            agent_ns: Own(r.agent_ns),
            elsewhere_ns: r.path_elsewhere_ns,
            unknown_ns: r.path_unknown_ns,
            mark: r.mark.max(r.path_mark),
        }
    }
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
}

impl Mean {
    fn add(&mut self, r: &Request) {
        let Some(elsewhere) = r.path_elsewhere_ns else { return };
        self.requests += 1;
        self.dur_ns += r.dur as f64;
        self.elsewhere_ns += elsewhere as f64;
        for (sum, ns) in [
            (&mut self.running_ns, r.path_running_ns),
            (&mut self.preempted_ns, r.path_preempted_ns),
            (&mut self.dispatch_ns, r.path_dispatch_ns),
            (&mut self.interrupt_ns, r.path_interrupt_ns),
            (&mut self.timer_ns, r.path_timer_ns),
            (&mut self.device_ns, r.path_device_ns),
            (&mut self.outside_ns, r.path_outside_ns),
            (&mut self.unknown_ns, r.path_unknown_ns),
        ] {
            *sum += ns.unwrap_or(0) as f64;
        }
    }

    fn all_mut(&mut self) -> [&mut f64; 10] {
        [
            &mut self.dur_ns,
            &mut self.running_ns,
            &mut self.preempted_ns,
            &mut self.dispatch_ns,
            &mut self.interrupt_ns,
            &mut self.timer_ns,
            &mut self.device_ns,
            &mut self.outside_ns,
            &mut self.unknown_ns,
            &mut self.elsewhere_ns,
        ]
    }

    /// Averages, of sums.
    fn finish(mut self) -> Option<Mean> {
        let n = self.requests as f64;
        self.all_mut().into_iter().for_each(|sum| *sum /= n);
        (self.requests > 0).then_some(self)
    }

    fn minus(mut self, mut other: Mean) -> Mean {
        self.all_mut().into_iter().zip(other.all_mut()).for_each(|(mine, its)| *mine -= *its);
        self
    }
}

/// What pieces of paths have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    request: Name,
    kind: PathKind,
    comm: Name,
    culprit: Option<Name>,
    idle: bool,
    wait: Option<Name>,
}

impl Key for Same {
    fn others(&self) -> Same {
        let (request, kind) = (self.request.clone(), self.kind);
        Same { request, kind, comm: OTHERS.into(), culprit: None, idle: false, wait: None }
    }
}

/// What a piece of a path says, without its thread.
pub(super) fn says(kind: PathKind, culprit: Option<&str>, idle: bool) -> String {
    let by = |before: &str, none: &str| {
        culprit.map_or_else(|| none.to_owned(), |culprit| format!("{before}{culprit}"))
    };
    match kind {
        PathKind::Running => "ran".to_owned(),
        PathKind::Preempted => by("preempted by ", "preempted"),
        PathKind::Dispatch if idle => "woken, CPU idle".to_owned(),
        PathKind::Dispatch => by("woken, behind ", "woken, no CPU yet"),
        PathKind::Interrupt => by("interrupt ", "interrupted"),
        PathKind::Timer => by("slept until timer ", "slept until a timer"),
        PathKind::Device => by("slept until interrupt ", "slept until an interrupt"),
        PathKind::Outside => by("slept until woken by ", "slept until woken from outside"),
        PathKind::Unknown => by("unknown: ", "unknown"),
    }
}

impl RequestsReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(source: Source<'_>) -> Result<RequestsReport> {
        let mut kinds: Groups<MAX_KINDS, Name, Lengths> = Groups::default();
        let (mut marks, mut path_marks) = (Marks::default(), Marks::default());
        let mut slowest: Top<SlowRequest> = Top::default();
        source.rows(|r: Request| {
            marks.add(r.mark);
            path_marks.add_many(r.path_mark, u64::from(r.path_pieces.is_some()));
            let kind = kinds.entry(r.kind.clone());
            kind.lengths.add(r.dur);
            kind.total_ns = kind.total_ns.saturating_add(r.dur);
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
        source.rows(|r: Request| {
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
        source.rows(|p: PathPiece| {
            let Some(request) = numbers.get(&p.request) else { return };
            *paths.entry(request.clone()).or_default() += p.dur;
            let (comm, idle) = (p.comm, p.culprit_tid == Some(0));
            let culprit = p.culprit.filter(|_| !idle);
            let same =
                Same { request: request.clone(), kind: p.kind, comm, culprit, idle, wait: p.wait };
            let (ns, pieces) = causes.entry(same);
            (*ns, *pieces) = (*ns + p.dur, *pieces + 1);
        })?;
        let cause = |(same, (total_ns, pieces)): (Same, (i64, u64))| Cause {
            of_ns: paths.get(&same.request).copied().unwrap_or(0),
            request: same.request.to_string(),
            kind: same.kind.to_string(),
            thread: same.comm.to_string(),
            what: says(same.kind, same.culprit.as_deref(), same.idle),
            culprit: same.culprit.map(|name| name.to_string()),
            wait: same.wait.map(|name| name.to_string()),
            total_ns,
            pieces,
        };
        let rank = |c: &Cause| (Reverse(c.total_ns), c.request.clone(), c.what.clone());
        let mut kinds: Vec<_> =
            kinds.into_iter().map(|(name, kind)| of_kind(&name, kind)).collect();
        kinds.sort_by_cached_key(|k| (Reverse(k.total_ns), k.kind.clone()));
        Ok(RequestsReport {
            kernel: source.tally.kernel,
            counts: source.tally.requests.clone(),
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
        if !self.kinds.is_empty() {
            self.lengths(&mut s);
            if self.kernel {
                self.differences(&mut s);
                self.causes(&mut s);
            }
            self.slowest(&mut s);
            own::explain(&mut s, "");
            self.marks.legend(&mut s);
        }
        s.with(self)
    }

    fn coverage(&self, s: &mut Section) {
        if self.marks.any() {
            s.say(self.marks.line("request"));
        } else {
            s.say(
                "No request was recorded from its begin to its end: mark one with `ft_user::scope!`, or name the events that \
                 begin and end it (`--request BEGIN,END`, and `--key ARGUMENT` if it moves between threads).",
            );
        }
        if self.path_marks.any() && self.path_marks.mark > Mark::Exact {
            s.say(text!(
                "{} of {} is in part unknown, or goes through what records are missing of",
                Of(self.path_marks.lower_bounds, "critical path"),
                N(self.path_marks.exact + self.path_marks.disturbed + self.path_marks.lower_bounds)
            ));
        }
        let u = &self.counts.unpaired;
        if u.total() > 0 {
            s.say(text!("{} not counted", Of(u.total(), "request")).reasons(&[
                (u.end_only, "with no recorded begin"),
                (u.begin_only, "open at the end"),
                (u.open_at_loss, "open when events were lost"),
                (u.too_many, "more than can go on at once"),
            ]));
        }
        if self.counts.without_path > 0 {
            s.say(text!(
                "{} without a critical path: they overlap so much that all paths would have taken too long",
                Of(self.counts.without_path, "request")
            ));
        }
        if self.kinds.iter().any(|n| !n.tail.percentiles_exact) {
            s.say(text!(
                "Percentiles of more than {} requests are at most 0.1 % too high.",
                N(EXACT as u64)
            ));
        }
    }

    fn lengths(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.kinds)
            .counted("kinds of requests")
            .column("request", |k| Word(&k.kind))
            .column("requests", |k| N(k.requests))
            .column("total", |k| Ns(k.total_ns))
            .column("p50", |k| Ns(k.tail.p50_ns))
            .column("p90", |k| k.tail.p90_ns.map(Ns))
            .column("p99", |k| k.tail.p99_ns.map(Ns))
            .column("p99.9", |k| k.tail.p999_ns.map(Ns))
            .column("max", |k| Ns(k.tail.max_ns));
        s.table(t.titled("By kind, the most time first"));
    }

    fn differences(&self, s: &mut Section) {
        let mut lines: Vec<(&str, String, u64, Mean)> = Vec::new();
        for kind in &self.kinds {
            let (Some(slow), Some(middle), Some(percent)) =
                (kind.slowest, kind.around_median, kind.slowest_percent)
            else {
                continue;
            };
            lines.push((&kind.kind, format!("slowest {percent} %"), slow.requests, slow));
            lines.push(("", "near median".into(), middle.requests, middle));
            lines.push(("", "difference".into(), 0, slow.minus(middle)));
        }
        if lines.is_empty() {
            return;
        }
        let part = |of: fn(&Mean) -> f64| {
            move |line: &(&str, String, u64, Mean)| {
                Some(MeanNs(of(&line.3))).filter(|ns| ns.0 != 0.0)
            }
        };
        let t = Table::first(3 * SHOWN, lines)
            .column("request", |l| Word(l.0))
            .column("which", |l| l.1.clone())
            .column("requests", |l| Some(N(l.2)).filter(|n| n.0 > 0))
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
        s.table(t.titled(
            "What makes the slowest differ: averages of their critical paths (elsewhere: of these, in threads for which the one \
             waited that ended the request)",
        ));
    }

    fn causes(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.causes)
            .counted("things that paths are made of")
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

    fn slowest(&self, s: &mut Section) {
        let t = Table::of(&self.slowest)
            .marks(|r| r.mark)
            .column("number", |r| Number(r.request))
            .when(self.kinds.len() > 1, |t| t.column("request", |r| Word(&r.kind)))
            .notes("key", |r| r.key.map(Number))
            .column("ended by", |r| Thread::of(Some(r.tid), Some(&r.comm)))
            .column("length", |r| Interval { ts: r.ts, dur_ns: r.dur_ns, tid: r.tid, lock: None });
        let parts = self.slowest.iter().any(|r| r.parts.is_some());
        let t = t
            .when(parts, |t| parts::durations(t, |r: &&SlowRequest| r.parts))
            .column("elsewhere", |r| r.elsewhere_ns.map(Ns));
        s.table(
            own::beside(t, |r| (r.agent_ns, r.dur_ns))
                .titled("The slowest; `report DIR requests --of NUMBER` shows the path of one"),
        );
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
    }
}
