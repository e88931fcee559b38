//! Aligned text tables, as wide as their contents or as the line that they must fit.

use std::fmt::{self, Write};

/// Columns of a report that is formatted without a width.
const WIDTH: usize = 100;

/// Columns that a report may fill: those that it is formatted with (`{:80}`), or 100.
pub fn width(f: &fmt::Formatter<'_>) -> usize {
    f.width().unwrap_or(WIDTH)
}

/// A column of texts is not made narrower than this, nor than its title in two lines.
const NARROWEST: usize = 6;

/// Which side of a column is straight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A table. Without a width it is as wide as its contents. Formatted with one (`{:100}`) that is too short for it, it writes
/// long titles in two lines; if that is not enough, it names the columns that are 0 in each row below itself
/// instead, and then cuts its texts to fit.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// There are more rows than these.
    is_part: bool,
}

impl Table {
    /// A table with these titles; one that begins with `<` heads a column of texts.
    pub fn new(titles: &[&str]) -> Self {
        let column = |t: &&str| match t.strip_prefix('<') {
            Some(title) => (title.to_owned(), Align::Left),
            None => ((*t).to_owned(), Align::Right),
        };
        Table { columns: titles.iter().map(column).collect(), rows: Vec::new(), is_part: false }
    }

    /// Says that rows were left out: what is said of each row is then said of those that are shown.
    pub fn leaves_out(&mut self) {
        self.is_part = true;
    }

    /// Appends a row, one cell for each title.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell)).collect());
    }
}

/// A text whose control characters show as `?`: names come from the traced program, and a terminal must not obey them.
pub fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// [`clean`], cut to `width` characters. What is cut shows as `…`, a third of the way in: names differ in their ends,
/// be it a number, a line or an offset. Call chains (`inner < outer`) keep their beginning.
pub fn cut(text: &str, width: usize) -> String {
    let text = clean(text);
    let excess = text.chars().count().saturating_sub(width);
    if excess == 0 {
        return text;
    }
    let head = width.saturating_sub(1) / if text.contains(" < ") { 1 } else { 3 };
    let tail = text.chars().skip(head + excess + 1);
    text.chars().take(head).chain(['…']).chain(tail).collect()
}

/// Writes `first` and then a text, in lines of at most `width` columns; those after the first are indented as far as the
/// text of the first.
pub fn paragraph(f: &mut fmt::Formatter<'_>, first: &str, text: &str) -> fmt::Result {
    let (width, indent) = (width(f), first.chars().count());
    write!(f, "{first}")?;
    let mut column = indent;
    // A unit stays with its number.
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.trim_end_matches([',', ';', ':', ')']) == "%" => {
                *number += &format!(" {word}");
            }
            _ => words.push(word.to_owned()),
        }
    }
    for word in words {
        let word = cut(&word, width.saturating_sub(indent));
        let long = word.chars().count();
        if column > indent && column + 1 + long > width {
            write!(f, "\n{:indent$}", "")?;
            column = indent;
        }
        if column > indent {
            write!(f, " ")?;
            column += 1;
        }
        write!(f, "{word}")?;
        column += long;
    }
    writeln!(f)
}

/// How titles are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Titles {
    OnOneLine,
    /// On two where the column is narrower.
    Wrapped,
}

impl Table {
    /// Characters of the longest cell of each column, its title among them.
    fn longest(&self, titles: Titles) -> Vec<usize> {
        let longest = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let title = |title: &str| match titles {
            Titles::OnOneLine => title.chars().count(),
            Titles::Wrapped => in_two_lines(title),
        };
        self.columns.iter().enumerate().map(|(i, c)| longest(i).max(title(&c.0))).collect()
    }

    /// The table without its columns of numbers that are 0 in each row, and the titles of these.
    fn without_zeros(&self) -> (Table, Vec<&str>) {
        let zero = |i: usize| self.rows.iter().all(|row| matches!(&*row[i], "0" | "0 %"));
        let numbers = |i: usize| self.columns[i].1 == Align::Right && !self.rows.is_empty();
        let (zeros, others): (Vec<usize>, Vec<usize>) =
            (0..self.columns.len()).partition(|&i| numbers(i) && zero(i));
        let of = |row: &Vec<String>| others.iter().map(|&i| row[i].clone()).collect();
        let columns = others.iter().map(|&i| self.columns[i].clone()).collect();
        let rows = self.rows.iter().map(of).collect();
        let table = Table { columns, rows, is_part: self.is_part };
        (table, zeros.iter().map(|&i| &*self.columns[i].0).collect())
    }

