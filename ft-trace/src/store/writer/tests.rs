use std::fs;

use super::*;
use crate::ids::Pid;
use crate::store::{Meta, SCHEMA_VERSION, Trace};
use crate::tables::{NameKind, NameRow};

fn name(pid: i32, id: i32) -> NameRow {
    NameRow {
        pid: Pid(pid),
        source: 0,
        id,
        kind: NameKind::Name,
        text: "t".into(),
        line: 0,
        column: 0,
    }
}

fn read(dir: &Path) -> Vec<(i32, i32)> {
    Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir).unwrap();
    let rows = Trace::open(dir).unwrap().rows::<NameRow>();
    rows.map(|row| row.map(|row| (row.pid.0, row.id)).unwrap()).collect()
}

#[test]
fn rows_in_any_order_are_sorted_over_all_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TableWriter::create(dir.path(), Footer::default()).unwrap();
    writer.part_rows = 3;
    for (i, pid) in [5, 3, 4, 1, 6, 2, 3].into_iter().enumerate() {
        writer.push(name(pid, i as i32)).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 7);
    assert_eq!(fs::read_dir(dir.path().join("names")).unwrap().count(), 3);
    assert_eq!(read(dir.path()), [(1, 3), (2, 5), (3, 1), (3, 6), (4, 2), (5, 0), (6, 4)]);
}

#[test]
fn a_writer_that_does_not_finish_leaves_the_table_of_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = TableWriter::create(dir.path(), Footer::default()).unwrap();
    first.push(name(1, 1)).unwrap();
    first.finish().unwrap();

    let mut second = TableWriter::create(dir.path(), Footer::default()).unwrap();
    second.part_rows = 1;
    second.push(name(2, 2)).unwrap();
    assert!(dir.path().join("names.tmp/part-00000.parquet").exists());
    drop(second);
    assert_eq!(read(dir.path()), [(1, 1)]);
    assert_eq!(entries(dir.path()), ["meta.json", "names"]);

    let mut third = TableWriter::create(dir.path(), Footer::default()).unwrap();
    third.push(name(3, 3)).unwrap();
    third.finish().unwrap();
    assert_eq!(read(dir.path()), [(3, 3)]);
}

fn entries(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn what_a_killed_writer_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    for left in ["names.tmp", "names.old.tmp"] {
        fs::create_dir(dir.path().join(left)).unwrap();
        fs::write(dir.path().join(left).join("part-00007.parquet"), "PAR1").unwrap();
    }
    let mut writer = TableWriter::create(dir.path(), Footer::default()).unwrap();
    writer.push(name(1, 1)).unwrap();
    writer.finish().unwrap();
    assert_eq!(entries(dir.path()), ["names"]);
    assert_eq!(read(dir.path()), [(1, 1)]);
}

#[test]
fn a_table_without_rows_has_one_empty_part() {
    let dir = tempfile::tempdir().unwrap();
    let writer = TableWriter::<NameRow>::create(dir.path(), Footer::default()).unwrap();
    assert_eq!(writer.finish().unwrap(), 0);
    assert_eq!(read(dir.path()), []);
}
