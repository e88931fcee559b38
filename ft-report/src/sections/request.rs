//! One request whole: its critical path, piece by piece.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::Input;
use super::requests::says;
use crate::document::{Interval, N, Ns, Number, Section, Share, Table, Text, Word};
use crate::text;
use ft_analysis::{Mark, SLOWEST};
use ft_trace::store::Result;
use ft_trace::tables::{Decomposition, PathKind, PathPiece, Request};

/// Pieces that text shows one by one, the longest; runs of others share a line. JSON has all.
const SHOWN: usize = 40;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct RequestReport {
    /// Its number.
    pub request: i64,
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Name of the scope, or both events.
    pub kind: String,
    /// Its key.
    pub key: Option<i64>,
    /// Thread that began it; 0: an interrupt did.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Thread that ended it.
    pub end_tid: i32,
    /// Its name.
    pub end_comm: String,
    /// Where the time of its thread went, where it is one.
    pub parts: Option<Decomposition>,
    /// How sure that is.
    pub mark: Mark,
    /// How sure its path is.
    pub path_mark: Mark,
    /// Its path in the order of time; the pieces sum to its length. Empty where the table has none.
    pub path: Vec<Step>,
    /// Begin of the recording, CLOCK_MONOTONIC ns.
    #[serde(skip)]
    begin_ns: i64,
}

/// A piece of the path.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Waits through which it is on the path.
    pub depth: i32,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// What it did, or what was done to it.
    pub kind: PathKind,
    /// Who or what did that to it.
    pub culprit: Option<String>,
    /// Number of that thread, if it is one.
    pub culprit_tid: Option<i32>,
    /// What was waited for in the innermost wait around it.
    pub wait: Option<String>,
    /// Who waits in it.
    pub waiter_tid: Option<i32>,
    /// How sure it is.
    pub mark: Mark,
    /// In words.
    #[serde(skip)]
    what: String,
}

impl From<PathPiece> for Step {
    fn from(p: PathPiece) -> Step {
        let idle = p.culprit_tid == Some(0) && p.kind == PathKind::Dispatch;
        Step {
            ts: p.ts.0,
            dur_ns: p.dur,
            depth: p.depth,
            tid: p.tid.0,
            comm: p.comm.to_string(),
            kind: p.kind,
            what: says(p.kind, p.culprit.as_deref(), idle),
            culprit: p.culprit.map(|name| name.to_string()),
            culprit_tid: p.culprit_tid,
            wait: p.wait.map(|name| name.to_string()),
            waiter_tid: p.waiter_tid,
            mark: p.mark,
        }
    }
}

/// A line of the table: a piece, or several short ones.
struct Line<'a> {
    at: i64,
    dur_ns: i64,
    step: Option<&'a Step>,
    pieces: u64,
    mark: Mark,
}

