//! The second implementation of the analyses, run on a trace.

use std::path::Path;
use std::process::{Command, Output};

use crate::gate;

/// Runs a script of `tests` with a Python that has pyarrow; `None` without one.
pub fn python(script: &str, args: &[&Path]) -> Option<Output> {
    let Some(python) = std::env::var_os("FT_PYTHON") else {
        gate::skipped("FT_PYTHON is not set; run `cargo xtask test --all`");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let mut python = Command::new(python);
    let output = python.arg("-B").arg(&script).args(args).output().expect("python starts");
    let has_failed = String::from_utf8_lossy(&output.stderr).contains("Traceback");
    if output.status.code() == Some(1) && !has_failed {
        // A test that says so is not run again (`xtask/src/programs/again.rs`).
        eprintln!("a second implementation disagrees: {}", script.display());
    }
    Some(output)
}

/// Has readers of other projects open every table of a trace; false without a Python.
pub fn readable(trace: &Path) -> bool {
    let documented = tempfile::NamedTempFile::new().expect("a file");
    let mut tables = Command::new(crate::agent());
    tables.args(["tables", "--json"]).stdout(documented.reopen().expect("the file"));
    assert!(tables.status().expect("the agent starts").success());
    let Some(output) = python("python/readers.py", &[trace, documented.path()]) else {
        return false;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    gate::ran();
    true
}

/// Runs the oracle on a trace; `None` without a Python.
pub fn oracle(trace: &Path) -> Option<Output> {
    // With --alter it also alters rows, column by column, and must notice.
    python("oracle", &[trace, Path::new("--alter")])
}

/// Compares all tables of a trace; false without a Python.
pub fn agrees(what: &str, trace: &Path) -> bool {
    oracle(trace).is_some_and(|output| has_agreed(what, trace, &output))
}

/// The same of a trace with losses, of which a column may say anything; false without a Python.
pub fn agrees_in_spite_of_losses(what: &str, trace: &Path) -> bool {
    python("oracle", &[trace]).is_some_and(|output| has_agreed(what, trace, &output))
}

/// Fails with what differs, if anything does, and keeps the trace: the next one may not have it.
fn has_agreed(what: &str, trace: &Path, output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let kept = std::env::temp_dir().join(format!("ft-differs-{}", std::process::id()));
        let copied = Command::new("cp").arg("-r").arg(trace).arg(&kept).status();
        let kept = copied.is_ok_and(|status| status.success()).then_some(kept);
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{what}, kept in {kept:?}:\n{text}\n{said}");
    }
    let tables: Vec<&str> = text.lines().filter(|line| !line.contains(": 0 rows")).collect();
    gate::measured(&format!("recomputed from the raw tables of {what}: {}", tables.join("; ")));
    true
}
