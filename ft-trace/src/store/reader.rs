//! Reads a trace.
//!
//! Parts of a table may overlap in time (see [`crate::stream`]). So [`Rows`] opens a part when its
//! first row is due, and merges those that are open: by the first column, and where that is equal, by
//! the number of the part. Memory: one batch for each open part, two or three in practice.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::error::{Result, StoreError, io_error};
use super::meta::Meta;
use super::name_column::NamePool;
use super::parts::{self, MAX_FOOTER_BYTES, Results, footer_bytes};
use super::schema::{Field, Row};
use crate::dir;
use crate::warning::Warning;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// A trace directory.
#[derive(Clone, Debug)]
pub struct Trace {
    dir: PathBuf,
    meta: Meta,
    /// Recorded parts that are not what was written, and those of results, when only the rest is asked for.
    left_out: BTreeSet<String>,
    results_left_out: BTreeSet<String>,
}

impl Trace {
    /// Opens a finished trace, all parts of which are those that were written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unfinished`] while it has a spool, [`StoreError::NotATrace`] without
    /// `meta.json`, [`StoreError::NotWhole`], and the errors of [`Meta::read`].
    pub fn open(dir: &Path) -> Result<Trace> {
        let trace = Trace::open_recorded(dir)?;
        let faults = trace.result_faults(|_| true);
        trace.without(&faults, false)
    }

