//! Documents as text, as wide as they are asked for.

use std::fmt;

use ft_analysis::Mark;

use super::columns::{self, clean, cut, named, paragraph, width};
use super::number::{
    change, count, log_bar, more, ns, per_second, percent, probability, quantity, share,
    short_count,
};
use crate::document::{
    Block, Column, Data, Document, Figure, Interval, Kind, Link, Lock, Piece, Row, Section, See,
    Step, Table, Text, Value,
};

/// Columns of the labels in the margin.
const MARGIN: usize = 10;

/// Characters of a name within a sentence.
const NAME: usize = 40;

/// What a figure of all together is called.
pub(super) const ALL: Value =
    Value::Lock(Lock { name: String::new(), instances: 0, more: false, address: None });

/// Characters of the longest bar.
const BAR: usize = 32;

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = width(f);
        write!(f, "{:w$}", self.head)?;
        self.sections.iter().try_for_each(|section| write!(f, "{section:w$}"))
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headed = !self.title.is_empty();
        if headed {
            writeln!(f)?;
            paragraph(f, &format!("{}: ", self.name.to_uppercase()), self.title)?;
        }
        let mut drawn = false;
        for block in self.brief() {
            let sentences = matches!(block, Block::Paragraph { .. } | Block::Warning(_));
            if drawn && sentences {
                writeln!(f)?;
            }
            drawn = !sentences;
            match block {
                Block::Paragraph { label: "", text, .. } if headed => {
                    paragraph(f, "  ", &sentence(text))?;
                }
                Block::Paragraph { label, text, .. } => {
                    paragraph(f, &format!("{label:MARGIN$}"), &sentence(text))?;
                }
                Block::Warning(text) => paragraph(f, "warning: ", &sentence(text))?,
                Block::Table(t) => table(f, t)?,
                Block::Figure(figure) => draw(f, figure)?,
            }
        }
        Ok(())
    }
}

/// On one line.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(self))
    }
}

/// A sentence on one line. Names are in quotes, and a number is not parted from its unit.
pub(crate) fn sentence(text: &Text) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Words(words) => words.clone(),
        Piece::Drawn(how) => (*how).to_owned(),
        Piece::See(See(report, _)) => format!("`ft-agent {report}`"),
        Piece::Value(value) => phrase(value),
    };
    text.pieces().iter().map(piece).collect()
}

/// A value within a sentence.
pub(super) fn phrase(value: &Value) -> String {
    let quoted = |name: &str| format!("'{}'", cut(name, NAME));
    match value {
        Value::Missing => "unknown".into(),
        Value::Thread(thread) if thread.idle => "the idle task".into(),
        Value::Thread(thread) if thread.name.is_empty() => "an unknown thread".into(),
        Value::Thread(thread) => quoted(&thread.name),
        Value::Lock(lock) => quoted(&lock.name),
        Value::Duration(n) => ns(*n),
        Value::Interval(interval) => ns(interval.dur_ns as f64),
        Value::Count(n) => count(*n),
        other => cell(other),
    }
}

/// A value in a table: zero is short, and what is not known is a dash.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Missing => "-".into(),
        Value::Word(word) | Value::Link(Link { word, .. }) => clean(word),
        Value::Place(place) => clean(place.rsplit('/').next().unwrap_or(place)),
        Value::Thread(thread) if thread.idle => "(idle)".into(),
        Value::Thread(thread) if thread.name.is_empty() => "unknown".into(),
        Value::Thread(thread) => clean(&named(&thread.name)),
        Value::Lock(lock) if lock.name.is_empty() => "all".into(),
        Value::Lock(lock) if lock.instances > 1 => {
            let more = if lock.more { "+" } else { "" };
            format!("{} ×{}{more}", clean(&named(&lock.name)), short_count(lock.instances))
        }
        Value::Lock(lock) => {
            let address = lock.address.map_or(String::new(), |address| format!(" {address:#x}"));
            clean(&named(&lock.name)) + &address
        }
        Value::Duration(0.0) | Value::Interval(Interval { dur_ns: 0, .. }) => "0".into(),
        Value::Duration(n) => ns(*n),
        Value::Interval(interval) => ns(interval.dur_ns as f64),
        Value::Nanoseconds(n) if *n < 0 => format!("-{}", count(n.unsigned_abs())),
        Value::Nanoseconds(n) => count(n.unsigned_abs()),
        Value::Count(n) => short_count(*n),
        Value::Quantity(n, what) => quantity(*n, what),
        Value::Share(part, whole) => percent(*part, *whole),
        Value::Change(by) => change(*by),
        Value::Rate(n) => per_second(*n),
        Value::Probability(p) => probability(*p),
        Value::Number(n) => n.to_string(),
        Value::Mark(mark) => mark.word().into(),
    }
}

