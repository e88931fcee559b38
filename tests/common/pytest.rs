//! The tests of the Python package, which open traces that the agent makes.

use std::path::Path;
use std::process::Command;

use crate::gate;

/// Runs some of the package's tests, with these variables; false without a Python.
///
/// # Panics
///
/// When one fails.
pub fn pytest(tests: &[&str], variables: &[(&str, &Path)]) -> bool {
    let Some(python) = std::env::var_os("FT_PYTHON") else {
        gate::skipped("FT_PYTHON is not set; run `cargo xtask test --all`");
        return false;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(python)
        .args(["-B", "-m", "pytest", "--basetemp"])
        .arg(folder.path().join("pytest"))
        .args(tests)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../python"))
        .env("FT_AGENT", crate::agent())
        .envs(variables.iter().copied())
        .output()
        .expect("python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        !text.contains("skipped"),
        "one that did not run must not look like one that did:\n{text}"
    );
    gate::ran();
    true
}
