//! What a fleet says.

use std::collections::BTreeMap;

use ft_analysis::Mark;
use serde::Serialize;

use super::effects::{self, Effect, holm};
use super::histogram::ERROR;
use super::line::{Lengths, Line, SHOWN, legend, table};
use super::outliers::{Outlier, outliers};
use super::{Fleet, Known, Subject};
use crate::document::{
    Change, Document, Link, N, Ns, Number, Of, Place, Probability, Section, Table, Word,
};
use crate::text;

/// Rows that JSON has.
///
/// Limit: those with the most time, or the most likely, are in it.
/// Shown by: no figure: which rows are listed.
const MOST_VALUES: usize = 10_000;

/// Traces that are named of those that could not be read.
const SHOWN_NOT_READ: usize = 3;

/// Values that are dealt out to hosts at once: each subject has one for each trace, and is summed for each host. That often 2,000 is
/// what the test costs.
///
/// Limit: with 1,000 traces of 250 hosts, the 419 subjects with the most time are tested for hosts that differ; the
/// section says how many are not.
/// Shown by: `of_too_many_subjects_those_with_the_most_time_are_tested_and_the_others_told`.
const MOST_DEALT: usize = 1 << 19;

/// Traces of a subject without which nothing is tested.
///
/// Limit: it is in no comparison, which nothing says, and in all other sections.
/// Shown by: not shown.
const LEAST_TRACES: usize = 3;

/// What is called a difference has at most this chance of being none, over all that is asked.
const ALPHA: f64 = 0.05;

/// A host that differs.
#[derive(Clone, Debug, Serialize)]
struct Differs {
    host: String,
    name: String,
    place: String,
    change: f64,
    p: f64,
    /// The worst mark of the subject's intervals, on all hosts.
    mark: Mark,
}

/// B against A.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    name: String,
    place: String,
    what: &'static str,
    hosts: usize,
    change: f64,
    interval: [f64; 2],
    between_hosts: f64,
    p: f64,
    differs: bool,
    /// The worst mark of the subject's intervals, on all hosts.
    mark: Mark,
}

/// What stands in the head.
#[derive(Serialize)]
struct HeadValues {
    traces: usize,
    hosts: usize,
    lost: u64,
    quantity: &'static str,
    percentile_error: f64,
    others: u64,
    #[serde(flatten)]
    lengths: Lengths,
    not_read: Vec<(String, String)>,
}

impl Fleet {
    /// What it says.
    pub fn document(&self) -> Document {
        let mut sections = vec![self.worst(), self.differing(MOST_DEALT)];
        sections.extend(self.question.by.as_ref().map(|by| self.grouped(by.title())));
        sections.extend(self.question.sides.is_some().then(|| self.compared()));
        Document { begin_ns: 0, head: self.head(), sections }
    }

    fn head(&self) -> Section {
        let mut s = Section::new("fleet", "");
        let lost = self.members.iter().map(|member| member.lost).fold(0, u64::saturating_add);
        let lengths = Lengths::of(&self.all);
        let quantity = self.question.quantity.word();
        s.item(
            "traces",
            text!(
                "{} of {}",
                Of(self.members.len() as u64, "trace"),
                Of(self.hosts.len() as u64, "host")
            ),
        );
        s.item("of", text!("{}; {} exact", lengths.marks.line(quantity), lengths.exact()));
        s.item("lost", text!("{} and records, in all traces", Of(lost, "event")));
        s.item(
            "error",
            "percentiles come from added histograms: at most 1/32 (3.1 %) too high, never too low. Counts, sums and the longest are those of the rows.",
        );
        if !self.not_read.is_empty() {
            let (n, names) = (self.not_read.len(), self.not_read.iter().take(SHOWN_NOT_READ));
            let names = names.map(|(path, why)| text!("{}: {}", Word(path), Word(why)));
            let names = crate::document::Text::join(names, "; ").unwrap_or_default();
            s.warn(text!("{} not in these figures ({}).", Of(n as u64, "trace"), names));
        }
        if self.others > 0 {
            s.warn(text!(
                "{} counted without a name, for there was no room for more names in their traces' histograms.",
                Of(self.others, "interval")
            ));
        }
        if self.cells_left_out > 0 {
            let n = Of(self.cells_left_out, "subject");
            s.warn(text!("{} of single traces are in no comparison: there are too many; ask of fewer traces.", n));
        }
        s.with(HeadValues {
            traces: self.members.len(),
            hosts: self.hosts.len(),
            lost,
            quantity,
            percentile_error: ERROR,
            others: self.others,
            lengths,
            not_read: self.not_read.clone(),
        })
    }

    fn line(&self, name: &str, place: &str, known: &Known) -> Line {
        let worst = known.worst;
        Line {
            name: name.to_owned(),
            place: place.to_owned(),
            hosts: known.hosts.len(),
            lengths: Lengths::of(&known.lengths),
            worst_trace: worst.map(|worst| self.members[worst.member].path.clone()),
            worst_ts: worst.map(|worst| worst.ts),
            worst_tid: worst.map(|worst| worst.tid),
        }
    }

