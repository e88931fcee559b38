//! The parts that one segment becomes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::convert::kernel::ForRows;
use crate::convert::ledger::PartLedger;
use crate::convert::{ConvertError, Result};
use crate::store::{Footer, PartWriter, Row, Unsynced};

/// Writes the parts of one segment.
pub(super) struct Output<'a> {
    pub(super) trace: &'a Path,
    pub(super) number: u32,
    pub(super) footer: Footer,
    /// Newest row of the parts before, by table.
    pub(super) newest: BTreeMap<String, i64>,
    /// Rows that begin earlier are left out.
    pub(super) from: i64,
    pub(super) tables: BTreeMap<String, PartLedger>,
    /// The parts that are written.
    pub(super) unsynced: Unsynced,
}

impl Output<'_> {
    /// Writes sorted rows, if there are any.
    pub(super) fn write<R: Row>(&mut self, rows: &[R]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut part = self.begin()?;
        rows.iter().try_for_each(|row| part.push(row))?;
        self.end(part)
    }

    pub(super) fn begin<R: Row>(&self) -> Result<UnfinishedPart<R>> {
        let newest_before = self.newest.get(R::TABLE).copied().unwrap_or(i64::MIN);
        Ok(UnfinishedPart {
            writer: PartWriter::create(self.trace, self.number, self.footer.clone())?,
            newest_before,
            ledger: PartLedger { newest: newest_before, ..PartLedger::default() },
        })
    }

    pub(super) fn end<R: Row>(&mut self, part: UnfinishedPart<R>) -> Result<()> {
        let UnfinishedPart { writer, mut ledger, .. } = part;
        ledger.file = writer.finish_unsynced(&mut self.unsynced)?;
        ledger.rows = ledger.file.rows;
        self.tables.insert(R::TABLE.to_owned(), ledger);
        Ok(())
    }
}

impl ForRows for Output<'_> {
    type Error = ConvertError;

    /// Sorts rows by their key, keeping the order of equals, and writes those of the window.
    fn rows<R: Row>(&mut self, rows: &mut Vec<R>) -> Result<()> {
        rows.sort_by_key(R::key);
        let first = rows.partition_point(|row| row.key() < self.from);
        self.write(&rows[first..])
    }
}

/// A part that is being written.
pub(super) struct UnfinishedPart<R: Row> {
    writer: PartWriter<R>,
    /// Newest row of the parts before.
    newest_before: i64,
    ledger: PartLedger,
}

impl<R: Row> UnfinishedPart<R> {
    /// Writes a row, the next in order, and notes whether it comes late.
    #[inline]
    pub(super) fn push(&mut self, row: &R) -> Result<()> {
        let key = row.key();
        let late_ns = self.newest_before.saturating_sub(key);
        if late_ns > 0 {
            self.ledger.late_rows += 1;
            self.ledger.late_max_ns = self.ledger.late_max_ns.max(late_ns);
        }
        self.ledger.newest = self.ledger.newest.max(key);
        Ok(self.writer.push(row)?)
    }
}
