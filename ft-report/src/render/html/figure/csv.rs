//! The data of a figure as a file, in a link that holds it.

use std::fmt::{self, Write};

use crate::render::columns::clean;

/// Comma-separated values (RFC 4180).
pub(super) struct Csv {
    text: String,
    rows: usize,
}

impl Csv {
    /// With these columns: `…_ns` for durations in ns, `…_share` for parts of a whole.
    pub(super) fn new(columns: &[&str]) -> Csv {
        let mut csv = Csv { text: String::new(), rows: 0 };
        csv.line(columns.iter().map(|column| column.replace([' ', '-'], "_")));
        csv
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows += 1;
        self.line(cells);
    }

    /// How many rows there are, without the titles.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        for (i, cell) in cells.into_iter().enumerate() {
            if i > 0 {
                self.text.push(',');
            }
            match cell.contains([',', '"']) {
                true => write!(self.text, "\"{}\"", cell.replace('"', "\"\"")).expect("memory"),
                false => self.text += &cell,
            }
        }
        self.text.push('\n');
    }

    /// Writes a link to it, by which it is downloaded under a name.
    pub(super) fn link<W: Write>(&self, out: &mut W, name: &str) -> fmt::Result {
        write!(out, "<a class=csv download=\"{name}\" href=\"data:text/csv;charset=utf-8,")?;
        for byte in self.text.bytes() {
            match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b',' | b'_' | b'-' | b'.' => {
                    out.write_char(byte.into())?;
                }
                byte => write!(out, "%{byte:02X}")?,
            }
        }
        out.write_str("\">CSV</a>")
    }
}

/// A name: one line, and no formula for a spreadsheet that would compute one.
pub(super) fn name(name: &str) -> String {
    let name = clean(name);
    if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_field_whatever_is_in_it() {
        let mut csv = Csv::new(&["lock", "total ns"]);
        for hostile in ["a,b", "\"\n\"", "=1+1", "é</a>"] {
            csv.row([name(hostile), "1".into()]);
        }
        assert_eq!(csv.text, "lock,total_ns\n\"a,b\",1\n\"\"\"?\"\"\",1\n'=1+1,1\né</a>,1\n");
        assert_eq!(csv.rows(), 4);
        let mut link = String::new();
        csv.link(&mut link, "a.csv").unwrap();
        assert!(link.ends_with("%0A%C3%A9%3C%2Fa%3E,1%0A\">CSV</a>"), "{link}");
    }
}
