//! A comparison as a document.

use super::permute::{ALPHA, SEED};
use super::row::Row;
use super::subject::{Class, Quantity, Subject, ValueUnit};
use super::values::{HeadValues, Values};
use super::{Comparison, Run, Verdict};
use crate::document::{
    Block, Builder, Change, Document, MeanNs, N, Ns, Of, Rate, Section, Share, Table, Text, Typed,
    Value, Word,
};
use crate::stats::own;
use crate::text;
use ft_analysis::Mark;

/// Rows of a table; the machine values have all.
const SHOWN: usize = 20;

/// Rows that may be chance, and subjects that only one side has.
const SHOWN_OTHERS: usize = 10;

/// Recordings of one side that are listed by name.
const SHOWN_TRACES: usize = 4;

/// By how much the mean lengths of the two sides may differ before it is said, a part.
const SAME_LENGTH: f64 = 0.05;

impl Comparison {
    /// What it says.
    pub fn document(&self) -> Document {
        Document { begin_ns: 0, head: self.head(), sections: vec![self.section()] }
    }

    fn head(&self) -> Section {
        let mut s = Section::new("trace", "");
        for (label, runs) in ["A", "B"].into_iter().zip(&self.sides) {
            s.item(label, side(runs));
        }
        s.item("units", self.units());
        s.item("matched", self.matched_text());
        s.item("left out", self.left_out());
        self.warnings().into_iter().for_each(|warning| s.warn(warning));
        s.with(HeadValues::of(self))
    }

    /// What is compared, and how sure that makes it.
    fn units(&self) -> Text {
        let [a, b] = [0, 1].map(|side| (self.sides[side].len() * self.slices) as u64);
        let (labelings, all) = self.labelings;
        let of = match (self.slices, all) {
            (1, true) => text!("recordings, {} against {}", N(a), N(b)),
            (1, false) => text!("recordings, {} against {}", N(a), N(b)),
            _ => text!("slices of the recordings in time, {} against {}", N(a), N(b)),
        };
        let labelings = match all {
            true => text!("all {} ways", N(labelings as u64)),
            false => text!("{} ways, drawn with seed {},", N(labelings as u64), N(SEED)),
        };
        text!("{}; permutation test over {} to call so many of them A", of, labelings)
    }

    fn matched_text(&self) -> Text {
        let mut matched = text!("{} by name or place", Of(self.matched as u64, "subject"));
        let alone = self.unmatched.each_ref().map(Vec::len);
        for (label, n) in ["A", "B"].into_iter().zip(alone).filter(|(_, n)| *n > 0) {
            matched = text!("{}; {} only in {}", matched, N(n as u64), label);
        }
        if let Some((a, b)) = &self.program {
            matched = text!("{}; program {} of A is {} of B", matched, Word(a), Word(b));
        }
        if !self.moved.is_empty() {
            let places = self.moved.iter().take(SHOWN_TRACES);
            let places = places.map(|(a, b)| text!("{} as {}", Word(base(a)), Word(base(b))));
            let places = Text::join(places, ", ").unwrap_or_default();
            let n = Of(self.moved.len() as u64, "place");
            matched = text!("{}; {} by the order in the file ({})", matched, n, places);
        }
        matched
    }

    fn left_out(&self) -> Text {
        let total = |of: fn(&Run) -> u64| self.sides.iter().flatten().map(of).sum::<u64>();
        let rows = |class: fn(Class) -> bool| {
            let rows = self.rows.iter().filter(|row| row.subject.is_whole());
            let rows =
                rows.filter(|row| row.quantity == Quantity::Median && class(row.subject.class));
            rows.map(|row| row.left_out.iter().sum::<u64>()).sum::<u64>()
        };
        let reasons = [
            (total(|run| run.censored), "holds and waits without begin or end"),
            (rows(|class| class != Class::Dispatch), "intervals disturbed by the tracer"),
            (rows(|class| class == Class::Dispatch), "wake-ups across a loss"),
            (total(|run| run.nameless), "of locks without name and place"),
            (total(|run| run.no_room), "of subjects that did not fit"),
        ];
        let some = reasons.into_iter().filter(|(n, _)| *n > 0);
        let some = Text::join(some.map(|(n, what)| text!("{} {}", N(n), what)), ", ");
        some.unwrap_or_else(|| text!("nothing"))
    }

