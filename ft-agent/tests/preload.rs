//! `ft-agent record --preload` of a C program: its locks, their depth, and the places of its calls.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ft_agent::store::Trace;
use ft_agent::store::rows::{CriticalSection, SymbolRow};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/ledger.c");

/// The library, built as this test was.
fn library() -> PathBuf {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let built = Command::new(cargo).args(["build", "--quiet", "--package", "ft-preload"]).status();
    assert!(built.unwrap().success(), "the preload library builds");
    let test = std::env::current_exe().unwrap();
    // …/debug/deps/preload-0123456789abcdef
    test.ancestors().nth(2).unwrap().join("libft_preload.so")
}

fn compile(program: &Path, options: &[&str]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu17", "-g", "-O1", "-pthread", SOURCE, "-o"]).arg(program).args(options);
    assert!(command.status().expect("a C compiler, cc").success());
}

fn record(trace: &Path, library: &Path, program: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ft-agent"))
        .args(["record", "--preload", "-k", "none", "-o"])
        .arg(trace)
        .arg("--")
        .arg(program)
        .env("FT_PRELOAD", library)
        .output()
        .unwrap()
}

#[test]
fn locks_of_an_unmodified_program() {
    let directory = tempfile::tempdir().unwrap();
    let (program, trace) = (directory.path().join("ledger"), directory.path().join("trace"));
    compile(&program, &[]);
    let output = record(&trace, &library(), &program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "the program's own status: {errors}");

    let trace = Trace::open(&trace).unwrap();
    assert_eq!(trace.meta().rejected, 0);
    let sections: Vec<CriticalSection> = trace.rows().map(|row| row.unwrap()).collect();
    let mutexes: Vec<_> = sections.iter().filter(|s| &*s.kind == "mutex").collect();
    let transfers = |depth| mutexes.iter().filter(|s| s.depth == depth).count();
    assert_eq!((transfers(0), transfers(1)), (2000, 2000));
    let line = std::fs::read_to_string(SOURCE).unwrap();
    let line = 1 + line.lines().position(|l| l.contains("looks for")).unwrap();
    let inner = format!("transfer (ledger.c:{line})");
    let name = |depth| ["outer", "inner"][depth as usize];
    assert!(mutexes.iter().all(|s| &*s.lock_name == name(s.depth)), "{:?}", mutexes[0]);
    assert!(mutexes.iter().all(|s| (s.depth == 1) == (*s.place == inner)), "{:?}", mutexes[0]);
    // A semaphore that one thread posts and another takes makes no hold.
    assert!(sections.iter().all(|s| &*s.kind == "mutex"));

    let symbols: Vec<SymbolRow> = trace.rows().map(|row| row.unwrap()).collect();
    let functions: Vec<&str> = symbols.iter().map(|row| &*row.symbol).collect();
    assert!(
        ["transfer", "worker", "main"].iter().all(|name| functions.contains(name)),
        "{functions:?}"
    );
}

#[test]
fn a_static_program_is_out_of_reach() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("ledger");
    compile(&program, &["-static"]);
    let output = record(&directory.path().join("trace"), &library(), &program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("--preload does not reach") && errors.contains("statically"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(7), "it runs all the same");
}

#[test]
fn without_the_library_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        record(&directory.path().join("trace"), Path::new("/nonexistent"), Path::new("true"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("FT_PRELOAD"));
    assert_eq!(output.status.code(), Some(1));
}