    /// As [`Trace::open`], of which nobody wants the results: they may be in any state.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn open_recorded(dir: &Path) -> Result<Trace> {
        let trace = Trace::found(dir)?;
        let faults = trace.recorded_faults();
        trace.without(&faults, true)
    }

    /// As [`Trace::open`], of which this table of results alone is wanted: the others need not be there.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn open_table<R: Row>(dir: &Path) -> Result<Trace> {
        let trace = Trace::found(dir)?;
        let faults = trace.result_faults(|table| table == R::TABLE);
        trace.without(&faults, false)
    }

    /// Opens what is there of a trace: parts that are not what was written are left out, and stand among its warnings. Its
    /// counts are those of what is read.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`], but for parts.
    pub fn open_incomplete(dir: &Path) -> Result<Trace> {
        let mut trace = Trace::found(dir)?;
        let recorded = trace.recorded_faults();
        let results = trace.result_faults(|_| true);
        for fault in &recorded {
            let table = fault.file.split_once('/').map_or("", |(table, _)| table);
            if let Some(table) = trace.meta.tables.get_mut(table) {
                table.rows = table.rows.saturating_sub(fault.rows);
            }
        }
        if let Some(warning) = Warning::left_out(&recorded, &results) {
            trace.meta.warnings.insert(0, warning);
            trace.meta.complete = false;
        }
        let names =
            |faults: Vec<parts::Fault>| faults.into_iter().map(|fault| fault.file).collect();
        (trace.left_out, trace.results_left_out) = (names(recorded), names(results));
        Ok(trace)
    }

    fn found(dir: &Path) -> Result<Trace> {
        if dir.join("spool").exists() {
            return Err(StoreError::Unfinished(dir.to_owned()));
        }
        let meta = Meta::read(dir)?.ok_or_else(|| StoreError::NotATrace(dir.to_owned()))?;
        let (left_out, results_left_out) = Default::default();
        Ok(Trace { dir: dir.to_owned(), meta, left_out, results_left_out })
    }

    /// The trace, if there are no such faults, of what was recorded or of results.
    fn without(self, faults: &[parts::Fault], recorded: bool) -> Result<Trace> {
        match faults {
            [] => Ok(self),
            _ => Err(StoreError::not_whole(&self.dir, recorded, faults)),
        }
    }

    fn recorded_faults(&self) -> Vec<parts::Fault> {
        let tables = self.meta.tables.iter();
        tables.flat_map(|(name, table)| parts::faults(&self.dir, name, &table.files)).collect()
    }

    fn result_faults(&self, wanted: impl Fn(&str) -> bool) -> Vec<parts::Fault> {
        let results = Results::of(&self.dir);
        let tables = results.tables.iter().filter(|(name, _)| wanted(name));
        tables.flat_map(|(name, files)| parts::faults(&self.dir, name, files)).collect()
    }

    /// Recorded parts that are not read, as `TABLE/part-00000.parquet`.
    pub fn left_out(&self) -> &BTreeSet<String> {
        &self.left_out
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it says of itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether the table is there: those of analyses need not be.
    pub fn has<R: Row>(&self) -> bool {
        self.dir.join(R::TABLE).is_dir()
    }

    /// All rows of a table in the order of their first column. What is wrong with the table comes as
    /// an item.
    pub fn rows<R: Row>(&self) -> Rows<R> {
        // No key is `i64::MAX`: it would be a time in the year 2262 after the boot.
        self.rows_within(i64::MIN..i64::MAX)
    }

    /// The rows of a table whose first column lies in `keys`, in its order. Parts and row groups that the
    /// statistics rule out are not read.
    pub fn rows_within<R: Row>(&self, keys: Range<i64>) -> Rows<R> {
        match self.parts(R::TABLE, &keys) {
            Ok(waiting) => Rows { waiting, keys, ..Rows::default() },
            Err(error) => Rows { failed: Some(error), ..Rows::default() },
        }
    }

    /// The smallest and the largest value of a table's first column, by the statistics of its parts; `None` of no rows.
    ///
    /// # Errors
    ///
    /// As of [`Trace::rows`], for what is wrong with the table.
    pub fn keys<R: Row>(&self) -> Result<Option<(i64, i64)>> {
        let mut keys: Option<(i64, i64)> = None;
        for part in self.parts(R::TABLE, &(i64::MIN..i64::MAX))? {
            let builder = open(&part.path)?;
            for (min, max) in builder.metadata().row_groups().iter().filter_map(key_range) {
                keys =
                    Some(keys.map_or((min, max), |(least, most)| (least.min(min), most.max(max))));
            }
        }
        Ok(keys)
    }

    /// The parts of a table that may hold one of `keys`, by their first key. (By the table's name, as all here that does
    /// not touch rows: the compiler makes it once, and not for each of some eighty tables.)
    pub(super) fn parts(
        &self,
        table: &'static str,
        keys: &Range<i64>,
    ) -> Result<VecDeque<UnreadPart>> {
        let dir = self.dir.join(table);
        let missing = || StoreError::NoTable { trace: self.dir.clone(), table };
        // Of a table that is left out as a whole there are no rows, which the trace's warning says.
        let left_out = || self.left_out.iter().chain(&self.results_left_out);
        let is_left_out =
            || left_out().any(|file| file.split_once('/').is_some_and(|(of, _)| of == table));
        let mut paths = Vec::new();
        let entries = match fs::read_dir(&dir) {
            Err(_) if is_left_out() => return Ok(VecDeque::new()),
            entries => entries.map_err(|_| missing())?,
        };
        for entry in entries {
            let path = entry.map_err(io_error("read", &dir))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let file = format!("{table}/{name}");
            if name.ends_with(".parquet") && !left_out().any(|out| *out == file) {
                paths.push(path);
            }
        }
        if paths.is_empty() && !is_left_out() {
            return Err(missing());
        }
        // Numbers are padded, but may outgrow the padding.
        paths.sort_by(|a, b| (a.as_os_str().len(), a).cmp(&(b.as_os_str().len(), b)));
        let mut parts = Vec::new();
        for (number, path) in paths.into_iter().enumerate() {
            if let Some(first) = first_key(&path, keys)? {
                parts.push(UnreadPart { first, number, path });
            }
        }
        parts.sort_by_key(|part| (part.first, part.number));
        Ok(parts.into())
    }
}

/// The rows of one file that belongs to no trace. What is wrong with it comes as an item.
pub fn rows_of<R: Row>(path: &Path) -> Rows<R> {
    let part = UnreadPart { first: i64::MIN, number: 0, path: path.to_owned() };
    Rows { waiting: [part].into(), keys: i64::MIN..i64::MAX, ..Rows::default() }
}