fn table(f: &mut fmt::Formatter<'_>, table: &Table) -> fmt::Result {
    let w = width(f);
    title(f, &table.title)?;
    let titles: Vec<String> = table.columns.iter().map(heading).collect();
    let mut t = columns::Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    let names = table.columns.iter().take_while(|c| is_text(c.kind) || c.kind == Kind::Number);
    t.named_by(names.count());
    let first_of = |kind| table.columns.iter().position(|column| column.kind == kind);
    let starred = first_of(Kind::Mark).is_none();
    let first = first_of(Kind::DurationNs).or_else(|| first_of(Kind::Count));
    for Row { cells, mark, .. } in table.brief() {
        let star = |i| if starred && *mark != Mark::Exact && Some(i) == first { "*" } else { "" };
        t.row(cells.iter().enumerate().map(|(i, value)| cell(value) + star(i)));
    }
    if table.omitted() > 0 {
        t.leaves_out();
    }
    write!(f, "{t:w$}")?;
    match (table.omitted(), table.what) {
        (0, _) | (_, "") => Ok(()),
        (n, what) => writeln!(f, "  … and {} (--json has all)", more(n, what)),
    }
}

/// Texts are straight at their left side, numbers at their right.
fn heading(column: &Column) -> String {
    let left = if is_text(column.kind) { "<" } else { "" };
    format!("{left}{}", column.title)
}

/// Whether values of this kind are texts.
fn is_text(kind: Kind) -> bool {
    match kind {
        Kind::Word | Kind::Thread | Kind::Lock | Kind::Place | Kind::Mark => true,
        Kind::DurationNs
        | Kind::Count
        | Kind::Share
        | Kind::Change
        | Kind::Rate
        | Kind::Probability
        | Kind::Number
        | Kind::Mixed => false,
    }
}

fn title(f: &mut fmt::Formatter<'_>, title: &Text) -> fmt::Result {
    writeln!(f)?;
    match &*sentence(title) {
        "" => Ok(()),
        title => paragraph(f, "", title),
    }
}

fn draw(f: &mut fmt::Formatter<'_>, figure: &Figure) -> fmt::Result {
    let w = width(f);
    title(f, &figure.title)?;
    let t = match &figure.data {
        Data::Bars { axis, counted, bars, .. } => {
            let mut t = columns::Table::new(&[axis, counted, "share", "<"]);
            let largest = bars.iter().map(|bar| bar.1).max().unwrap_or(0);
            let total = bars.iter().map(|bar| bar.1).sum();
            for (class, n) in bars {
                let bar = log_bar(*n, largest, BAR);
                t.row([count(*class), count(*n), share(*n, total), bar]);
            }
            t
        }
        Data::Cumulative { axis, counted, steps, .. } => {
            let mut t = columns::Table::new(&[axis, counted, "share", "cumulative", "share", "<"]);
            let rows = Step::rows(steps);
            let total = rows.iter().map(|step| step.count).sum();
            let largest = rows.iter().map(|step| step.count).max().unwrap_or(0);
            for (Step { to_ns, count: n, .. }, below) in Step::cumulative(rows) {
                let edge = to_ns.map_or("longer".into(), |edge| ns(edge as f64));
                let [of_all, so_far] = [n, below].map(|n| share(n, total));
                t.row([edge, count(n), of_all, count(below), so_far, log_bar(n, largest, BAR)]);
            }
            t
        }
        Data::Tails { of: (axis, kind), tails } => {
            let axis = heading(&Column { title: (*axis).into(), kind: *kind });
            let mut t =
                columns::Table::new(&[&axis, "n", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
            for (name, n, tail) in tails {
                let percentiles = [tail.p90_ns, tail.p99_ns, tail.p999_ns, tail.p9999_ns];
                let first = [cell(name), short_count(*n), ns(tail.p50_ns as f64)];
                let rest = percentiles.map(|p| p.map_or("-".into(), |p| ns(p as f64)));
                t.row(first.into_iter().chain(rest).chain([ns(tail.max_ns as f64)]));
            }
            t
        }
        // Only a page has room for these.
        Data::Histograms { .. }
        | Data::Stacks { .. }
        | Data::Matrix { .. }
        | Data::OverTime { .. }
        | Data::Flames { .. } => return Ok(()),
    };
    write!(f, "{t:w$}")
}
