//! Aligned text tables, as wide as their contents.

use std::fmt::{self, Write};

/// Which side of a column is straight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table that fits 100 columns when its texts are cut to their widths.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles; one that begins with `<` heads a column of texts.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let column = |t: &&str| match t.strip_prefix('<') {
            Some(title) => (title.to_owned(), Align::Left),
            None => ((*t).to_owned(), Align::Right),
        };
        Table { columns: titles.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Appends a row, one cell for each title.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// Cuts a text to `width` characters; what is cut shows as `…`. Control characters show as `?`: names come
/// from the traced program, and a terminal must not obey them.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
    if text.chars().count() <= width {
        return clean.collect();
    }
    clean.take(width.saturating_sub(1)).chain(['…']).collect()
}

/// [`cut`] at the front, for paths: their ends tell them apart.
pub(crate) fn cut_front(text: &str, width: usize) -> String {
    let excess = text.chars().count().saturating_sub(width);
    if excess == 0 {
        return cut(text, width);
    }
    let end: String = text.chars().skip(excess + 1).collect();
    format!("…{}", cut(&end, width))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles: Vec<String> = self.columns.iter().map(|c| c.0.clone()).collect();
        let lines = || std::iter::once(&titles).chain(&self.rows);
        let width = |i| lines().filter_map(|l| l.get(i)).map(|c: &String| c.chars().count()).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|i| width(i).unwrap_or(0)).collect();
        for line in lines() {
            let mut text = String::from("  ");
            for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(&self.columns) {
                match align {
                    Align::Left => write!(text, "{cell:<width$}  ")?,
                    Align::Right => write!(text, "{cell:>width$}  ")?,
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["<name", "µs"]);
        table.row(["a".into(), "1".into()]);
        table.row(["läng…".into(), "100".into()]);
        assert_eq!(table.to_string(), "  name    µs\n  a        1\n  läng…  100\n");
    }

    #[test]
    fn texts_are_cut_and_cannot_command_the_terminal() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("a\x1b[2Jb", 10), "a?[2Jb");
        assert_eq!(cut_front("src/lib.rs:10", 8), "…b.rs:10");
        assert_eq!(cut_front("a.rs:1", 8), "a.rs:1");
    }
}
