//! What tables there are, and what their columns mean: made of their declarations.

#[cfg(test)]
#[path = "../../../tests/common/accept.rs"]
mod accept;

use std::fmt::{self, Write};

use arrow_schema::{DataType, Field};
use serde::Serialize;

use super::about;
use super::reader::batches;
use super::records::Open;
use super::schema::Row;
use crate::tables::*;

/// Where the rows of a table come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Recorded events.
    Events,
    /// The recording as a whole.
    Trace,
    /// The analyses.
    Analyses,
    /// Whoever has brought traces to a catalogue; no trace has such a table.
    Catalogue,
}

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Its name, and that of its directory in a trace.
    pub name: &'static str,
    /// Where its rows come from.
    pub origin: Origin,
    /// What a row is.
    pub about: String,
    /// Its columns in their order; rows are sorted by the first.
    pub columns: Vec<Column>,
    /// Opens a part of it.
    #[serde(skip)]
    pub(super) open: Open,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type in words: `int64`, `int32`, `double`, `bool`, `text`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// It can be null.
    pub nullable: bool,
    /// What its numbers count, a word of [`Unit`].
    pub unit: Option<String>,
    /// What it means.
    pub meaning: String,
    /// The words that it can have, and what they mean; empty where there are others.
    pub words: Vec<(String, String)>,
}

impl Column {
    fn of(field: &Field) -> Column {
        let about = |key| field.metadata().get(key).cloned();
        let words = about(about::WORDS).unwrap_or_default();
        let words = words.lines().filter_map(|line| line.split_once(": "));
        Column {
            name: field.name().clone(),
            kind: match field.data_type() {
                DataType::Int64 => "int64",
                DataType::Int32 => "int32",
                DataType::Float64 => "double",
                DataType::Boolean => "bool",
                _ => "text",
            },
            nullable: field.is_nullable(),
            unit: about(about::UNIT),
            meaning: about(about::MEANING).unwrap_or_default(),
            words: words.map(|(word, meaning)| (word.into(), meaning.into())).collect(),
        }
    }
}

impl Table {
    /// Of the rows that are declared so.
    pub fn of<R: Row>(origin: Origin) -> Table {
        let about = about::plain(R::ABOUT);
        let prefix = format!("`{}`: ", R::TABLE);
        Table {
            name: R::TABLE,
            origin,
            about: capital(about.strip_prefix(&prefix).unwrap_or(&about)),
            columns: R::columns().iter().map(Column::of).collect(),
            open: batches::<R>,
        }
    }
}

impl fmt::Display for Table {
    /// What it is, and its columns: name, type (`?`: can be null), unit, meaning, and each word that it can have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.name, self.about)?;
        let name = self.columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
        for column in &self.columns {
            let kind = format!("{}{}", column.kind, if column.nullable { "?" } else { "" });
            let unit = column.unit.as_deref().unwrap_or("");
            writeln!(f, "{:name$}  {kind:7}  {unit:8}  {}", column.name, column.meaning)?;
            for (word, meaning) in &column.words {
                writeln!(f, "{:name$}  {:7}  {:8}    {word}: {meaning}", "", "", "")?;
            }
        }
        Ok(())
    }
}

/// The text with a capital letter at its beginning.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

macro_rules! of_events {
    (
        first { $($first:ident: $first_variant:ident($first_row:ident as $first_lean:ident),)* }
        kernel { $($field:ident: $variant:ident($row:ident as $lean:ident),)* }
        kernel_alone { $($alone:ident: $alone_variant:ident($alone_row:ident),)* }
        last { $($last:ident: $last_variant:ident($last_row:ident as $last_lean:ident),)* }
    ) => {
        fn of_events() -> Vec<Table> {
            vec![
                $(Table::of::<$last_row>(Origin::Events),)*
                $(Table::of::<$row>(Origin::Events),)*
                $(Table::of::<$alone_row>(Origin::Events),)*
                $(Table::of::<$first_row>(Origin::Events),)*
            ]
        }
    };
}

macro_rules! of_results {
    ($($name:ident: $row:ty,)*) => {
        fn of_results() -> Vec<Table> {
            vec![$(Table::of::<$row>(Origin::Analyses)),*]
        }
    };
}

crate::event_tables!(of_events);
crate::result_tables!(of_results);

/// All tables of a trace: of events, of the whole trace, of the analyses.
pub fn tables() -> Vec<Table> {
    let mut tables = of_events();
    tables.extend([
        Table::of::<ClockRow>(Origin::Trace),
        Table::of::<HostClockRow>(Origin::Trace),
        Table::of::<ThreadRow>(Origin::Trace),
        Table::of::<SiteRow>(Origin::Trace),
        Table::of::<NameRow>(Origin::Trace),
        Table::of::<SymbolRow>(Origin::Trace),
        Table::of::<StackRow>(Origin::Trace),
        Table::of::<FrameRow>(Origin::Trace),
        Table::of::<BinaryRow>(Origin::Trace),
    ]);
    tables.extend(of_results());
    tables
}

/// The page `TABLES.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Tables\n\nAll tables of a trace and their columns, made of their declarations (`ft-trace/src/tables/`); \
         `ft-agent tables` prints the same. Times are CLOCK_MONOTONIC; `?` marks columns that can be null.\n",
    );
    for (origin, title) in [
        (Origin::Events, "Recorded events"),
        (Origin::Trace, "The recording as a whole"),
        (Origin::Analyses, "Results of the analyses"),
    ] {
        let _ = writeln!(page, "\n## {title}");
        for table in tables().iter().filter(|table| table.origin == origin) {
            write_table(table, &mut page);
        }
    }
    page
}

fn write_table(table: &Table, page: &mut String) {
    let _ = writeln!(page, "\n### `{}`\n\n{}\n", table.name, table.about);
    page.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
    // The columns of one field say the same.
    let numbered = |column: &Column| column.name.ends_with(|c: char| c.is_ascii_digit());
    let same = |a: &Column, b: &Column| a.meaning == b.meaning && numbered(a) && numbered(b);
    for columns in table.columns.chunk_by(same) {
        let column = &columns[0];
        let null = if column.nullable { "?" } else { "" };
        let name = match columns {
            [one] => format!("`{}`", one.name),
            [first, .., last] => format!("`{}` … `{}`", first.name, last.name),
            [] => continue,
        };
        let unit = column.unit.as_deref().unwrap_or("");
        let mut meaning = column.meaning.clone();
        for (word, about) in &column.words {
            let _ = write!(meaning, "<br>`{word}`: {about}");
        }
        let meaning = meaning.replace('|', "\\|");
        let _ = writeln!(page, "| {name} | {}{null} | {unit} | {meaning} |", column.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_meaning_and_every_number_a_unit() {
        for table in tables() {
            assert!(!table.about.is_empty(), "{}", table.name);
            for column in &table.columns {
                let name = format!("{}.{}", table.name, column.name);
                assert!(!column.meaning.is_empty(), "{name} has no documentation");
                let number = matches!(column.kind, "int32" | "int64" | "double");
                assert_eq!(column.unit.is_some(), number, "{name}: {:?}", column.unit);
            }
        }
    }

    /// `FT_ACCEPT=1` writes the page.
    #[test]
    fn the_page_of_tables_is_that_of_the_declarations() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../TABLES.md");
        if accept::accepts() {
            std::fs::write(&path, page()).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page(), "TABLES.md is out of date; run the test again with FT_ACCEPT=1");
    }
}
