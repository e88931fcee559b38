use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataWriter};

use super::*;
use crate::dir::Dir;
use crate::event::LeanUserEvent;
use crate::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use crate::store::{Footer, PartWriter, part_path};
use crate::tables::{ClockRow, SchedMigrate, SiteKind, UserEvent};

fn event(ts: i64, tsc: i64) -> UserEvent {
    UserEvent {
        ts: Nanos(ts),
        tsc,
        pid: Pid(7),
        tid: Tid(8),
        cpu: Cpu::UNKNOWN,
        site: SiteId(3),
        event: "a.b".into(),
        category: "a".into(),
        kind: SiteKind::Event,
        arg: [None, Some(ts * 10), None, None, None, Some(-1)],
        argf: [Some(0.5), None, None, None, None, None],
        argt: [None, None, None, Some(format!("text {tsc}").into()), None, None],
    }
}

fn write(trace: &Path, part: u32, events: &[UserEvent]) {
    let mut writer = PartWriter::create(trace, part, Footer::default()).unwrap();
    for event in events {
        writer.push(event).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), events.len() as u64);
}

fn trace(dir: &Path) -> Trace {
    Meta { schema_version: crate::store::SCHEMA_VERSION, ..Meta::default() }.write(dir).unwrap();
    Trace::open(dir).unwrap()
}

#[test]
fn overlapping_parts_come_out_in_order_and_ties_by_part() {
    let dir = tempfile::tempdir().unwrap();
    // Part:   0: 1 2 5        1: (none)     2: 2 3 9      10: 4 5
    write(dir.path(), 0, &[event(1, 0), event(2, 0), event(5, 0)]);
    write(dir.path(), 1, &[]);
    write(dir.path(), 2, &[event(2, 2), event(3, 2), event(9, 2)]);
    write(dir.path(), 10, &[event(4, 10), event(5, 10)]);
    let rows: Vec<UserEvent> = trace(dir.path()).rows().map(Result::unwrap).collect();
    let order: Vec<_> = rows.iter().map(|e| (e.ts.0, e.tsc)).collect();
    assert_eq!(order, [(1, 0), (2, 0), (2, 2), (3, 2), (4, 10), (5, 0), (5, 10), (9, 2)]);
    assert!(rows.iter().all(|e| *e == event(e.ts.0, e.tsc)), "every column survives");
    assert_eq!(trace(dir.path()).keys::<UserEvent>().unwrap(), Some((1, 9)));
}

#[test]
fn rows_within_keys_come_from_the_parts_that_may_hold_them() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, &[event(1, 0), event(4, 0)]);
    write(dir.path(), 1, &[event(3, 1), event(6, 1)]);
    // Damaged where its rows are: a reader that needs them fails.
    write(dir.path(), 2, &[event(7, 2), event(9, 2)]);
    let path = part_path(dir.path(), "user_events", 2);
    let mut bytes = fs::read(&path).unwrap();
    bytes[4..200].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let trace = trace(dir.path());
    let check = |keys: Range<i64>, expected: &[i64]| {
        let found: Vec<i64> =
            trace.rows_within::<UserEvent>(keys.clone()).map(|e| e.unwrap().ts.0).collect();
        assert_eq!(found, expected, "{keys:?}");
    };
    check(0..7, &[1, 3, 4, 6]);
    check(3..6, &[3, 4]);
    check(4..5, &[4]);
    check(5..6, &[]);
    check(10..20, &[]);
    assert!(trace.rows_within::<UserEvent>(0..8).any(|row| row.is_err()));
}

#[test]
fn a_projection_reads_its_columns_only() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, &[event(1, 0)]);
    let rows: Vec<LeanUserEvent> = trace(dir.path()).rows().map(Result::unwrap).collect();
    assert_eq!(rows, [LeanUserEvent::from(&event(1, 0))]);
}

#[test]
fn many_rows_cross_batches() {
    let dir = tempfile::tempdir().unwrap();
    let row = |ts: i64| SchedMigrate {
        ts: Nanos(ts),
        cpu: Cpu(0),
        tid: Tid(ts as i32),
        pid: Pid(1),
        from_cpu: Cpu(0),
        to_cpu: Cpu(1),
    };
    let rows = 70_000;
    let mut writer = PartWriter::create(dir.path(), 0, Footer::default()).unwrap();
    (0..rows).for_each(|ts| writer.push(&row(ts)).unwrap());
    writer.finish().unwrap();
    let mut read = trace(dir.path()).rows::<SchedMigrate>();
    assert!((0..rows).all(|ts| read.next().unwrap().unwrap() == row(ts)));
    assert!(read.next().is_none());
}

/// What opening, or reading the first row, says.
fn check(prepare: impl FnOnce(&Path), expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let error = match Trace::open(dir.path()) {
        Err(error) => error,
        Ok(trace) => {
            let mut rows = trace.rows::<UserEvent>();
            let error = rows.next().expect("an item").expect_err("an error");
            assert!(rows.next().is_none(), "an error ends the iteration");
            error
        }
    };
    assert!(error.to_string().contains(expected), "{error}");
}

