//! Readers of other projects open every table with the documented types.
//!
//! Needs Python with the packages of `tests/python/requirements.txt`, named by `FT_PYTHON`
//! (`cargo xtask test readers` sets it up); skipped without.

mod executors;
mod fleet;
use ft_tests::gate;
mod hotplug;
mod losses;
use ft_tests::oracle;
use ft_tests::pytest as package;
mod recordings;
mod rows;

use std::path::Path;
use std::process::Command;

use rows::trace;

/// What the readers below are shown is all that there is.
#[test]
fn the_trace_has_every_table() {
    let dir = tempfile::tempdir().unwrap();
    trace(dir.path(), 3);
    let missing: Vec<_> = ft_trace::store::catalogue::tables()
        .into_iter()
        .map(|table| table.name)
        .filter(|name| !dir.path().join(name).is_dir())
        .collect();
    assert!(missing.is_empty(), "give `rows.rs` rows of {missing:?}");
}

#[test]
fn every_table_opens_in_duckdb_polars_pandas_and_pyarrow() {
    for rows in [0, 3] {
        let dir = tempfile::tempdir().unwrap();
        trace(dir.path(), rows);
        if !oracle::readable(dir.path()) {
            return;
        }
    }
}

/// Spark has a Java machine and half a gigabyte, so an environment of its own, named by `FT_SPARK`.
#[test]
fn every_table_opens_in_spark() {
    let (Some(python), Some(spark)) = (std::env::var_os("FT_PYTHON"), std::env::var_os("FT_SPARK"))
    else {
        return gate::skipped("FT_PYTHON or FT_SPARK is not set; run `cargo xtask test readers`");
    };
    let folder = tempfile::tempdir().unwrap();
    let traces = [0, 3].map(|rows| folder.path().join(format!("trace-{rows}")));
    for (dir, rows) in traces.iter().zip([0, 3]) {
        std::fs::create_dir(dir).unwrap();
        trace(dir, rows);
    }
    let expected = folder.path().join("expected.json");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("spark");
    let run = |command: &mut Command| {
        // Spark leaves files where it is started.
        let output =
            command.arg(&expected).args(&traces).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(Command::new(python).arg(scripts.join("expected.py")));
    let text = run(Command::new(spark).arg(scripts.join("readers.py")));
    let tables = ft_trace::store::catalogue::tables().len() * traces.len();
    assert_eq!(text.trim(), format!("{tables} tables"));
    gate::ran();
}

/// What `views.sql` and the Python package say of stored recordings, beside the tables themselves.
#[test]
fn views_and_the_python_package_agree_with_the_tables() {
    package::pytest(&["-m", "not recordings"], &[]);
}