    /// A line of each subject, those with the most time first.
    pub(super) fn lines(&self) -> Vec<Line> {
        let lines = self.subjects.iter();
        let mut lines: Vec<Line> =
            lines.map(|((name, place), known)| self.line(name, place, known)).collect();
        lines.sort_by(|a, b| {
            let time = b.lengths.sum_ns.cmp(&a.lengths.sum_ns);
            time.then_with(|| (&a.name, &a.place).cmp(&(&b.name, &b.place)))
        });
        lines
    }

    /// Those over all hosts with the most time.
    fn worst(&self) -> Section {
        let mut lines = self.lines();
        let mut s = Section::new("worst", "where the time of all hosts went, most first");
        s.table(table(&lines, "name", "subjects"));
        s.table(self.longest_of(&lines, "name", "subjects"));
        legend(&lines, &mut s);
        lines.truncate(MOST_VALUES);
        s.with(lines)
    }

    fn grouped(&self, title: &str) -> Section {
        let lines = self.by.iter();
        let lines: Vec<Line> = lines.map(|(value, known)| self.line(value, "", known)).collect();
        let mut s = Section::new("by", "the same intervals, by what was asked");
        s.table(table(&lines, title, "groups"));
        s.table(self.longest_of(&lines, title, "groups"));
        legend(&lines, &mut s);
        s.with(lines)
    }

    /// Where the longest of each is, with a link to it where its trace has a page.
    fn longest_of(&self, lines: &[Line], title: &str, what: &'static str) -> Table {
        Table::first(SHOWN, lines)
            .counted(what)
            .marks(|l| l.lengths.marks.mark.unwrap_or_default())
            .column(title, |l| Word(&l.name))
            .column("max", |l| Ns(l.lengths.max_ns))
            .column("ts", |l| l.worst_ts.map(Number))
            .column("tid", |l| l.worst_tid.map(|tid| Number(tid.into())))
            .column("in the trace", |l| self.place(l))
            .titled("The longest of each: a row of the quantity's own table, of that ts and tid")
    }

    /// The trace with the longest, and where its timeline shows that.
    fn place(&self, line: &Line) -> Option<Link> {
        let word = line.worst_trace.clone()?;
        let at = line.worst_ts.zip(line.worst_tid);
        let href = self.pages.get(&word).zip(at).map(|(page, (ts, tid))| {
            let from = ts.saturating_sub(page.begin_ns);
            let to = from.saturating_add(line.lengths.max_ns);
            format!("{}#at={from}-{to}&tid={tid}", page.href)
        });
        Some(Link { word, href: href.unwrap_or_default() })
    }

    /// How far the lengths of a subject can be believed.
    fn mark(&self, subject: &Subject) -> Mark {
        self.subjects.get(subject).and_then(|known| known.lengths.marks.mark).unwrap_or_default()
    }

    /// Values of each subject that enough traces have, a logarithm for each trace.
    fn values(&self, of: impl Fn(&super::Cell) -> Option<f64>) -> BTreeMap<&Subject, Vec<f64>> {
        let mut rows: BTreeMap<&Subject, Vec<f64>> = BTreeMap::new();
        for ((subject, member), cell) in &self.cells {
            let Some(value) = of(cell).filter(|value| *value > 0.0) else { continue };
            let row = rows.entry(subject).or_insert_with(|| vec![f64::NAN; self.members.len()]);
            row[*member] = value.ln();
        }
        rows.retain(|_, row| row.iter().filter(|value| !value.is_nan()).count() >= LEAST_TRACES);
        rows
    }

