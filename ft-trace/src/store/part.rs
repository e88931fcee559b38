//! One part of a table: a Parquet file.
//!
//! Encodings: times (`ts`, `dur`, `tsc`, `*_ns`) DELTA_BINARY_PACKED; other int64 columns too, unless
//! the first rows hold few different values (lock addresses do), then RLE_DICTIONARY; everything else
//! RLE_DICTIONARY with the fallback of the Parquet writer. Columns of names tell no least and greatest
//! value: in the order of time a row group has nearly all of them, and comparing costs a tenth of the
//! conversion. All pages zstd level 3. Row groups hold up to a million rows. The sorting column is the first.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use serde_json::json;

use super::error::{Result, StoreError, io_error};
use super::file;
use super::parts::{PartMeta, footer_crc32};
use super::schema::{Row, SCHEMA_VERSION};
use super::unsynced::Unsynced;
use crate::dir::Dir;

/// Rows of one Arrow batch.
const BATCH_ROWS: usize = 1 << 16;

/// Rows of one row group, at most.
const ROW_GROUP_ROWS: usize = 1_000_000;

/// Different values in the first batch up to which a dictionary pays.
const DICTIONARY_VALUES: usize = 1024;

/// Level of zstd.
const ZSTD: i32 = 3;

/// Facts that every part carries as key-values in its footer, as `feather_trace.` and the field's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footer {
    /// Host name.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id` at the recording.
    pub boot_id: String,
    /// TSC cycles per second.
    pub tsc_hz: f64,
    /// Largest error of the times in this part that lie between clock samples, ns; 0 where the kernel's own clock is the source.
    pub clock_bound_ns: i64,
    /// Events and records known to be lost in the time of this part.
    pub loss: u64,
}

impl Footer {
    fn key_values(&self) -> Vec<KeyValue> {
        [
            ("schema_version", SCHEMA_VERSION.to_string()),
            ("host", self.host.clone()),
            ("boot_id", self.boot_id.clone()),
            ("tsc_hz", self.tsc_hz.to_string()),
            ("clock_bound_ns", self.clock_bound_ns.to_string()),
            ("loss", self.loss.to_string()),
        ]
        .map(|(key, value)| KeyValue::new(format!("feather_trace.{key}"), value))
        .into()
    }
}

/// Path of a part.
pub fn part_path(trace: &Path, table: &str, part: u32) -> PathBuf {
    trace.join(table).join(part_name(part))
}

/// The file of a part.
pub(super) fn part_name(part: u32) -> String {
    format!("part-{part:05}.parquet")
}

/// Writes one part. Rows must come sorted by their key. Dropped without [`PartWriter::finish`], it
/// leaves only a `.tmp`.
pub struct PartWriter<R: Row> {
    file: PartFile,
    builder: R::Builder,
    /// Rows in `builder`.
    batch_rows: usize,
}

impl<R: Row> PartWriter<R> {
    /// Begins a part of the table in the trace directory `trace`; makes the table's directory.
    ///
    /// # Errors
    ///
    /// An I/O error when the directory cannot be made, [`StoreError::Refused`] when others can write to it.
    pub fn create(trace: &Path, part: u32, footer: Footer) -> Result<PartWriter<R>> {
        let table = trace.join(R::TABLE);
        let trace = file::open(trace)?;
        let dir = trace.ensure_dir(R::TABLE).map_err(io_error("create", &table))?;
        let mut part = PartWriter::create_in(dir, part, footer);
        part.file.trace = Some(trace);
        Ok(part)
    }

    /// Begins a part in this directory.
    pub(crate) fn create_in(dir: Dir, part: u32, footer: Footer) -> PartWriter<R> {
        let file = PartFile::new(dir, part, R::schema(), footer);
        PartWriter { file, builder: R::builder(), batch_rows: 0 }
    }

    /// Appends a row.
    ///
    /// # Errors
    ///
    /// When a full batch cannot be written.
    #[inline]
    pub fn push(&mut self, row: &R) -> Result<()> {
        row.push(&mut self.builder);
        self.batch_rows += 1;
        if self.batch_rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Writes what is left and gives the file its name, durably; returns the number of rows.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn finish(self) -> Result<u64> {
        let mut unsynced = Unsynced::default();
        let part = self.finish_unsynced(&mut unsynced)?;
        unsynced.sync_all()?;
        Ok(part.rows)
    }

    /// As [`PartWriter::finish`], durable when what it is added to is synced: before that, a crash of the machine may
    /// leave half of it under its name.
    ///
    /// # Errors
    ///
    /// As [`PartWriter::finish`].
    pub(crate) fn finish_unsynced(mut self, unsynced: &mut Unsynced) -> Result<PartMeta> {
        self.flush()?;
        self.file.finish(unsynced)
    }

    fn flush(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.batch_rows);
        self.file.write(R::finish(&mut self.builder, rows), rows)
    }
}

