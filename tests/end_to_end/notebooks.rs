//! The notebooks of the Python package, run on recordings of the demo; that about many hosts runs on a catalogue
//! (`tests/readers/fleet.rs`).

use std::path::Path;

use crate::harness::{self, Stage};
use crate::package::pytest;

/// Their assertions hold, and their figures draw. One of the traces is a snapshot of the flight recorder, and was moved.
#[test]
fn notebooks_run_on_recordings() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let demo = harness::example("ft-user", "demo");
    let record = |trace: &Path, options: &[&str]| {
        let mut agent = harness::agent();
        agent.args(["record", "-o"]).arg(trace).args(options).arg("--");
        harness::assert_success(
            &agent.arg(&demo).args(["--seconds", "2"]).output().expect("the agent starts"),
        );
    };
    let store = stage.path("store");
    let place = |name| store.join("host=here/date=2026-01-01").join(format!("trace={name}"));
    record(&place("a"), &[]);
    record(&place("b"), &[]);
    let flight = stage.path("flight");
    record(&flight, &["--flight-recorder", "1s"]);
    std::fs::rename(flight.join("snapshot-0001"), place("snapshot"))
        .expect("a snapshot at the end");
    // There to be looked at.
    let figures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("notebooks");
    let tests = ["-m", "recordings", "-k", "not fleet"];
    pytest(&tests, &[("FT_STORE", &store), ("FT_FIGURES", &figures)]);
}