    /// What a reader must know before believing the rest.
    pub(super) fn warnings(&self) -> Vec<Text> {
        let mut warnings = Vec::new();
        let [a, b] = &self.sides;
        if self.slices > 1 {
            warnings.push(text!(
                "{} and {} are too few to tell a change of the program from what differs between any two runs of it: what \
                 is shown is how these recordings differ; record at least four of each, in turns, and compare those",
                Of(a.len() as u64, "recording"),
                N(b.len() as u64)
            ));
        }
        let runs = || self.sides.iter().flatten();
        let mut differ = |what: &str, of: &dyn Fn(&Run) -> String| {
            let mut found: Vec<String> = runs().map(of).collect();
            found.sort();
            found.dedup();
            if found.len() > 1 {
                let found: Vec<Text> = found.iter().map(|f| text!("{}", Word(f))).collect();
                let found = Text::join(found, " and ").unwrap_or_default();
                warnings.push(text!(
                    "the recordings are of different {}: {}; what that changes is part of every difference",
                    what,
                    found
                ));
            }
        };
        differ("hosts", &|run| run.host.0.clone());
        differ("kernels", &|run| run.kernel.clone());
        differ("kernel groups", &|run| match &*run.kernel_groups {
            [] => "none".into(),
            groups => groups.join(","),
        });
        let one_boot = runs().all(|run| run.host == a[0].host);
        let span = |runs: &[Run]| {
            let begins = runs.iter().map(|run| run.begin_ns);
            (begins.clone().min().unwrap_or(0), begins.max().unwrap_or(0))
        };
        let (of_a, of_b) = (span(a), span(b));
        if self.slices == 1 && one_boot && a.len().min(b.len()) > 1 {
            let first = match () {
                () if of_a.1 < of_b.0 => Some(("A", "B")),
                () if of_b.1 < of_a.0 => Some(("B", "A")),
                () => None,
            };
            if let Some((first, then)) = first {
                warnings.push(text!(
                    "all of {} was recorded before all of {}: what changed on the machine meanwhile is part of every \
                     difference; record them in turns",
                    first,
                    then
                ));
            }
        }
        let mean = |runs: &[Run]| {
            runs.iter().map(|run| run.length_ns as f64).sum::<f64>() / runs.len().max(1) as f64
        };
        let [length_a, length_b] = [mean(a), mean(b)];
        if (length_b / length_a - 1.0).abs() > SAME_LENGTH {
            warnings.push(text!(
                "recordings of A are {} long, those of B {}: sums grow with the length, rates do not",
                MeanNs(length_a),
                MeanNs(length_b)
            ));
        }
        for (label, runs) in ["A", "B"].into_iter().zip(&self.sides) {
            let lost = |of: fn(&Run) -> u64| runs.iter().map(of).sum::<u64>();
            let user = lost(|run| run.lost_user_events);
            let kernel = lost(|run| run.lost_kernel_records);
            if user + kernel > 0 {
                warnings.push(text!(
                    "{} lost {} and {}: sums and rates that these could change by more than a thousandth are not tested, \
                     and what was lost is in no other figure; larger buffers (--ring-size, --kernel-buffer) lose less",
                    label,
                    Of(user, "user event"),
                    Of(kernel, "kernel record")
                ));
            }
        }
        warnings
    }

    fn section(&self) -> Section {
        let mut s = Section::new("compare", "what differs between A and B");
        let tested = self.rows.iter().filter(|row| row.p.is_some()).count() as u64;
        let untested = self.rows.len() as u64 - tested;
        let differing: Vec<&Row> = self.differing().collect();
        let more = match untested {
            0 => text!(""),
            n => text!("; {} shown and not tested", Of(n, "row")),
        };
        let one_in = N((1.0 / ALPHA).round() as u64);
        s.say(text!(
            "{} tested, {} differ{}. Of comparisons of what does not differ, at most one in {} names any row; as surely, \
             all changes at once lie between `at least` and `at most`.",
            Of(tested, "row"),
            N(differing.len() as u64),
            more,
            one_in
        ));
        if tested > 0 {
            s.say(text!(
                "A and B are trimmed means over the {} of each side, which one that was disturbed hardly changes, of their \
                 logarithms where all are above 0: they need not be the means of all intervals.",
                if self.slices == 1 { "recordings" } else { "slices" }
            ));
        }
        if !self.outcomes.is_empty() {
            self.conditions(&mut s);
        }
        if !differing.is_empty() {
            let all = differing.len();
            let t = self.table(differing.into_iter().take(SHOWN), true);
            let t = t.omitted(all.saturating_sub(SHOWN), "rows");
            s.table(
                t.titled("What differs, the surest first: those whose least change is the largest"),
            );
        }
        let others: Vec<&Row> =
            self.rows.iter().filter(|row| !row.differs && row.p.is_some()).collect();
        if !others.is_empty() {
            let all = others.len();
            let t = self.table(others.into_iter().take(SHOWN_OTHERS), true);
            let t = t.omitted(all.saturating_sub(SHOWN_OTHERS), "rows");
            s.table(t.titled("What may be chance, the least likely first"));
        }
        let untested: Vec<&Row> =
            self.rows.iter().filter(|row| row.untested.is_some() && row.size() > 0.0).collect();
        if !untested.is_empty() {
            let all = untested.len();
            let t = self
                .table(untested.into_iter().take(SHOWN_OTHERS), false)
                .column("why", |row| Word(row.untested.map_or("", |why| why.word())));
            let t = t.omitted(all.saturating_sub(SHOWN_OTHERS), "rows");
            s.table(t.titled("Not tested, the largest change first"));
        }
        self.alone(&mut s);
        let tables = s.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        if tables.flat_map(|table| &table.rows).any(|row| row.mark != Mark::Exact) {
            s.say("A star (*) marks what contains lower bounds: records are missing in it, and its length is right.");
        }
        own::explain(&mut s, " The share is that of the side that has more of it.");
        s.with(Values::of(self))
    }

