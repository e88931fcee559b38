//! Tables with typed columns.

use std::collections::BTreeMap;

use ft_analysis::Mark;

use super::text::{IntoText, Text};
use super::value::{Id, Kind, Typed, Value};

/// Rows of a table that a page has room for.
///
/// Limit: a line below the table says how many rows are left out; JSON has all.
/// Shown by: `a_page_has_more_rows_than_text_and_says_what_it_leaves_out`.
pub const MOST_ROWS: usize = 300;

/// A table. Its columns know what they hold, its rows how far they can be believed.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows; empty for the only table of a section.
    pub title: Text,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, those that matter most first, and behind them one over all.
    pub rows: Vec<Row>,
    /// Rows that text has room for, not counting the one over all.
    pub shown: usize,
    /// Rows that there are, not counting the one over all: more than in `rows`, where a page has no room for them.
    /// The machine values of the section have them all.
    pub count: u64,
    /// What a row is about: a plural; empty where another table of the section says how many there are.
    pub what: &'static str,
    /// By what sentences refer to it ([`See`](super::See)); empty where none does.
    pub anchor: &'static str,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Title.
    pub title: String,
    /// What its values are.
    pub kind: Kind,
}

/// A row, a value for each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The values.
    pub cells: Vec<Value>,
    /// How far it can be believed; text puts a star behind the first duration of a row that is not exact.
    pub mark: Mark,
    /// It is about all the others together, and stands behind them.
    pub total: bool,
}

impl Table {
    /// Begins a table with a row for each of these items; columns follow.
    pub fn of<T>(items: impl IntoIterator<Item = T>) -> Builder<T> {
        let items: Vec<T> = items.into_iter().collect();
        Builder::new(usize::MAX, items.len() as u64, items)
    }

    /// Begins a table of these items, of which text shows the first few, and a page the first [`MOST_ROWS`].
    pub fn first<T>(shown: usize, items: impl IntoIterator<Item = T>) -> Builder<T> {
        let mut items = items.into_iter();
        let kept: Vec<T> = items.by_ref().take(MOST_ROWS.max(shown)).collect();
        let count = kept.len() + items.count();
        Builder::new(shown, count as u64, kept)
    }

    /// The rows that text shows.
    pub fn brief(&self) -> impl Iterator<Item = &Row> {
        let totals = self.rows.iter().filter(|row| row.total);
        self.rows.iter().filter(|row| !row.total).take(self.shown).chain(totals)
    }

    /// How many rows text leaves out.
    pub fn omitted(&self) -> u64 {
        self.count.saturating_sub(self.shown as u64)
    }

    /// How many rows are in no form but the machine values of the section.
    pub fn left_out(&self) -> u64 {
        let rows = self.rows.iter().filter(|row| !row.total).count();
        self.count.saturating_sub(rows as u64)
    }
}

/// A table under construction: each call adds a column, or says something about the rows.
#[derive(Debug)]
pub struct Builder<T> {
    items: Vec<T>,
    table: Table,
}

impl<T> Builder<T> {
    fn new(shown: usize, count: u64, items: Vec<T>) -> Builder<T> {
        let rows = vec![Row::default(); items.len()];
        let (title, columns) = (Text::default(), Vec::new());
        Builder { items, table: Table { title, columns, rows, shown, count, what: "", anchor: "" } }
    }

    /// How far each row can be believed, in a column.
    #[must_use]
    pub fn marked(self, of: impl Fn(&T) -> Mark) -> Self {
        self.marks(&of).column("mark", of)
    }

    /// A column, by what an item has in it.
    #[must_use]
    pub fn column<V: Typed>(self, title: &str, of: impl Fn(&T) -> V) -> Self {
        self.cells(title, V::KIND, &|item| of(item).value())
    }