/// How many rows a file has, and the bytes of their columns when they are unpacked: by its footer, before any of them is.
///
/// # Errors
///
/// When it cannot be read, or its footer is damaged.
pub fn sizes_of(path: &Path) -> Result<(u64, u64)> {
    let builder = open(path)?;
    let mut sizes = (0u64, 0u64);
    for group in builder.metadata().row_groups() {
        let number = |n: i64| u64::try_from(n).unwrap_or(u64::MAX);
        sizes.0 = sizes.0.saturating_add(number(group.num_rows()));
        sizes.1 = sizes.1.saturating_add(number(group.total_byte_size()));
    }
    Ok(sizes)
}

/// A part that is not open yet.
pub(super) struct UnreadPart {
    /// Smallest key of its row groups that are read, from the statistics of the footer.
    first: i64,
    number: usize,
    pub(super) path: PathBuf,
}

fn damaged(path: &Path) -> impl Fn(String) -> StoreError {
    move |reason| StoreError::Part { path: path.to_owned(), reason }
}

/// Smallest key of the row groups that may hold one of `keys`; `None` when no group does.
fn first_key(path: &Path, keys: &Range<i64>) -> Result<Option<i64>> {
    let builder = open(path)?;
    let mut first = None;
    for group in builder.metadata().row_groups().iter().filter(|g| g.num_rows() > 0) {
        let (min, max) = key_range(group)
            .ok_or_else(|| damaged(path)("no statistics of the first column".into()))?;
        if min < keys.end && keys.start <= max {
            first = Some(first.map_or(min, |f: i64| f.min(min)));
        }
    }
    Ok(first)
}

/// Most memory that a column of a row group may take, bytes: of those that we write the largest take some MB.
///
/// Limit: as `MAX_WHOLE_BYTES` of `dir.rs`.
const MAX_COLUMN_BYTES: i64 = 512 << 20;

/// Smallest and largest key of a row group.
fn key_range(group: &RowGroupMetaData) -> Option<(i64, i64)> {
    match group.columns().first()?.statistics()? {
        Statistics::Int64(s) => Some((*s.min_opt()?, *s.max_opt()?)),
        Statistics::Int32(s) => Some(((*s.min_opt()?).into(), (*s.max_opt()?).into())),
        _ => None,
    }
}

fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = dir::open_regular(path).map_err(io_error("open", path))?;
    if footer_bytes(&file).is_some_and(|bytes| bytes > MAX_FOOTER_BYTES) {
        return Err(damaged(path)("its footer is larger than any that we write".into()));
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let builder = builder.map_err(|e| damaged(path)(e.to_string()))?;
    let mut columns = builder.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
    let large = columns.find(|column| is_too_large(column.uncompressed_size())).map(|column| {
        let (path, bytes) = (column.column_path(), column.uncompressed_size());
        format!("a part of its column {path} takes {bytes} bytes of memory")
    });
    match large {
        Some(reason) => Err(damaged(path)(reason)),
        None => Ok(builder),
    }
}

/// Whether a column of a row group says that it takes more memory than any that we write.
fn is_too_large(bytes: i64) -> bool {
    !(0..=MAX_COLUMN_BYTES).contains(&bytes)
}

/// These columns of a part, of the row groups that may hold one of `keys`.
pub(super) fn batches<R: Row>(path: &Path, keys: &Range<i64>) -> Result<ParquetRecordBatchReader> {
    let (builder, columns) = (open(path)?, R::columns());
    // Before it is decoded: a name that stands in each row takes its length for each where it is no dictionary.
    let is_other = |column: &Field| {
        let found = builder.schema().field_with_name(column.name());
        found.is_ok_and(|found| found.data_type() != column.data_type())
    };
    if columns.iter().any(is_other) {
        return Err(others::<R>(path));
    }
    let groups = builder.metadata().row_groups().iter().enumerate().filter_map(|(i, group)| {
        let (min, max) = key_range(group)?;
        (min < keys.end && keys.start <= max).then_some(i)
    });
    let groups = groups.collect();
    let names = columns.iter().map(|c| c.name().as_str());
    let mask = ProjectionMask::columns(builder.parquet_schema(), names);
    builder
        .with_projection(mask)
        .with_row_groups(groups)
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|e| damaged(path)(e.to_string()))
}

