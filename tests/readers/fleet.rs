//! What `ft-agent fleet` says of the traces of several hosts, beside what is computed from their rows (`tests/python/fleet.py`),
//! and the notebook about them.

use std::path::Path;

use crate::{gate, oracle, package, recordings};

#[test]
fn every_figure_of_a_fleet_is_that_of_its_rows() {
    if std::env::var_os("FT_PYTHON").is_none() {
        return gate::skipped("FT_PYTHON is not set; run `cargo xtask test readers`");
    }
    let folder = tempfile::tempdir().unwrap();
    recordings::bring(folder.path());
    let analysed = recordings::agent(&["analyze", "fleet"], folder.path());
    assert!(String::from_utf8_lossy(&analysed.stderr).contains("1 of 16 traces failed"));
    let said = String::from_utf8_lossy(&analysed.stdout);
    let failed = said.lines().find_map(|line| line.split_once(": failed: ")).unwrap();
    let why = format!("fleet/{} is not a trace: it holds no meta.json", failed.0);
    assert!(failed.1.starts_with(&why), "its own name, not that of a copy: {said}");
    let fleet = folder.path().join("fleet");
    let args = [Path::new(ft_tests::agent()), &fleet];
    let Some(output) = oracle::python("python/fleet.py", &args) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    gate::measured(&format!("figures of a fleet, recomputed: {}", said.trim()));

    // One whose row was not written is in no answer.
    let rows = fleet.join("traces");
    let row = std::fs::read_dir(&rows).unwrap().map(|row| row.unwrap().path()).min().unwrap();
    std::fs::remove_file(row).unwrap();
    let figures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("notebooks");
    let variables = [("FT_STORE", &*fleet), ("FT_FIGURES", &figures)];
    package::pytest(&["-m", "recordings", "-k", "fleet"], &variables);
}
