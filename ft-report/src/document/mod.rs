//! What a report says, before anyone decides how it looks.
//!
//! A [`Document`] is a head and sections; a [`Section`] is sentences, [`Table`]s and [`Figure`]s with typed values, and
//! the machine values that they were made from. [`render`](crate::render) turns it into text or JSON. Nothing here, and
//! nothing that makes a section, turns a number into characters.

mod figure;
#[cfg(test)]
mod keys;
mod table;
mod text;
mod value;

use std::fmt;

use crate::stats::Tail;
use crate::text;

pub use figure::{Data, Figure, Histogram, Step};
pub use table::{Builder, Column, MOST_ROWS, Row, Table};
pub use text::{Drawn, IntoText, Piece, See, Text};
pub use value::{
    Change, ExactNs, Id, Interval, Kind, Link, Lock, MeanNs, N, Ns, Number, Of, Place, Probability,
    Rate, Share, Thread, Typed, Value, Word,
};

/// A whole report.
#[derive(Debug)]
pub struct Document {
    /// From which times within the trace are counted: the begin of the recording, CLOCK_MONOTONIC ns.
    pub begin_ns: i64,
    /// Which trace it is about, and how far that can be believed.
    pub head: Section,
    /// The answers.
    pub sections: Vec<Section>,
}

impl Document {
    /// What must not be, in a sentence; the command that prints the document fails with it.
    pub fn fault(&self) -> Option<String> {
        self.sections.iter().find_map(|section| section.fault.as_ref()).map(ToString::to_string)
    }
}

/// The answer to one question.
pub struct Section {
    /// Its name on the command line and in JSON.
    pub name: &'static str,
    /// What it shows, in a line; empty where the contents speak for themselves.
    pub title: &'static str,
    /// What it says, in order.
    pub blocks: Vec<Block>,
    /// Every figure, with more rows and more digits than the blocks have.
    pub values: Box<dyn erased_serde::Serialize>,
    /// What must not be: a result that contradicts itself. The command that prints it fails.
    pub fault: Option<Text>,
}

impl Section {
    /// What text shows: all but what only a page has room for.
    pub fn brief(&self) -> impl Iterator<Item = &Block> {
        let for_a_page = |block: &&Block| matches!(block, Block::Figure(f) if f.for_a_page());
        self.blocks.iter().filter(move |block| !for_a_page(block))
    }
}

/// A piece of a section.
#[derive(Debug)]
pub enum Block {
    /// Sentences behind a label of the margin; without one they continue what the last label began.
    Paragraph {
        /// A word, or none.
        label: &'static str,
        /// The report that has all of it; the label is a link to that, where there can be one.
        report: Option<&'static str>,
        /// The sentences.
        text: Text,
    },
    /// What a reader must know before believing the rest.
    Warning(Text),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Figure),
}

impl Section {
    /// A section without contents.
    pub fn new(name: &'static str, title: &'static str) -> Section {
        Section { name, title, blocks: Vec::new(), values: Box::new(()), fault: None }
    }

    /// With these machine values.
    #[must_use]
    pub fn with(self, values: impl erased_serde::Serialize + 'static) -> Section {
        #[cfg(test)]
        assert_eq!(keys::fault(&values), None, "{}", self.name);
        Section { values: Box::new(values), ..self }
    }

    /// Adds sentences.
    pub fn say(&mut self, text: impl IntoText) {
        self.item("", text);
    }

    /// Adds sentences behind a label.
    pub fn item(&mut self, label: &'static str, text: impl IntoText) {
        self.blocks.push(Block::Paragraph { label, report: None, text: text.into_text() });
    }

    /// Adds sentences behind a label that sum up another report.
    pub fn answer(&mut self, label: &'static str, report: &'static str, text: impl IntoText) {
        let (report, text) = (Some(report), text.into_text());
        self.blocks.push(Block::Paragraph { label, report, text });
    }

    /// Adds a warning.
    pub fn warn(&mut self, text: impl IntoText) {
        self.blocks.push(Block::Warning(text.into_text()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Adds a figure.
    pub fn figure(&mut self, title: impl IntoText, data: Data) {
        self.blocks.push(Block::Figure(Figure { title: title.into_text(), data }));
    }

    /// Adds a figure of tails: name, count and percentiles of each that has enough samples for its 99 %, if any has.
    pub fn tails(
        &mut self,
        title: &str,
        of: (&'static str, Kind),
        tails: impl Iterator<Item = (Value, u64, Tail)>,
    ) {
        let tails: Vec<_> = tails.filter(|(_, _, tail)| tail.p99_ns.is_some()).collect();
        if !tails.is_empty() {
            self.figure(text!("{} (-: too few samples)", title), Data::Tails { of, tails });
        }
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Section");
        debug.field("name", &self.name).field("blocks", &self.blocks);
        debug.field("fault", &self.fault).finish_non_exhaustive()
    }
}
