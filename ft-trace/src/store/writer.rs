//! Writes a whole table, as analyses do.
//!
//! Rule: the parts are written into `DIR/<table>.tmp/`, which takes the place of `DIR/<table>` at
//! [`TableWriter::finish`]. So a table is whole, from before, or not there: the one of before is moved aside
//! as a whole, to `DIR/<table>.old.tmp/`, and never removed in place, where half of it would look like a table. A crash of the
//! machine keeps to that where the parts are synced first ([`TableWriter::seal`]).

use std::path::Path;

use super::error::{Result, io_error};
use super::file;
use super::part::{Footer, PartWriter};
use super::parts::PartMeta;
use super::schema::Row;
use super::unsynced::Unsynced;
use crate::dir::Dir;

/// Rows of one part: what a writer holds in memory, since rows come in the order in which they were
/// known (a critical section at its end) and are stored by their first column (its begin).
const PART_ROWS: usize = 1 << 18;

/// Writes a table. Dropped without [`TableWriter::finish`], it leaves nothing.
pub struct TableWriter<R: Row> {
    trace: Dir,
    /// Where the parts are written.
    aside: Dir,
    footer: Footer,
    part_rows: usize,
    rows: Vec<R>,
    parts: Vec<PartMeta>,
    unsynced: Unsynced,
}

impl<R: Row> TableWriter<R> {
    /// Begins the table in the trace directory `trace`. The table of before stays until the end. What a
    /// writer that was killed has left is removed.
    ///
    /// # Errors
    ///
    /// An I/O error, [`StoreError::Refused`](super::StoreError::Refused) when others can write to the trace.
    pub fn create(trace: &Path, footer: Footer) -> Result<TableWriter<R>> {
        let (trace, aside) = begin(trace, R::TABLE)?;
        Ok(TableWriter {
            trace,
            aside,
            footer,
            part_rows: PART_ROWS,
            rows: Vec::new(),
            parts: Vec::new(),
            unsynced: Unsynced::default(),
        })
    }

    /// Appends a row; the order is free, but the nearer to sorted, the less parts overlap.
    ///
    /// # Errors
    ///
    /// When a full part cannot be written.
    pub fn push(&mut self, row: R) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= self.part_rows { self.part() } else { Ok(()) }
    }

    /// Writes the last part, so that only names are left to be changed, and adds the parts to `unsynced`. Whoever
    /// replaces several tables seals them all and syncs that first: a full disk then replaces none.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn seal(&mut self, unsynced: &mut Unsynced) -> Result<()> {
        if self.parts.is_empty() || !self.rows.is_empty() {
            self.part()?;
        }
        unsynced.append(std::mem::take(&mut self.unsynced))
    }

    /// Puts the table in its place, durably; returns the number of rows.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        let mut parts = Unsynced::default();
        self.seal(&mut parts)?;
        let mut names = Unsynced::default();
        parts.sync_all()?;
        let parts = self.finish_unsynced(&mut names)?;
        names.sync_all()?;
        Ok(parts.iter().map(|part| part.rows).sum())
    }

    /// As [`TableWriter::finish`], and returns the parts; durable when `unsynced` is synced: before that, a crash of the machine may leave half
    /// of what was not sealed and synced.
    ///
    /// # Errors
    ///
    /// As [`TableWriter::finish`].
    pub fn finish_unsynced(mut self, unsynced: &mut Unsynced) -> Result<Vec<PartMeta>> {
        self.seal(unsynced)?;
        replace(&self.trace, R::TABLE)?;
        unsynced.add_dir(&self.trace)?;
        Ok(std::mem::take(&mut self.parts))
    }

    fn part(&mut self) -> Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        // By their places, which are sorted by the same code whatever the rows are.
        let mut order: Vec<(i64, usize)> = rows.iter().map(R::key).zip(0..).collect();
        order.sort_unstable();
        let number = self.parts.len() as u32;
        let mut part = PartWriter::create_in(self.aside.clone(), number, self.footer.clone());
        for (_, place) in order {
            part.push(&rows[place])?;
        }
        self.parts.push(part.finish_unsynced(&mut self.unsynced)?);
        rows.clear();
        self.rows = rows;
        Ok(())
    }
}

impl<R: Row> Drop for TableWriter<R> {
    fn drop(&mut self) {
        // After `finish` there is nothing; else the next writer removes what stays.
        let _ = self.trace.remove(&file::temporary(R::TABLE));
    }
}

/// The trace directory, and a new one for the parts.
fn begin(trace: &Path, table: &str) -> Result<(Dir, Dir)> {
    let tmp = file::temporary(table);
    let trace = file::open(trace)?;
    file::remove(&trace, &tmp)?;
    file::remove(&trace, &old(table))?;
    let aside = trace.make_dir(&tmp).map_err(io_error("create", &trace.path().join(&tmp)))?;
    Ok((trace, aside))
}

/// Puts the parts in the place of the table of before. File systems keep the order of changes to names.
fn replace(trace: &Dir, table: &str) -> Result<()> {
    let old = old(table);
    let path = trace.path().join(table);
    let fail = || io_error("rename", &path);
    match trace.rename(table, &old) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail()(e)),
        _ => trace.rename(&file::temporary(table), table).map_err(fail())?,
    }
    file::remove(trace, &old)
}

/// Where the table of before goes.
fn old(table: &str) -> String {
    file::temporary(&format!("{table}.old"))
}

#[cfg(test)]
mod tests;
