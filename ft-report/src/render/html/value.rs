//! Values and sentences as parts of a page.

use std::fmt::{self, Write};

use ft_analysis::Mark;

use super::escape::{Escaped, Name};
use crate::document::{Block, Document, Interval, Kind, Link, Piece, See, Text, Value};
use crate::render::columns::cut;
use crate::render::text;

/// Characters of a name that are shown; all of it shows when one points at it.
const NAME: usize = 60;

/// What intervals are linked by.
#[derive(Clone, Copy)]
pub(super) struct Links<'a> {
    /// What is in the page.
    pub(super) document: &'a Document,
    /// From which times are counted, CLOCK_MONOTONIC ns.
    pub(super) begin_ns: i64,
    /// The page has a timeline.
    pub(super) timeline: bool,
}

impl Links<'_> {
    /// A sentence.
    pub(super) fn sentence<W: Write>(self, out: &mut W, text: &Text) -> fmt::Result {
        text.pieces().iter().try_for_each(|piece| match piece {
            Piece::Words(said) => words(out, said),
            Piece::Drawn(_) => Ok(()),
            Piece::See(see) => self.see(out, *see),
            // A number is not parted from its unit.
            Piece::Value(value) => match sort_key(value) {
                Some(_) => self.show(out, value, &text::phrase(value), "\u{a0}"),
                None => self.show(out, value, &text::phrase(value), " "),
            },
        })
    }

    /// Where more is said.
    fn see<W: Write>(self, out: &mut W, See(report, table): See) -> fmt::Result {
        let Some(section) = self.document.sections.iter().find(|section| section.name == report)
        else {
            return write!(out, "<code>ft-agent {report}</code>");
        };
        let is_it = |block: &Block| matches!(block, Block::Table(t) if t.anchor == table);
        match !table.is_empty() && section.blocks.iter().any(is_it) {
            true => write!(out, "<a href=\"#{report}-{table}\">{report}</a>"),
            false => write!(out, "<a href=\"#{report}\">{report}</a>"),
        }
    }

    /// A value of a table: the same as in text, and names whole.
    pub(super) fn cell<W: Write>(self, out: &mut W, value: &Value) -> fmt::Result {
        self.show(out, value, &text::cell(value), " ")
    }

    /// A value that people read as `shown`, with this between a number and its unit.
    fn show<W: Write>(self, out: &mut W, value: &Value, shown: &str, space: &str) -> fmt::Result {
        let number = || Escaped(shown).to_string().replace(' ', space);
        match value {
            Value::Interval(interval) if self.timeline => {
                let href = self.place(*interval);
                write!(out, "<a class=at href=\"{href}\">{}</a>", number())
            }
            Value::Mark(mark) => mark_word(out, *mark),
            Value::Place(whole) => titled(out, shown, whole),
            Value::Link(Link { href, .. }) if !href.is_empty() => {
                write!(out, "<a href=\"{}\">{}</a>", Escaped(href), Name(shown))
            }
            Value::Word(_) | Value::Link(_) | Value::Thread(_) | Value::Lock(_) => {
                match shown.chars().count() > NAME {
                    true => titled(out, &cut(shown, NAME), shown),
                    false => write!(out, "{}", Name(shown)),
                }
            }
            _ => out.write_str(&number()),
        }
    }

    /// Where the timeline shows an interval; what it listens for.
    fn place(self, Interval { ts, dur_ns, tid, lock }: Interval) -> String {
        let from = ts.saturating_sub(self.begin_ns);
        let mut place = format!("#at={from}-{}&amp;tid={tid}", from.saturating_add(dur_ns));
        if let Some(lock) = lock {
            let _ = write!(place, "&amp;lock={lock:x}");
        }
        place
    }
}

/// Words, and commands between backticks.
pub(super) fn words<W: Write>(out: &mut W, words: &str) -> fmt::Result {
    let mut rest = words;
    while let Some((before, (command, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        write!(out, "{}<code>{}</code>", Escaped(before), Escaped(command))?;
        rest = after;
    }
    write!(out, "{}", Escaped(rest))
}

/// A name that is shown in part.
fn titled<W: Write>(out: &mut W, shown: &str, whole: &str) -> fmt::Result {
    match shown == whole {
        true => write!(out, "{}", Name(shown)),
        false => write!(out, "<bdi title=\"{}\">{}</bdi>", Escaped(whole), Escaped(shown)),
    }
}

/// A mark that explains itself.
pub(super) fn mark_word<W: Write>(out: &mut W, mark: Mark) -> fmt::Result {
    write!(out, "<abbr class=\"{}\" title=\"{}\">{mark}</abbr>", class(mark), meaning(mark))
}

/// Its name in the style sheet.
pub(super) fn class(mark: Mark) -> &'static str {
    match mark {
        Mark::Exact => "exact",
        Mark::Disturbed => "disturbed",
        Mark::LowerBound => "lower-bound",
        Mark::Censored => "censored",
    }
}

/// What it means.
pub(super) fn meaning(mark: Mark) -> &'static str {
    match mark {
        Mark::Exact => {
            "exact: no loss and no edge of the trace touches it; right within the clock’s bound"
        }
        Mark::Disturbed => {
            "disturbed: right, but a thread waited in it for room in the tracer’s ring; \
             without the tracer it would have been shorter"
        }
        Mark::LowerBound => {
            "lower bound: records are missing; its length is right, and each part is at least what is shown"
        }
        Mark::Censored => {
            "censored: its begin or its end is not in the trace; it is in no statistic of lengths"
        }
    }
}

/// What a cell is sorted by; `None` where that is what it shows.
pub(super) fn sort_key(value: &Value) -> Option<f64> {
    match value {
        Value::Duration(n) | Value::Change(n) | Value::Rate(n) | Value::Probability(n) => Some(*n),
        Value::Nanoseconds(n) | Value::Number(n) => Some(*n as f64),
        Value::Interval(interval) => Some(interval.dur_ns as f64),
        Value::Count(n) | Value::Quantity(n, _) => Some(*n as f64),
        Value::Share(_, ..=0) => None,
        Value::Share(part, whole) => Some(*part as f64 / *whole as f64),
        Value::Mark(mark) => Some(f64::from(*mark as u8)),
        Value::Missing
        | Value::Word(_)
        | Value::Link(_)
        | Value::Thread(_)
        | Value::Lock(_)
        | Value::Place(_) => None,
    }
}

/// How a column of this kind is sorted: by number or by text; not at all, where each row has another unit.
pub(super) fn order(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Mixed => None,
        Kind::Mark => Some("number"),
        kind if is_number(kind) => Some("number"),
        _ => Some("text"),
    }
}

/// Values of this kind are compared by their last digits, which stand one below the other.
pub(super) fn is_number(kind: Kind) -> bool {
    !matches!(kind, Kind::Word | Kind::Thread | Kind::Lock | Kind::Place | Kind::Mark)
}
