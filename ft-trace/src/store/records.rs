//! Rows of a table that is known by its name alone, when the program runs.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde_json::{Map, Value};

use super::catalogue::{Column, Table};
use super::error::Result;
use super::name_column::cut;
use super::reader::{Trace, next_batch};

/// The columns of a row by their names.
pub type Record = Map<String, Value>;

/// Opens a part of a table, of which it reads what may hold a key.
pub(super) type Open = fn(&Path, &Range<i64>) -> Result<ParquetRecordBatchReader>;

impl Table {
    /// Gives the rows of this table whose first column lies in `keys` to `each`, until that breaks off: part after part, and within a part
    /// in the order of the first column. A row has the columns that `wants` names. A number that is none in JSON is null.
    ///
    /// # Errors
    ///
    /// As of [`Trace::rows`].
    pub fn records(
        &self,
        trace: &Trace,
        keys: Range<i64>,
        wants: impl Fn(&str) -> bool,
        mut each: impl FnMut(Record) -> ControlFlow<()>,
    ) -> Result<()> {
        let columns: Vec<_> = self.columns.iter().filter(|column| wants(&column.name)).collect();
        for part in trace.parts(self.name, &keys)? {
            let mut reader = (self.open)(&part.path, &keys)?;
            while let Some(batch) = next_batch(&mut reader, &part.path)? {
                let of = |column: &Column, row| {
                    // A file from elsewhere need not have it.
                    batch.column_by_name(&column.name).map_or(Value::Null, |of| value(of, row))
                };
                for row in 0..batch.num_rows() {
                    let key = self.columns.first().and_then(|column| of(column, row).as_i64());
                    if !key.is_some_and(|key| keys.contains(&key)) {
                        continue;
                    }
                    let record = columns.iter().map(|it| (it.name.clone(), of(it, row))).collect();
                    if each(record).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// What stands in a row of a column, of the types that [`Column::kind`] has.
fn value(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        _ => {
            let names = column.as_dictionary::<Int32Type>();
            let key = names.keys().value(row) as usize;
            let texts = names.values().as_string_opt::<i32>();
            texts.map_or(Value::Null, |texts| cut(texts.value(key)).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Cpu, Nanos, Pid, SiteId, Tid};
    use crate::store::catalogue::tables;
    use crate::store::{Footer, Meta, PartWriter, SCHEMA_VERSION};
    use crate::tables::{SiteKind, UserEvent};

    #[test]
    fn a_row_has_its_columns_by_name() {
        let dir = tempfile::tempdir().unwrap();
        Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir.path()).unwrap();
        for part in 0..2 {
            let mut writer = PartWriter::create(dir.path(), part, Footer::default()).unwrap();
            for ts in 0..3 {
                writer
                    .push(&UserEvent {
                        ts: Nanos(ts),
                        tsc: i64::MAX,
                        pid: Pid(7),
                        tid: Tid(part as i32),
                        cpu: Cpu(0),
                        site: SiteId(3),
                        event: "a.b".into(),
                        category: "a".into(),
                        kind: SiteKind::Event,
                        arg: [None, Some(-5), None, None, None, None],
                        argf: [Some(0.5), Some(f64::NAN), None, None, None, None],
                        argt: [None, None, Some("text".into()), None, None, None],
                    })
                    .unwrap();
            }
            writer.finish().unwrap();
        }
        let trace = Trace::open(dir.path()).unwrap();
        let tables = tables();
        let table = tables.iter().find(|table| table.name == "user_events").unwrap();
        let mut records = Vec::new();
        let take = |record| {
            records.push(record);
            if records.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        table.records(&trace, 1..3, |_| true, take).unwrap();
        let of = |record: &Record| [&record["ts"], &record["tid"]].map(|n| n.as_i64().unwrap());
        assert_eq!(records.iter().map(of).collect::<Vec<_>>(), [[1, 0], [2, 0], [1, 1]]);
        assert_eq!(records[0].len(), table.columns.len());
        let one = |record: Record| {
            assert_eq!(record.into_iter().collect::<Vec<_>>(), [("tid".to_owned(), 0.into())]);
            ControlFlow::Break(())
        };
        table.records(&trace, 0..3, |column| column == "tid", one).unwrap();
        let text = serde_json::to_string(&records[0]).unwrap();
        for part in [
            r#""tsc":9223372036854775807"#,
            r#""event":"a.b""#,
            r#""kind":"event""#,
            r#""arg0":null"#,
            r#""arg1":-5"#,
            r#""argf0":0.5"#,
            r#""argf1":null"#,
            r#""argt2":"text""#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