    fn conditions(&self, s: &mut Section) {
        let answers = self.outcomes.iter().flat_map(|outcome| {
            // The worst of many subjects stands for them.
            let judged =
                outcome.of.iter().take(if outcome.verdict == Verdict::Met { 3 } else { 1 });
            let judged: Vec<_> = judged.map(Some).collect();
            let judged = if judged.is_empty() { vec![None] } else { judged };
            judged.into_iter().map(move |judged| (outcome, judged))
        });
        let t = Table::of(answers)
            .column("fails if", |(outcome, _)| Word(&outcome.condition))
            .column("that is", |(outcome, _)| Word(outcome.verdict.word()))
            .column("of", |(_, judged)| judged.map(|j| j.label.clone()))
            .column("change", |(_, judged)| judged.and_then(|j| j.change).map(Change))
            .column("at least/most", |(_, judged)| judged.and_then(|j| j.bound).map(Change));
        let title = text!(
            "Conditions: met where the change is beyond the limit by more than chance makes of it"
        );
        s.table(t.titled(match self.slices {
            1 => title,
            _ => title.and(", in these recordings: further ones of one program may differ as much"),
        }));
    }

    /// A table of rows; with the ends of their intervals, where they were tested.
    fn table<'a>(&self, rows: impl Iterator<Item = &'a Row>, tested: bool) -> Builder<&'a Row> {
        let of = |row: &Row, side: usize| row.sides[side].map(|v| value(row.quantity, v));
        Table::of(rows)
            .marks(|row| row.mark)
            .column("what", |row| self.names.name(&row.subject))
            .column("quantity", |row| Word(row.quantity.word()))
            .column("A", |row| of(row, 0))
            .column("B", |row| of(row, 1))
            .column("change", |row| row.change.map(Change))
            .when(tested, |t| {
                t.column("at least", |row| row.interval.map(|ends| Change(ends[0])))
                    .column("at most", |row| row.interval.map(|ends| Change(ends[1])))
            })
            .notes(own::TITLE, |row| {
                let shares = row.recording.iter().filter_map(|r| r.own.beside(r.of_ns));
                // The larger one.
                shares
                    .max_by(|a, b| (a.0 as f64 / a.1 as f64).total_cmp(&(b.0 as f64 / b.1 as f64)))
            })
    }

    fn alone(&self, s: &mut Section) {
        let labels = ["A", "B"].into_iter().zip(&self.unmatched);
        let alone: Vec<(&str, &(Subject, u64))> =
            labels.flat_map(|(label, list)| list.iter().map(move |item| (label, item))).collect();
        if alone.is_empty() {
            return;
        }
        let more = alone.len().saturating_sub(SHOWN_OTHERS);
        let mut alone = alone;
        alone.sort_by_key(|(label, (subject, n))| (std::cmp::Reverse(*n), *label, subject.clone()));
        let t = Table::of(alone.into_iter().take(SHOWN_OTHERS))
            .column("only in", |(label, _)| Word(label))
            .column("what", |(_, (subject, _))| self.names.name(subject))
            .column("intervals", |(_, (subject, n))| {
                (subject.class != Class::Time).then_some(N(*n))
            });
        s.table(t.omitted(more, "subjects").titled("Not compared: what only one side has"));
    }
}

/// A side: how many recordings, how long, of how many events.
fn side(runs: &[Run]) -> Text {
    let n = runs.len() as u64;
    let mean = |of: fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / n.max(1) as f64;
    let names = runs.iter().take(SHOWN_TRACES).map(|run| text!("{}", Word(&run.trace)));
    let names = Text::join(names, ", ").unwrap_or_default();
    let names = match n.saturating_sub(SHOWN_TRACES as u64) {
        0 => names,
        more => text!("{}, and {} more", names, N(more)),
    };
    let length = Ns(mean(|run| run.length_ns as f64) as i64);
    let events = Of(mean(|run| run.events as f64).round() as u64, "event");
    match n {
        1 => text!("{} ({}, {})", names, length, events),
        _ => text!("{}, {} and {} each: {}", Of(n, "recording"), length, events, names),
    }
}

/// The file of a place without its directories.
fn base(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}

fn share(part: f64) -> Share {
    Share((part * 1e9).round() as i64, 1_000_000_000)
}

/// A value in the quantity's unit.
fn value(quantity: Quantity, value: f64) -> Value {
    match quantity.unit() {
        ValueUnit::Ns => MeanNs(value).value(),
        ValueUnit::Share => share(value).value(),
        ValueUnit::PerSecond => Rate(value).value(),
    }
}
