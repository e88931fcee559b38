use std::path::PathBuf;

use super::*;
use crate::ids::{Cpu, Nanos, Pid, Tid};
use crate::store::{
    Footer, Meta, PartWriter, Row, SCHEMA_VERSION, StoreError, TableMeta, Trace, Unsynced,
    part_path,
};
use crate::tables::SchedMigrate;
use crate::warning::Warning;

const TABLE: &str = SchedMigrate::TABLE;

/// A trace with so many rows in each part of a table.
fn trace(dir: &Path, parts: &[i64]) -> Vec<PartMeta> {
    let mut files = Vec::new();
    for (number, rows) in (0..).zip(parts) {
        let mut part = PartWriter::create(dir, number, Footer::default()).unwrap();
        let (tid, pid, cpu) = (Tid(1), Pid(1), Cpu(0));
        let row = |ts| SchedMigrate { ts: Nanos(ts), cpu, tid, pid, from_cpu: cpu, to_cpu: Cpu(1) };
        (0..*rows).for_each(|ts| part.push(&row(ts)).unwrap());
        files.push(part.finish_unsynced(&mut Unsynced::default()).unwrap());
    }
    let rows = files.iter().map(|file| file.rows).sum();
    let table = TableMeta { rows, parts: 1, files: files.clone(), ..TableMeta::default() };
    let tables = [(TABLE.to_owned(), table)].into();
    Meta { schema_version: SCHEMA_VERSION, tables, ..Meta::default() }.write(dir).unwrap();
    files
}

fn part(dir: &Path, number: u32) -> PathBuf {
    part_path(dir, TABLE, number)
}

#[test]
fn each_part_that_is_not_what_was_written_is_named() {
    type Harm = fn(&Path);
    let harms: [(Harm, &str); 7] = [
        (|_| {}, ""),
        (|dir| fs::remove_file(part(dir, 1)).unwrap(), "part-00001.parquet is missing (20 rows)"),
        (
            |dir| File::options().write(true).open(part(dir, 2)).unwrap().set_len(9).unwrap(),
            "part-00002.parquet has 9 bytes and was written with ",
        ),
        (
            |dir| assert!(fs::copy(part(dir, 0), part(dir, 7)).is_ok()),
            "part-00007.parquet was not written with the others of its table",
        ),
        (
            |dir| {
                // Both have one size.
                fs::rename(part(dir, 0), part(dir, 9)).unwrap();
                fs::rename(part(dir, 1), part(dir, 0)).unwrap();
                fs::rename(part(dir, 9), part(dir, 1)).unwrap();
            },
            "part-00000.parquet is another file than was written, and 1 more",
        ),
        (
            |dir| {
                let mut bytes = fs::read(part(dir, 0)).unwrap();
                let at = bytes.len() - 20;
                bytes[at] ^= 1;
                fs::write(part(dir, 0), bytes).unwrap();
            },
            "part-00000.parquet is another file than was written",
        ),
        (
            |dir| {
                fs::remove_file(part(dir, 0)).unwrap();
                fs::create_dir(part(dir, 0)).unwrap();
            },
            "part-00000.parquet cannot be read (invalid input parameter)",
        ),
    ];
    for (harm, what) in harms {
        let dir = tempfile::tempdir().unwrap();
        trace(dir.path(), &[10, 20, 30]);
        harm(dir.path());
        let opened = Trace::open(dir.path());
        if what.is_empty() {
            assert_eq!(opened.unwrap().rows::<SchedMigrate>().count(), 60);
            continue;
        }
        let error = opened.unwrap_err();
        assert!(matches!(error, StoreError::NotWhole { .. }), "{error}");
        assert!(error.to_string().contains(&format!("is not whole: {TABLE}/{what}")), "{error}");
        assert!(error.to_string().contains("; bring the trace again "), "{error}");
    }
}

#[test]
fn what_is_left_is_read_and_said_where_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    trace(dir.path(), &[10, 20, 30]);
    fs::remove_file(part(dir.path(), 1)).unwrap();
    fs::copy(part(dir.path(), 0), part(dir.path(), 7)).unwrap();
    let rest = Trace::open_incomplete(dir.path()).unwrap();
    assert_eq!(rest.rows::<SchedMigrate>().count(), 40);
    assert_eq!((rest.meta().tables[TABLE].rows, rest.meta().complete), (40, false));
    let [Warning::LeftOut { what, tables }] = &rest.meta().warnings[..] else { panic!("{rest:?}") };
    assert!(what.ends_with("(20 rows), and 1 more"), "{what}");
    assert_eq!(tables, TABLE);
    fs::remove_dir_all(dir.path().join(TABLE)).unwrap();
    assert_eq!(Trace::open_incomplete(dir.path()).unwrap().rows::<SchedMigrate>().count(), 0);
    // Of a trace that does not say what it has, nothing is missing.
    fs::remove_file(dir.path().join("meta.json")).unwrap();
    Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir.path()).unwrap();
    Trace::open(dir.path()).unwrap();
}

#[test]
fn results_are_asked_for_where_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let files = trace(dir.path(), &[10]);
    Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir.path()).unwrap();
    let results = Results { tables: [(TABLE.into(), files)].into(), ..Results::default() };
    fs::write(dir.path().join(ANALYSIS_FILE), serde_json::to_vec(&results).unwrap()).unwrap();
    assert_eq!(Results::of(dir.path()), results);
    Trace::open(dir.path()).unwrap();
    fs::remove_file(part(dir.path(), 0)).unwrap();
    let error = Trace::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("; run `ft-agent analyze ") && error.contains("is missing"), "{error}");
    assert!(Trace::open_table::<SchedMigrate>(dir.path()).is_err());
    Trace::open_recorded(dir.path()).unwrap();
    fs::write(dir.path().join(ANALYSIS_FILE), "{").unwrap();
    Trace::open(dir.path()).unwrap();
}
