//! Aligned text tables, as wide as their contents or as the line that they must fit.

use std::borrow::Cow;
use std::fmt::{self, Write};

use ft_trace::legible::legible;

/// Columns of a report that is formatted without a width.
const WIDTH: usize = 100;

/// Columns that a report may fill: those that it is formatted with (`{:80}`), or 100.
pub fn width(f: &fmt::Formatter<'_>) -> usize {
    f.width().unwrap_or(WIDTH)
}

/// Characters that a text keeps, if it has so many: both ends of a name, and all words of the tables.
///
/// Limit: `…` stands for the middle; a wider terminal and JSON have all of it.
/// Shown by: `texts_give_way_to_numbers_where_the_line_is_short`.
const LEAST: usize = 16;

/// Lines that a text is written in where lines are short.
const LINES: usize = 3;

/// Which side of a column is straight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A table. Without a width it is as wide as its contents. Formatted with one (`{:100}`) that is too short for it, it takes
/// the first of these steps that does, and all before it:
///
/// 1. long titles are written in two lines;
/// 2. the columns that are 0 in each row are named below the table instead;
/// 3. texts are cut, down to 16 characters, and phrases to 32;
/// 4. texts are written in up to three lines instead, and the columns in several blocks below each other, each of which
///    begins with those that name the row.
///
/// Numbers and titles are never cut; where a line is too short for one, it is longer.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// There are more rows than these.
    is_part: bool,
    /// How many columns, from the left, name a row.
    names: usize,
}

impl Table {
    /// A table with these titles; one that begins with `<` heads a column of texts.
    pub fn new(titles: &[&str]) -> Self {
        let column = |t: &&str| match t.strip_prefix('<') {
            Some(title) => (title.to_owned(), Align::Left),
            None => ((*t).to_owned(), Align::Right),
        };
        Table {
            columns: titles.iter().map(column).collect(),
            rows: Vec::new(),
            is_part: false,
            names: 1,
        }
    }

    /// Says that so many columns, from the left, name a row: without this, the first one does.
    pub fn named_by(&mut self, columns: usize) {
        self.names = columns.max(1);
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

/// A text for people ([`legible`]): names come from the traced program, and a terminal must not obey them.
pub fn clean(text: &str) -> String {
    legible(text).into_owned()
}

/// Words of ours that stand where a thread or a lock has its name.
///
/// Not `all`, as a row of all threads is called: it comes first, and a thread of that name has its number beside it.
const WORDS: [&str; 3] = ["(idle)", "unknown", "each other"];

/// A name, in quotes if it would be taken for one of ours, or for none: a program can have any.
pub(crate) fn named(name: &str) -> Cow<'_, str> {
    let is_blank = !name.is_empty() && name.trim_matches(' ').is_empty();
    if is_blank || WORDS.contains(&name) { format!("'{name}'").into() } else { name.into() }
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

/// How texts are written that are longer than their column is wide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Cut,
    /// On several lines, as far as spaces allow it.
    Wrapped,
}

impl Table {
    /// Characters of the longest cell of each column, its title among them.
    fn longest(&self, titles: Titles) -> Vec<usize> {
        let longest = |i| self.cells(i).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let title = |title: &str| match titles {
            Titles::OnOneLine => title.chars().count(),
            Titles::Wrapped => in_lines(title, 2, usize::MAX),
        };
        self.columns.iter().enumerate().map(|(i, c)| longest(i).max(title(&c.0))).collect()
    }

