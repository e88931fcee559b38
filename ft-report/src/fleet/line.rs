//! A line about many intervals, and tables of such lines.

use ft_analysis::Mark;
use serde::Serialize;

use super::histogram::Histogram;
use crate::document::{N, Ns, Place, Section, Share, Table, Word};
use crate::stats::Marks;

/// Rows that text shows.
pub(super) const SHOWN: usize = 20;

/// Lengths of many intervals.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Lengths {
    #[serde(flatten)]
    pub(super) marks: Marks,
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
    p999_ns: Option<i64>,
    pub(super) max_ns: i64,
    pub(super) sum_ns: i64,
}

impl Lengths {
    pub(super) fn of(histogram: &Histogram) -> Lengths {
        Lengths {
            marks: histogram.marks,
            p50_ns: histogram.percentile(500),
            p99_ns: histogram.percentile(990),
            p999_ns: histogram.percentile(999),
            max_ns: histogram.max_ns(),
            sum_ns: i64::try_from(histogram.sum_ns).unwrap_or(i64::MAX),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.marks.counted()
    }

    pub(super) fn exact(&self) -> Share {
        Share::of(self.marks.exact, self.count().saturating_add(self.marks.censored))
    }
}

/// A line of a table over all traces.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) place: String,
    pub(super) hosts: usize,
    #[serde(flatten)]
    pub(super) lengths: Lengths,
    /// The trace with the longest, and the row of that in its table.
    pub(super) worst_trace: Option<String>,
    pub(super) worst_ts: Option<i64>,
    pub(super) worst_tid: Option<i32>,
}

/// Says what a star means, where there is one.
pub(super) fn legend(lines: &[Line], s: &mut Section) {
    if lines.iter().any(|line| line.lengths.marks.mark > Some(Mark::Exact)) {
        s.say(
            "A star (*) marks a row of which at least one interval is not exact, be it another than the longest; the row \
             of that in its own trace says how sure it is.",
        );
    }
}

/// How many of each there are, and how long.
pub(super) fn table(lines: &[Line], title: &str, what: &'static str) -> Table {
    Table::first(SHOWN, lines)
        .counted(what)
        .marks(|l| l.lengths.marks.mark.unwrap_or_default())
        .column(title, |l| Word(&l.name))
        .notes("place", |l| (!l.place.is_empty()).then_some(Place(&l.place)))
        .column("hosts", |l| N(l.hosts as u64))
        .column("n", |l| N(l.lengths.count()))
        .column("exact", |l| l.lengths.exact())
        .column("sum", |l| Ns(l.lengths.sum_ns))
        .column("p50", |l| l.lengths.p50_ns.map(Ns))
        .column("p99", |l| l.lengths.p99_ns.map(Ns))
        .column("p99.9", |l| l.lengths.p999_ns.map(Ns))
        .column("max", |l| Ns(l.lengths.max_ns))
        .titled("")
}
