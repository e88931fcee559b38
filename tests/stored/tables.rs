//! All tables of a trace, a line for each column: what changed is seen by table and column.
//!
//! Read with the Parquet reader alone, as any other program would: nothing here knows what a table means.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// One value of a column.
#[derive(Clone, Debug)]
enum Value {
    Null,
    Integer(i64),
    Float(f64),
    Bool(bool),
    Text(String),
}

impl Value {
    /// As a line that no other value has; of numbers, whatever their width, the number.
    fn render(&self) -> String {
        match self {
            Value::Null => "\n".into(),
            Value::Integer(n) => format!("{n}\n"),
            Value::Float(n) => format!("{n:?}\n"),
            Value::Bool(yes) => format!("{yes}\n"),
            Value::Text(text) => format!("{text:?}\n"),
        }
    }
}

/// A column, value by value.
#[derive(Default)]
struct Column {
    /// Arrow's name of the type.
    kind: String,
    nulls: u64,
    digest: Digest,
    /// Least, greatest, sum.
    integers: Option<(i64, i64, i128)>,
    floats: Option<(f64, f64, f64)>,
    /// How often which text or truth value.
    words: BTreeMap<String, u64>,
    different: BTreeSet<u64>,
}

/// Texts that a line names.
const NAMED: usize = 6;

/// Values of a column that are told apart, to see whether it has any.
const DIFFERENT: usize = 3;

impl Column {
    fn add(&mut self, value: &Value) {
        let line = value.render();
        self.digest.add(line.as_bytes());
        if self.different.len() < DIFFERENT {
            let mut own = Digest::default();
            own.add(line.as_bytes());
            self.different.insert(own.0);
        }
        match value {
            Value::Null => self.nulls += 1,
            &Value::Integer(n) => {
                let (least, greatest, sum) = self.integers.unwrap_or((n, n, 0));
                self.integers = Some((least.min(n), greatest.max(n), sum + i128::from(n)));
            }
            &Value::Float(n) => {
                let (least, greatest, sum) = self.floats.unwrap_or((n, n, 0.0));
                self.floats = Some((least.min(n), greatest.max(n), sum + n));
            }
            Value::Bool(word) => *self.words.entry(word.to_string()).or_default() += 1,
            Value::Text(word) => *self.words.entry(word.clone()).or_default() += 1,
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{}, {} nulls, {}", self.kind, self.nulls, self.digest.hex());
        let numbers =
            self.integers.map(|(least, greatest, sum)| format!("{least} to {greatest}, sum {sum}"));
        let floats = self
            .floats
            .map(|(least, greatest, sum)| format!("{least:?} to {greatest:?}, sum {sum:?}"));
        numbers.into_iter().chain(floats).for_each(|numbers| line += &format!(", {numbers}"));
        if !self.words.is_empty() {
            let mut words: Vec<(&String, &u64)> = self.words.iter().collect();
            words.sort_by_key(|&(_, times)| std::cmp::Reverse(times));
            let named = words.iter().take(NAMED).map(|(word, times)| format!("{word:?} {times}"));
            let rest = if words.len() > NAMED { ", …" } else { "" };
            line += &format!(
                ", {} different: {}{rest}",
                words.len(),
                named.collect::<Vec<_>>().join(", ")
            );
        }
        line
    }
}

/// FNV-1a of 64 bits (draft-eastlake-fnv): short, and the same for ever.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// Digest of a text.
pub(crate) fn digest(text: &str) -> String {
    let mut digest = Digest::default();
    digest.add(text.as_bytes());
    digest.hex()
}

/// A table: its rows in the order of its parts, as they are stored.
#[derive(Default)]
struct Table {
    rows: u64,
    parts: u64,
    columns: Vec<(String, Column)>,
}

impl Table {
    fn read(dir: &Path) -> Table {
        let mut table = Table::default();
        for part in sorted(dir) {
            table.parts += 1;
            let file = File::open(&part).expect("a part");
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
            for batch in reader.build().expect("a reader") {
                let batch = batch.expect("rows");
                table.rows += batch.num_rows() as u64;
                for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
                    table.column(field.name(), field.data_type()).extend(array);
                }
            }
        }
        table
    }

    fn column(&mut self, name: &str, kind: &DataType) -> &mut Column {
        let at = self.columns.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            let column = Column { kind: kind.to_string(), ..Column::default() };
            self.columns.push((name.to_owned(), column));
            self.columns.len() - 1
        });
        &mut self.columns[at].1
    }
}

impl Column {
    fn extend(&mut self, array: &ArrayRef) {
        for row in 0..array.len() {
            self.add(&value(array, row));
        }
    }
}

/// The value of a row, of the types that tables have.
fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Int64 => Value::Integer(array.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => Value::Integer(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).into()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let key = dictionary.keys().value(row) as usize;
            Value::Text(dictionary.values().as_string::<i32>().value(key).into())
        }
        other => panic!(
            "{other} is a type that this test does not know; add it to tests/stored/tables.rs"
        ),
    }
}

/// All tables of a trace.
pub(crate) struct Tables(BTreeMap<String, Table>);

/// Reads them all: each directory of a trace is one.
pub(crate) fn of(trace: &Path) -> Tables {
    let directories = sorted(trace).into_iter().filter(|path| path.is_dir());
    let name = |path: &Path| path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    Tables(directories.map(|path| (name(&path), Table::read(&path))).collect())
}

fn sorted(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

impl Tables {
    /// A paragraph for each table, a line for each column.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, table) in &self.0 {
            let _ = writeln!(text, "{name}: {} rows in {} parts", table.rows, table.parts);
            let widest = table.columns.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            for (name, column) in &table.columns {
                let _ = writeln!(text, "  {name:widest$}  {}", column.line());
            }
        }
        text
    }

    /// How many different values each column has, counted up to three; null is one.
    pub(crate) fn different(&self) -> Vec<(String, usize)> {
        let of_table = |(table, it): (&String, &Table)| {
            let of_column = |(name, column): &(String, Column)| {
                (format!("{table}.{name}"), column.different.len())
            };
            it.columns.iter().map(of_column).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of_table).collect()
    }
}