/// The file of a part, whatever its rows are.
struct PartFile {
    /// Of the table.
    dir: Dir,
    /// Where that has its name, which may be new.
    trace: Option<Dir>,
    part: u32,
    name: String,
    tmp: String,
    schema: SchemaRef,
    footer: Footer,
    rows: u64,
    writer: Option<ArrowWriter<File>>,
}

impl PartFile {
    fn new(dir: Dir, part: u32, schema: Schema, footer: Footer) -> PartFile {
        let name = part_name(part);
        let (tmp, schema) = (file::temporary(&name), Arc::new(for_pandas(schema)));
        PartFile { dir, trace: None, part, name, tmp, schema, footer, rows: 0, writer: None }
    }

    /// Where it is written, for messages.
    fn tmp_path(&self) -> PathBuf {
        self.dir.path().join(&self.tmp)
    }

    /// Appends so many rows.
    fn write(&mut self, arrays: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let tmp = self.tmp_path();
        let error = |source| StoreError::Write { path: tmp.clone(), source };
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let file = self.dir.replace_file(&self.tmp).map_err(io_error("create", &tmp))?;
                let properties = properties(&self.schema, &arrays, &self.footer);
                let writer = ArrowWriter::try_new(file, self.schema.clone(), Some(properties));
                none.insert(writer.map_err(error)?)
            }
        };
        self.rows += rows as u64;
        let batch = RecordBatch::try_new(self.schema.clone(), arrays)
            .expect("builders make what their schema says");
        writer.write(&batch).map_err(error)
    }

    fn finish(self, unsynced: &mut Unsynced) -> Result<PartMeta> {
        let tmp = self.tmp_path();
        let mut meta = PartMeta { part: self.part, rows: self.rows, ..PartMeta::default() };
        let Some(writer) = self.writer else { return Ok(meta) };
        let file = writer
            .into_inner()
            .map_err(|source| StoreError::Write { path: tmp.clone(), source })?;
        // Through its name, since what it is written by cannot read.
        let written = self.dir.open_file(&self.tmp).and_then(|file| {
            meta.bytes = file.metadata()?.len();
            footer_crc32(&file)
        });
        meta.footer_crc32 = written.map_err(io_error("read", &tmp))?.unwrap_or_default();
        self.dir.rename(&self.tmp, &self.name).map_err(io_error("rename", &tmp))?;
        unsynced.add(file, self.dir.path().join(&self.name), &self.dir)?;
        self.trace.iter().try_for_each(|trace| unsynced.add_dir(trace))?;
        Ok(meta)
    }
}

fn properties(schema: &SchemaRef, first: &[ArrayRef], footer: &Footer) -> WriterProperties {
    let sorting = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    let level = ZstdLevel::try_new(ZSTD).expect("the level is in range");
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("feather-trace ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(Some(vec![sorting]))
        .set_key_value_metadata(Some(footer.key_values()));
    for (field, array) in schema.fields().iter().zip(first) {
        if matches!(field.data_type(), DataType::Dictionary(..)) {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        if field.data_type() == &DataType::Int64 && (is_time(field.name()) || !is_repetitive(array))
        {
            let path = ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// Adds what pandas is to make of the columns, as pandas itself does (its developer guide, *Storing pandas DataFrame
/// objects in Apache Parquet format*). Left to itself it turns integers with nulls into floats, and identifiers
/// beyond 2^53 into others. It stands in the Arrow schema, the only one of a file's metadata that pyarrow looks at.
fn for_pandas(schema: Schema) -> Schema {
    let column = |field: &FieldRef| {
        let (plain, nullable) = match field.data_type() {
            DataType::Int64 => ("int64", "Int64"),
            DataType::Int32 => ("int32", "Int32"),
            _ => return None,
        };
        let name = field.name();
        field.is_nullable().then(|| {
            json!({
                "name": name, "field_name": name, "pandas_type": plain, "numpy_type": nullable,
                "metadata": null,
            })
        })
    };
    let columns: Vec<_> = schema.fields().iter().filter_map(column).collect();
    let pandas = json!({ "columns": columns, "index_columns": [], "column_indexes": [] });
    schema.with_metadata(HashMap::from([("pandas".into(), pandas.to_string())]))
}

fn is_time(column: &str) -> bool {
    matches!(column, "ts" | "tsc" | "dur") || column.ends_with("_ns")
}

fn is_repetitive(array: &ArrayRef) -> bool {
    let mut seen = HashSet::new();
    array.as_primitive::<Int64Type>().iter().flatten().all(|value| {
        seen.insert(value);
        seen.len() <= DICTIONARY_VALUES
    }) && (seen.len() * 4 <= array.len() || seen.is_empty())
}