    /// Of so many values as are dealt out: those of the subjects with the most time.
    pub(super) fn differing(&self, most: usize) -> Section {
        let rows = self.values(|cell| Some(cell.mean_ns));
        let mut rows: Vec<(&Subject, Vec<f64>)> = rows.into_iter().collect();
        let time = |subject: &Subject| self.subjects.get(subject).map(|of| of.lengths.sum_ns);
        rows.sort_by_key(|(subject, _)| std::cmp::Reverse(time(subject)));
        let all = rows.len();
        rows.truncate(most / (self.members.len() + self.hosts.len()).max(1));
        let (subjects, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let found = outliers(&rows, &self.host_of, ALPHA);
        let lines: Vec<Differs> = found
            .iter()
            .take(MOST_VALUES)
            .map(|Outlier { subject, host, by, p }| Differs {
                host: self.hosts[*host].clone(),
                name: subjects[*subject].0.to_string(),
                place: subjects[*subject].1.to_string(),
                change: by.exp() - 1.0,
                p: *p,
                mark: self.mark(subjects[*subject]),
            })
            .collect();
        let mut s = Section::new("hosts", "hosts that differ from all others by more than chance");
        let tested = text!(
            "{} on {}",
            Of(rows.len() as u64, "subject"),
            Of(self.hosts.len() as u64, "host")
        );
        match lines.is_empty() {
            true => s.say(text!("None of {}.", tested)),
            false => s.table(
                Table::first(SHOWN, &lines)
                    .counted("differences")
                    .marks(|l| l.mark)
                    .column("host", |l| Word(&l.host))
                    .column("name", |l| Word(&l.name))
                    .column("place", |l| Place(&l.place))
                    .column("mean", |l| Change(l.change))
                    .column("p", |l| Probability(l.p))
                    .titled(text!("of {}", tested)),
            ),
        }
        if rows.len() < all {
            let left = Of((all - rows.len()) as u64, "subject");
            s.warn(text!(
                "{} with less time than these not tested: there are too many values to deal out; ask of fewer traces.",
                left
            ));
        }
        s.say(
            "Geometric means of traces, a host against all others; traces are dealt out to hosts anew 2,000 times, and p counts how often any host then differs as much in any subject: 5 % of fleets without a difference show one here.",
        );
        s.with(lines)
    }

    fn compared(&self) -> Section {
        let Some(sides) = &self.question.sides else { return Section::new("compared", "") };
        let side_of: Vec<Option<usize>> =
            self.members.iter().map(|member| sides.side(member)).collect();
        let means = self.values(|cell| Some(cell.mean_ns));
        let tails = self.values(|cell| cell.p99_ns.map(|ns| ns as f64));
        let mut found: Vec<(&Subject, &'static str, Effect)> = Vec::new();
        for (what, rows) in [("mean", means), ("p99", tails)] {
            for (subject, row) in rows {
                let mut hosts = vec![effects::Host::default(); self.hosts.len()];
                for (member, value) in row.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
                    if let Some(side) = side_of[member] {
                        hosts[self.host_of[member]].sides[side].push(*value);
                    }
                }
                found.extend(effects::effect(&hosts).map(|effect| (subject, what, effect)));
            }
        }
        let p = holm(&found.iter().map(|(_, _, effect)| effect.p).collect::<Vec<_>>());
        let mut lines: Vec<Compared> = found
            .iter()
            .zip(p)
            .map(|((subject, what, effect), p)| Compared {
                name: subject.0.to_string(),
                place: subject.1.to_string(),
                what,
                hosts: effect.hosts,
                change: effect.by.exp() - 1.0,
                interval: effect.interval.map(|end| end.exp() - 1.0),
                between_hosts: effect.between_hosts,
                p,
                differs: p <= ALPHA,
                mark: self.mark(subject),
            })
            .collect();
        lines.sort_by(|a, b| {
            a.p.total_cmp(&b.p)
                .then_with(|| (&a.name, &a.place, a.what).cmp(&(&b.name, &b.place, b.what)))
        });
        let mut s = Section::new("compared", "B against A, each host its own control");
        let [a, b] =
            [0, 1].map(|side| side_of.iter().filter(|of| **of == Some(side)).count() as u64);
        let word = |i: usize| Word(&sides.values[i]);
        s.say(text!(
            "A is {} {} ({}), B is {} ({}).",
            Word(&sides.label),
            word(0),
            Of(a, "trace"),
            word(1),
            Of(b, "trace")
        ));
        let has = |host, side| {
            let mut of = self.host_of.iter().zip(&side_of);
            of.any(|of| of == (&host, &Some(side)))
        };
        let both = (0..self.hosts.len()).filter(|host| has(*host, 0) && has(*host, 1)).count();
        match lines.is_empty() {
            true if both < 2 => s.say(text!(
                "Nothing can be compared: {} with traces of both sides, and it takes two; record both on each host.",
                Of(both as u64, "host")
            )),
            true => s.say("Nothing can be compared: no two hosts have the same subject on both sides."),
            false => s.table(
                Table::first(SHOWN, &lines)
                    .counted("comparisons")
                    .marks(|l| l.mark)
                    .column("name", |l| Word(&l.name))
                    .column("place", |l| Place(&l.place))
                    .column("of", |l| Word(l.what))
                    .column("hosts", |l| N(l.hosts as u64))
                    .column("change", |l| Change(l.change))
                    .column("from", |l| Change(l.interval[0]))
                    .column("to", |l| Change(l.interval[1]))
                    .column("p", |l| Probability(l.p))
                    .column("", |l| Word(if l.differs { "differs" } else { "may be chance" }))
                    .titled("B minus A"),
            ),
        }
        s.say(
            "Logarithms of each trace's mean and 99th percentile; random effects per host (variance between hosts: DerSimonian and Laird; 95 % interval of each row: Hartung and Knapp). p is adjusted for all rows (Holm).",
        );
        s.with(lines)
    }
}
