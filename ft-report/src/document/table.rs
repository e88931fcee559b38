//! Tables with typed columns.

use ft_analysis::Mark;

use super::text::{IntoText, Text};
use super::value::{Kind, Typed, Value};

/// A table. Its columns know what they hold, its rows how far they can be believed.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows; empty for the only table of a section.
    pub title: Text,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// How many rows of what are left out here; the machine values of the section have them.
    pub omitted: Option<(u64, &'static str)>,
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
#[derive(Clone, Debug, PartialEq)]
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
        let row = Row { cells: Vec::new(), mark: Mark::Exact, total: false };
        let rows = vec![row; items.len()];
        let table = Table { title: Text::default(), columns: Vec::new(), rows, omitted: None };
        Builder { items, table }
    }
}

/// A table under construction: each call adds a column, or says something about the rows.
#[derive(Debug)]
pub struct Builder<T> {
    items: Vec<T>,
    table: Table,
}

impl<T> Builder<T> {
    /// A column, by what an item has in it.
    #[must_use]
    pub fn column<V: Typed>(mut self, title: &str, of: impl Fn(&T) -> V) -> Self {
        self.table.columns.push(Column { title: title.to_owned(), kind: V::KIND });
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.cells.push(of(item).value());
        }
        self
    }

    /// Further columns, if `they` are known.
    #[must_use]
    pub fn when(self, they: bool, columns: impl FnOnce(Self) -> Self) -> Self {
        if they { columns(self) } else { self }
    }

    /// How far each row can be believed.
    #[must_use]
    pub fn marks(mut self, of: impl Fn(&T) -> Mark) -> Self {
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.mark = of(item);
        }
        self
    }

    /// Which rows are about all the others together.
    #[must_use]
    pub fn totals(mut self, of: impl Fn(&T) -> bool) -> Self {
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.total = of(item);
        }
        self
    }

    /// So many more of these (the plural of a noun) are left out.
    #[must_use]
    pub fn omitted(mut self, more: usize, what: &'static str) -> Self {
        self.table.omitted = (more > 0).then_some((more as u64, what));
        self
    }

    /// The table, with its title.
    pub fn titled(mut self, title: impl IntoText) -> Table {
        self.table.title = title.into_text();
        self.table
    }
}