impl RequestReport {
    /// The request of this number; `None` when the trace has none.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>, number: i64) -> Result<Option<RequestReport>> {
        Ok(RequestReport::read_those(input, &[number])?.pop())
    }

    /// Those of these numbers that the trace has, in their order.
    pub(super) fn read_those(input: Input<'_>, numbers: &[i64]) -> Result<Vec<RequestReport>> {
        let mut paths: HashMap<i64, Vec<Step>> = HashMap::new();
        input.rows(|p: PathPiece| {
            if numbers.contains(&p.request) {
                paths.entry(p.request).or_default().push(p.into());
            }
        })?;
        let mut found: Vec<RequestReport> = Vec::new();
        input.rows(|r: Request| {
            if numbers.contains(&r.request) {
                let path = paths.remove(&r.request).unwrap_or_default();
                found.push(RequestReport::of(input, r, path));
            }
        })?;
        found.sort_by_key(|report| numbers.iter().position(|number| *number == report.request));
        Ok(found)
    }

    fn of(input: Input<'_>, r: Request, mut path: Vec<Step>) -> RequestReport {
        path.sort_by_key(|step| step.ts);
        RequestReport {
            request: r.request,
            ts: r.ts.0,
            dur_ns: r.dur,
            kind: r.kind.to_string(),
            key: r.key,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            end_tid: r.end_tid.0,
            end_comm: r.end_comm.to_string(),
            parts: r.parts,
            mark: r.mark,
            path_mark: r.path_mark,
            path,
            begin_ns: input.trace.meta().start.start_ns,
        }
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("request", "one request, with its critical path");
        self.say(&mut s);
        s.with(self)
    }

    /// Says it in a section.
    pub(super) fn say(&self, s: &mut Section) {
        self.head(s);
        if self.path.is_empty() {
            s.say(text!(
                "Its path is not in the trace, which has those of requests that were among the {} slowest of their kind \
                 when they ended, and needs the kernel group `sched`: `report DIR requests` names the slowest.",
                N(SLOWEST as u64)
            ));
        } else {
            self.lines(s);
            if self.path_mark > Mark::Exact {
                s.say(
                    "A star (*) marks what is in part unknown: a record is missing of it, or of a wait around it.",
                );
            }
        }
    }

    fn head(&self, s: &mut Section) {
        let interval = Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.end_tid, lock: None };
        let key = self.key.map_or(Text::default(), |key| text!(" {}", Number(key)));
        let number = |tid: i32| Number(tid.into());
        let who = match self.tid == self.end_tid || self.tid == 0 {
            true => text!("{} ({})", Word(&self.end_comm), number(self.end_tid)),
            false => text!(
                "{} ({}), which began it, and {} ({}), which ended it",
                Word(&self.comm),
                number(self.tid),
                Word(&self.end_comm),
                number(self.end_tid)
            ),
        };
        s.say(text!(
            "Request {}, {}{}, took {}, {} after the start; by {}",
            Number(self.request),
            Word(&self.kind),
            key,
            interval,
            Ns(self.ts - self.begin_ns),
            who
        ));
        let of = |is: &dyn Fn(&Step) -> bool| -> i64 {
            self.path.iter().filter(|step| is(step)).map(|step| step.dur_ns).sum()
        };
        let kinds = PathKind::ALL.iter().map(|kind| (kind.word(), of(&|s| s.kind == *kind)));
        let kinds = kinds.filter(|(_, ns)| *ns > 0);
        let sums = Text::join(
            kinds.map(|(kind, ns)| text!("{} {}", Word(kind), Share(ns, self.dur_ns))),
            ", ",
        );
        if let Some(sums) = sums {
            let elsewhere = of(&|step| step.depth > 0);
            s.say(text!(
                "Its critical path: {}; {} of it in other threads that it waited for",
                sums,
                Share(elsewhere, self.dur_ns)
            ));
        }
    }

    fn lines(&self, s: &mut Section) {
        let mut by_length: Vec<usize> = (0..self.path.len()).collect();
        by_length.sort_by_key(|&i| std::cmp::Reverse(self.path[i].dur_ns));
        let long: HashSet<usize> = by_length.into_iter().take(SHOWN).collect();
        let mut lines: Vec<Line<'_>> = Vec::new();
        for (i, step) in self.path.iter().enumerate() {
            let (at, dur_ns, mark) = (step.ts - self.ts, step.dur_ns, step.mark);
            match lines.last_mut() {
                Some(line) if !long.contains(&i) && line.step.is_none() => {
                    line.dur_ns += dur_ns;
                    line.pieces += 1;
                    line.mark = line.mark.max(mark);
                }
                _ => {
                    let step = long.contains(&i).then_some(step);
                    lines.push(Line { at, dur_ns, step, pieces: 1, mark });
                }
            }
        }
        let what = |line: &Line<'_>| match line.step {
            Some(step) => step.what.clone(),
            None => "(shorter pieces)".to_owned(),
        };
        let who = |line: &Line<'_>| {
            let indented =
                |step: &Step| format!("{}{}", "> ".repeat(step.depth as usize), step.comm);
            line.step.map_or_else(String::new, indented)
        };
        let wait = |line: &Line<'_>| line.step.and_then(|step| step.wait.clone());
        let t = Table::of(lines)
            .marks(|line| line.mark)
            .column("from", |line| Ns(line.at))
            .column("length", |line| Ns(line.dur_ns))
            .column("thread", |line| who(line))
            .column("what it did", |line| what(line))
            .column("in a wait for", wait)
            .notes("pieces", |line| line.step.is_none().then_some(N(line.pieces)));
        s.table(
            t.titled("Its critical path, in the order of time (>: a thread that was waited for)"),
        );
    }
}