/// The next batch of a part; `None` at its end.
pub(super) fn next_batch(
    reader: &mut ParquetRecordBatchReader,
    path: &Path,
) -> Result<Option<RecordBatch>> {
    reader.next().transpose().map_err(|e| damaged(path)(e.to_string()))
}

/// What is wrong with a part of another table.
fn others<R: Row>(path: &Path) -> StoreError {
    damaged(path)(format!("its columns are not those of `{}`", R::TABLE))
}

/// An open part.
struct Cursor<R: Row> {
    number: usize,
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    batch: Option<R::Reader>,
    /// Rows of the batch, and the next of them.
    rows: usize,
    row: usize,
    head: Option<R>,
}

impl<R: Row> Cursor<R> {
    fn open(part: UnreadPart, keys: &Range<i64>) -> Result<Cursor<R>> {
        let UnreadPart { number, path, .. } = part;
        let reader = batches::<R>(&path, keys)?;
        Ok(Cursor { number, path, reader, batch: None, rows: 0, row: 0, head: None })
    }

    /// Puts the next row into `head`; none at the end.
    fn advance(&mut self, names: &mut NamePool) -> Result<()> {
        while self.row == self.rows {
            let Some(batch) = next_batch(&mut self.reader, &self.path)? else {
                self.head = None;
                return Ok(());
            };
            // The columns of a projection come in the order of the file, which is that of the table.
            let bound = R::bind(&mut batch.columns().iter(), names);
            self.batch = Some(bound.ok_or_else(|| others::<R>(&self.path))?);
            (self.row, self.rows) = (0, batch.num_rows());
        }
        self.head = self.batch.as_ref().map(|batch| R::get(batch, self.row));
        self.row += 1;
        Ok(())
    }
}

/// Iterator over the rows of a table. After an error it ends.
pub struct Rows<R: Row> {
    /// Sorted by first key.
    waiting: VecDeque<UnreadPart>,
    active: Vec<Cursor<R>>,
    names: NamePool,
    keys: Range<i64>,
    failed: Option<StoreError>,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Rows {
            waiting: VecDeque::new(),
            active: Vec::new(),
            names: NamePool::default(),
            keys: 0..0,
            failed: None,
        }
    }
}

impl<R: Row> Rows<R> {
    /// The next row within the keys.
    fn take_within(&mut self) -> Result<Option<R>> {
        loop {
            match self.take()? {
                Some(row) if row.key() < self.keys.start => {}
                Some(row) if row.key() >= self.keys.end => return Ok(None),
                other => return Ok(other),
            }
        }
    }

    fn take(&mut self) -> Result<Option<R>> {
        loop {
            let due = self
                .active
                .iter()
                .enumerate()
                .filter_map(|(i, c)| Some((c.head.as_ref()?.key(), c.number, i)))
                .min();
            match (due, self.waiting.front()) {
                (None, None) => return Ok(None),
                (Some((key, ..)), Some(part)) if part.first <= key => self.open()?,
                (None, Some(_)) => self.open()?,
                (Some((_, _, i)), _) => {
                    let cursor = &mut self.active[i];
                    let row = cursor.head.take();
                    cursor.advance(&mut self.names)?;
                    if cursor.head.is_none() {
                        self.active.swap_remove(i);
                    }
                    return Ok(row);
                }
            }
        }
    }

    fn open(&mut self) -> Result<()> {
        if let Some(part) = self.waiting.pop_front() {
            let mut cursor = Cursor::open(part, &self.keys)?;
            cursor.advance(&mut self.names)?;
            self.active.push(cursor);
        }
        Ok(())
    }
}

impl<R: Row> Iterator for Rows<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        let result = match self.failed.take() {
            Some(error) => Err(error),
            None => self.take_within(),
        };
        if result.is_err() {
            *self = Rows::default();
        }
        result.transpose()
    }
}

#[cfg(test)]
mod tests;