    /// The same. There are hundreds of columns: what is common to all of a table's is compiled once.
    fn cells(mut self, title: &str, kind: Kind, of: &dyn Fn(&T) -> Value) -> Self {
        self.table.columns.push(Column { title: title.to_owned(), kind });
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.cells.push(of(item));
        }
        self
    }

    /// Further columns, if `they` are known.
    #[must_use]
    pub fn when(self, they: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if they { columns(self) } else { self }
    }

    /// Whether any item is so.
    pub fn any(&self, is_so: impl Fn(&T) -> bool) -> bool {
        self.items.iter().any(is_so)
    }

    /// A column that is there if any item has something in it.
    #[must_use]
    pub fn notes<V: Typed>(self, title: &str, of: impl Fn(&T) -> Option<V>) -> Self {
        let any = self.items.iter().any(|item| of(item).is_some());
        self.when(any, |t| t.column(title, of))
    }

    /// Numbers of processes, where the rows are of several: these may call a lock or a thread the same. 0 is none.
    #[must_use]
    pub fn processes(self, of: impl Fn(&T) -> i32) -> Self {
        let mut all = self.items.iter().map(&of).filter(|pid| *pid != 0);
        let first = all.next();
        let several = all.any(|pid| Some(pid) != first);
        self.when(several, |t| t.column("pid", |item| Some(Id(of(item))).filter(|id| id.0 != 0)))
    }

    /// Numbers of threads beside their names, where one name is that of several; by name and number of a row's thread.
    #[must_use]
    pub fn tids<'a>(self, title: &str, of: impl Fn(&T) -> Option<(&'a str, i32)>) -> Self {
        let mut threads = BTreeMap::new();
        let mut all = self.items.iter().filter_map(&of);
        let several = all.any(|(name, tid)| *threads.entry(name).or_insert(tid) != tid);
        self.when(several, |t| t.column(title, |item| of(item).map(|(_, tid)| Id(tid))))
    }

    /// How far each row can be believed.
    #[must_use]
    pub fn marks(mut self, of: impl Fn(&T) -> Mark) -> Self {
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.mark = of(item);
        }
        self
    }

    /// A row about all the others together, if there is one; before the columns.
    #[must_use]
    pub fn total(mut self, item: Option<T>) -> Self {
        if let Some(item) = item {
            self.items.push(item);
            self.table.rows.push(Row { total: true, ..Row::default() });
        }
        self
    }

    /// What a row is about, the plural of a noun: text says how many it leaves out.
    #[must_use]
    pub fn counted(mut self, what: &'static str) -> Self {
        self.table.what = what;
        self
    }

    /// Sentences refer to it by this.
    #[must_use]
    pub fn anchored(mut self, anchor: &'static str) -> Self {
        self.table.anchor = anchor;
        self
    }

    /// So many more of these (the plural of a noun) are left out.
    #[must_use]
    pub fn omitted(mut self, more: usize, what: &'static str) -> Self {
        self.table.shown = self.table.count as usize;
        self.table.count += more as u64;
        self.counted(what)
    }

    /// The table, with its title.
    pub fn titled(mut self, title: impl IntoText) -> Table {
        self.table.title = title.into_text();
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_numbers_where_names_do_not_do() {
        let tids = |all: &[(&'static str, i32)]| {
            let t = Table::of(all.to_vec())
                .tids("tid", |(name, tid)| (!name.is_empty()).then_some((*name, *tid)));
            t.titled("").rows.into_iter().map(|row| row.cells).collect::<Vec<_>>().concat()
        };
        assert_eq!(tids(&[("a", 1), ("b", 2), ("a", 1)]), vec![]);
        let some = [Value::Number(1), Value::Missing, Value::Number(3)];
        assert_eq!(tids(&[("a", 1), ("", 2), ("a", 3)]), some);
    }

    #[test]
    fn processes_have_a_column_where_there_are_several() {
        let pids = |all: &[i32]| {
            let t = Table::of(all.to_vec()).total(Some(0)).processes(|pid| *pid).titled("");
            let cells = t.rows.into_iter().map(|row| row.cells).collect::<Vec<_>>();
            (t.columns.len(), cells.concat())
        };
        assert_eq!(pids(&[7, 7]), (0, vec![]));
        assert_eq!(pids(&[7, 8]), (1, vec![Value::Number(7), Value::Number(8), Value::Missing]));
    }
}