    /// Widths of the columns, so that a line fits `most` columns if that is possible.
    fn widths(&self, titles: Titles, most: Option<usize>) -> Vec<usize> {
        let mut widths = self.longest(titles);
        let least: Vec<usize> =
            self.columns.iter().map(|(title, _)| in_two_lines(title).max(NARROWEST)).collect();
        // A column without a title is a picture.
        let gives = |i: usize| self.columns[i].1 == Align::Left && !self.columns[i].0.is_empty();
        while most.is_some_and(|most| line(&widths) > most) {
            let can = (0..widths.len()).filter(|&i| gives(i) && widths[i] > least[i]);
            let Some(widest) = can.max_by_key(|&i| widths[i]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    /// The lines above the rows: each title in as many as it needs, at the bottom.
    fn heads(&self, widths: &[usize]) -> Vec<Vec<String>> {
        let titles = self.columns.iter().zip(widths);
        let titles: Vec<_> = titles.map(|((title, _), &width)| wrapped(title, width)).collect();
        let height = titles.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let at = |title: &Vec<String>, y: usize| {
            let above = height - title.len();
            y.checked_sub(above).map_or(String::new(), |y| title[y].clone())
        };
        (0..height).map(|y| titles.iter().map(|title| at(title, y)).collect()).collect()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, titles: Titles) -> fmt::Result {
        let widths = self.widths(titles, f.width());
        for line in self.heads(&widths).iter().chain(&self.rows) {
            let mut text = String::from("  ");
            for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(&self.columns) {
                let cell = match cell.chars().count() > *width {
                    true => &cut(cell, *width),
                    false => cell,
                };
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

/// Characters of the narrowest column in which this title takes no more than two lines.
fn in_two_lines(title: &str) -> usize {
    (0..)
        .find(|&width| {
            let lines = wrapped(title, width);
            lines.len() <= 2 && lines.iter().all(|line| line.chars().count() <= width)
        })
        .unwrap_or(0)
}

/// A title in lines of `width` characters, or of one word where that is longer.
fn wrapped(title: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in title.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Columns of a line whose cells are so wide.
fn line(widths: &[usize]) -> usize {
    widths.iter().map(|w| w + 2).sum()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |titles| f.width().is_none_or(|most| line(&self.longest(titles)) <= most);
        if let Some(titles) = [Titles::OnOneLine, Titles::Wrapped].into_iter().find(|&t| fits(t)) {
            return self.write(f, titles);
        }
        let (table, zeros) = self.without_zeros();
        table.write(f, Titles::Wrapped)?;
        match &zeros[..] {
            [] => Ok(()),
            zeros => {
                let shown = if self.is_part { " shown" } else { "" };
                paragraph(f, "  ", &format!("0 in each row{shown}: {}", zeros.join(", ")))
            }
        }
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
    fn texts_give_way_to_numbers_where_the_line_is_short() {
        let mut table = Table::new(&["<thread", "<acquired at", "wait"]);
        let place = "Interpreter::frobnicate() (libjvm.so+0xbe5a26)";
        table.row(["pool-1-thread-12".into(), place.into(), "1.23 ms".into()]);
        table.row(["main".into(), "a.rs:1".into(), "4 ns".into()]);
        let expected = [
            "  thread            acquired at             wait",
            "  pool-1-thread-12  Interp…so+0xbe5a26)  1.23 ms",
            "  main              a.rs:1                  4 ns",
        ];
        assert_eq!(format!("{table:48}").lines().collect::<Vec<_>>(), expected);
        assert!(format!("{table:100}").contains(place), "a wide line has room for all of it");
        assert!(table.to_string().contains(place));
        // Numbers and titles are not cut, whatever the width.
        assert!(format!("{table:5}").contains("1.23 ms"));
    }

    #[test]
    fn titles_give_way_to_texts_where_the_line_is_short() {
        let mut table = Table::new(&["<ran instead", "<", "delay of waiters", "max"]);
        table.row(["ft-preemptor", "#", "5.01 ms", "5 ms"].map(str::to_owned));
        let wide = "  ran instead      delay of waiters   max\n  ft-preemptor  #           5.01 ms  5 ms\n";
        assert_eq!(format!("{table:42}"), wide);
        let short = [
            "                   delay of",
            "  ran instead       waiters   max",
            "  ft-preemptor  #   5.01 ms  5 ms",
        ];
        assert_eq!(format!("{table:36}").lines().collect::<Vec<_>>(), short);
    }

    #[test]
    fn columns_of_zeros_give_way_to_texts_where_the_line_is_short() {
        let mut table = Table::new(&["<thread", "wait", "blocked", "irqs", "<"]);
        let mut row = |cells: [&str; 5]| table.row(cells.map(str::to_owned));
        row(["pool-1-thread-12", "1 ms", "0", "0 %", "0"]);
        row(["main", "0", "0", "0 %", "0"]);
        let short = [
            "  thread            wait",
            "  pool-1-thread-12  1 ms  0",
            "  main                 0  0",
            "  0 in each row: blocked, irqs",
        ];
        assert_eq!(format!("{table:30}").lines().collect::<Vec<_>>(), short);
        assert!(format!("{table:80}").contains("blocked  irqs\n"), "a wide line has room for them");
        // One that is not 0 stays, and a table without rows has all of its titles.
        table.row(["x", "1 ms", "2", "0 %", "-"].map(str::to_owned));
        assert!(format!("{table:30}").ends_with("0 in each row: irqs\n"), "{table:30}");
        table.leaves_out();
        assert!(format!("{table:30}").ends_with("0 in each row shown: irqs\n"), "{table:30}");
        assert_eq!(format!("{:5}", Table::new(&["<thread", "wait"])), "  thread  wait\n");
    }

    #[test]
    fn texts_are_cut_before_their_ends_and_cannot_command_the_terminal() {
        assert_eq!(cut("abcdefgh", 7), "ab…efgh");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("abcdef", 1), "…");
        assert_eq!(cut("a\x1b[2Jb", 10), "a?[2Jb");
        assert_eq!(cut("src/report/lib.rs:10", 12), "src…ib.rs:10");
        assert_eq!(cut("wait < lock < main", 12), "wait < lock…");
        assert_eq!(cut("wait < lock", 1), "…");
    }

    #[test]
    fn a_paragraph_is_indented_and_keeps_a_unit_with_its_number() {
        struct Text;
        impl fmt::Display for Text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                paragraph(f, "loss     ", "one two three 12.3 %, four")
            }
        }
        let expected = ["loss     one two", "         three", "         12.3 %,", "         four"];
        assert_eq!(format!("{Text:17}").lines().collect::<Vec<_>>(), expected);
        assert_eq!(Text.to_string(), "loss     one two three 12.3 %, four\n");
    }
}