    /// The narrowest that each column may be made: one of texts, in which nothing is lost that need not be.
    fn least(&self, texts: Texts, longest: &[usize]) -> Vec<usize> {
        let least = |cell: &String| match texts {
            // A phrase has words, which a cut would part.
            Texts::Cut if cell.contains(' ') => cell.chars().count().min(2 * LEAST),
            Texts::Cut => cell.chars().count().min(LEAST),
            Texts::Wrapped => in_lines(cell, LINES, LEAST),
        };
        let of = |(i, (title, align)): (usize, &(String, Align))| match align {
            // A column without a title is a picture.
            Align::Left if !title.is_empty() => {
                self.cells(i).map(least).max().unwrap_or(0).max(in_lines(title, 2, usize::MAX))
            }
            _ => longest[i],
        };
        self.columns.iter().enumerate().map(of).collect()
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &String> {
        self.rows.iter().filter_map(move |row| row.get(column))
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
        let names = others.iter().filter(|&&i| i < self.names).count();
        let table = Table { columns, rows, is_part: self.is_part, names };
        (table, zeros.iter().map(|&i| &*self.columns[i].0).collect())
    }

    /// Which columns stand next to each other in lines of `most` columns: in each block those that name its rows, as far
    /// as they leave half of the line to others, and then some of the others.
    fn blocks(&self, least: &[usize], most: usize) -> Vec<Vec<usize>> {
        let fits = |&i: &usize| i == 0 || line(&least[..=i]) <= most / 2;
        let names: Vec<usize> = (0..self.names).take_while(fits).collect();
        let filled = |most: usize| {
            let mut blocks = vec![names.clone()];
            for i in names.len()..least.len() {
                let block = blocks.last().expect("the first");
                let wide: usize = block.iter().chain([&i]).map(|&i| least[i] + 2).sum();
                if wide > most && block.len() > names.len() {
                    blocks.push(names.clone());
                }
                blocks.last_mut().expect("the first").push(i);
            }
            blocks
        };
        let blocks = filled(most);
        // No more of them than there must be, and as even as these can be.
        (0..most).map(filled).find(|even| even.len() == blocks.len()).unwrap_or(blocks)
    }

    /// The lines above the rows: each title in as many as it needs, at the bottom.
    fn heads(&self, block: &[usize], widths: &[usize]) -> Vec<Vec<String>> {
        let titles =
            block.iter().zip(widths).map(|(&i, &width)| wrapped(&self.columns[i].0, width));
        let titles: Vec<_> = titles.collect();
        let height = titles.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let at = |title: &Vec<String>, y: usize| {
            let above = height - title.len();
            y.checked_sub(above).map_or(String::new(), |y| title[y].clone())
        };
        (0..height).map(|y| titles.iter().map(|title| at(title, y)).collect()).collect()
    }

    /// The lines of a row: one, unless texts are wrapped.
    fn lines(row: &[String], block: &[usize], widths: &[usize], texts: Texts) -> Vec<Vec<String>> {
        let cells = block.iter().zip(widths).map(|(&i, &width)| match texts {
            Texts::Cut => vec![cut(&row[i], width)],
            Texts::Wrapped => {
                let lines = wrapped(&cut(&row[i], LINES * width), width);
                lines.iter().map(|line| cut(line, width)).collect()
            }
        });
        let cells: Vec<Vec<String>> = cells.collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let at = |cell: &Vec<String>, y: usize| cell.get(y).cloned().unwrap_or_default();
        (0..height).map(|y| cells.iter().map(|cell| at(cell, y)).collect()).collect()
    }

    /// Writes these columns.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        block: &[usize],
        widths: &[usize],
        texts: Texts,
    ) -> fmt::Result {
        let rows = self.rows.iter().flat_map(|row| Table::lines(row, block, widths, texts));
        for line in self.heads(block, widths).into_iter().chain(rows) {
            let mut text = String::from("  ");
            for ((cell, width), &i) in line.iter().zip(widths).zip(block) {
                match self.columns[i].1 {
                    Align::Left => write!(text, "{cell:<width$}  ")?,
                    Align::Right => write!(text, "{cell:>width$}  ")?,
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }

    /// Writes all columns in lines of `most` columns, if texts must give way for that.
    fn squeezed(&self, f: &mut fmt::Formatter<'_>, most: usize) -> fmt::Result {
        let longest = self.longest(Titles::Wrapped);
        let least = self.least(Texts::Cut, &longest);
        if line(&least) <= most {
            let all: Vec<usize> = (0..longest.len()).collect();
            return self.write(f, &all, &fitted(longest, &least, most), Texts::Cut);
        }
        let least = self.least(Texts::Wrapped, &longest);
        for (n, block) in self.blocks(&least, most).iter().enumerate() {
            if n > 0 {
                writeln!(f, "\n  The same rows, further columns:")?;
            }
            let of = |all: &[usize]| block.iter().map(|&i| all[i]).collect::<Vec<_>>();
            let widths = fitted(of(&longest), &of(&least), most);
            self.write(f, block, &widths, Texts::Wrapped)?;
        }
        Ok(())
    }
}

/// These widths, so that a line fits `most` columns if that is possible: the widest gives way first, none below its least.
fn fitted(mut widths: Vec<usize>, least: &[usize], most: usize) -> Vec<usize> {
    while line(&widths) > most {
        let can = (0..widths.len()).filter(|&i| widths[i] > least[i]);
        let Some(widest) = can.max_by_key(|&i| widths[i]) else { break };
        widths[widest] -= 1;
    }
    widths
}

/// Characters of the narrowest column in which this text takes no more than so many `lines`, or `most`.
fn in_lines(text: &str, lines: usize, most: usize) -> usize {
    let fits = |&width: &usize| {
        let parts = wrapped(text, width);
        parts.len() <= lines && parts.iter().all(|part| part.chars().count() <= width)
    };
    (0..most).find(fits).unwrap_or(most)
}

/// A text in lines of `width` characters, or of one word where that is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
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
        let all: Vec<usize> = (0..self.columns.len()).collect();
        for titles in [Titles::OnOneLine, Titles::Wrapped] {
            let widths = self.longest(titles);
            if f.width().is_none_or(|most| line(&widths) <= most) {
                return self.write(f, &all, &widths, Texts::Cut);
            }
        }
        let (table, zeros) = self.without_zeros();
        table.squeezed(f, width(f))?;
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
mod tests;
