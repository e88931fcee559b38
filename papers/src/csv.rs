//! Tables of values as comma-separated text.

use std::fmt::{Display, Write};

/// A table that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Csv {
    text: String,
    columns: usize,
}

impl Csv {
    /// With these columns.
    pub(crate) fn new<const N: usize>(columns: [&str; N]) -> Csv {
        Csv { text: columns.join(",") + "\n", columns: N }
    }

    /// A row of as many values. They are numbers and words of ours: one with a comma is a mistake, and panics.
    pub(crate) fn row<const N: usize>(&mut self, values: [&dyn Display; N]) {
        for (n, value) in values.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{comma}{value}");
        }
        let row = self.text.rsplit('\n').next().unwrap_or_default();
        assert_eq!(row.split(',').count(), self.columns, "{row}");
        self.text.push('\n');
    }

    /// All of it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