/// A text of some MB that stands in each row would take as much for each where it is no dictionary. So that is seen by the footer: the rows
/// of this file are damaged, and nobody notices.
#[test]
fn columns_of_another_type_are_not_decoded() {
    check(
        |dir| {
            write(dir, 0, &[event(1, 0)]);
            trace(dir);
            let path = part_path(dir, "user_events", 0);
            let mut whole = batches::<UserEvent>(&path, &(0..10)).unwrap();
            let whole = whole.next().unwrap().unwrap();
            let as_text = |(field, column): (&Arc<Field>, &ArrayRef)| match field.data_type() {
                DataType::Dictionary(..) => {
                    let field = Field::new(field.name(), DataType::Utf8, true);
                    (field, Arc::new(StringArray::from(vec!["x"])) as ArrayRef)
                }
                _ => (field.as_ref().clone(), column.clone()),
            };
            let schema = whole.schema();
            let columns = schema.fields().iter().zip(whole.columns()).map(as_text);
            let (fields, columns): (Vec<_>, Vec<_>) = columns.unzip();
            let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
            let file = fs::File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.write_all_at(&[0xff; 60], 4).unwrap();
        },
        "its columns are not those of `user_events`",
    );
}

/// Gives a part a footer by which its columns take so much memory.
fn say_to_take(path: &Path, bytes: i64) {
    let metadata = open(path).unwrap().metadata().as_ref().clone();
    let mut metadata = metadata.into_builder();
    for group in metadata.take_row_groups() {
        let larger = |column: ColumnChunkMetaData| {
            column.into_builder().set_total_uncompressed_size(bytes).build().unwrap()
        };
        let columns = group.columns().to_vec().into_iter().map(larger).collect();
        let group = group.into_builder().set_column_metadata(columns).build().unwrap();
        metadata = metadata.add_row_group(group);
    }
    let file = fs::File::options().append(true).open(path).unwrap();
    ParquetMetaDataWriter::new(file, &metadata.build()).finish().unwrap();
}

#[test]
fn what_a_column_says_to_take_of_memory_is_bounded() {
    let part = |bytes| {
        move |dir: &Path| {
            write(dir, 0, &[event(1, 0)]);
            trace(dir);
            say_to_take(&part_path(dir, "user_events", 0), bytes);
        }
    };
    let dir = tempfile::tempdir().unwrap();
    part(MAX_COLUMN_BYTES)(dir.path());
    let rows = Trace::open(dir.path()).unwrap().rows::<UserEvent>();
    assert_eq!(rows.map(|row| row.unwrap().ts.0).collect::<Vec<_>>(), [1]);
    let too_many = MAX_COLUMN_BYTES + 1;
    check(part(too_many), &format!("takes {too_many} bytes of memory"));
    check(part(-1), "takes -1 bytes of memory");
}

#[test]
fn what_cannot_be_read_is_named_with_its_remedy() {
    let whole = |dir: &Path| {
        write(dir, 0, &[event(1, 0)]);
        trace(dir);
    };
    check(|_| {}, "name the directory that `ft-agent record` made");
    check(|dir| fs::create_dir(dir.join("spool")).unwrap(), "run `ft-agent convert");
    check(|dir| drop(trace(dir)), "has no table `user_events`");
    check(|dir| fs::write(dir.join("meta.json"), "{").unwrap(), "meta.json is damaged");
    check(
        |dir| fs::write(dir.join("meta.json"), r#"{"schema_version": 99}"#).unwrap(),
        "version 99",
    );
    check(
        |dir| {
            whole(dir);
            let path = part_path(dir, "user_events", 0);
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        },
        "part-00000.parquet is damaged",
    );
    check(
        |dir| {
            whole(dir);
            // A file of holes, whose footer is said to fill it.
            let path = part_path(dir, "user_events", 0);
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_len(3 << 30).unwrap();
            file.write_all_at(&u32::MAX.to_le_bytes(), (3 << 30) - 8).unwrap();
            file.write_all_at(b"PAR1", (3 << 30) - 4).unwrap();
        },
        "its footer is larger than any that we write",
    );
    check(
        |dir| {
            whole(dir);
            let table = Dir::open(&dir.join("user_events")).unwrap();
            let mut clock = PartWriter::<ClockRow>::create_in(table, 0, Footer::default());
            clock
                .push(&ClockRow {
                    ts: Nanos(1),
                    tsc: 1,
                    bracket_ns: 1,
                    residual_ns: 1,
                    bound_ns: 1,
                    realtime_offset_ns: 1,
                    boottime_offset_ns: 1,
                    cpu: Cpu(1),
                })
                .unwrap();
            clock.finish().unwrap();
        },
        "its columns are not those of `user_events`",
    );
}
