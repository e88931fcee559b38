//! Recordings of another machine: one that is emulated has time to record, and none to judge.
//!
//! There a test of its own process records with `FT_RECORD=FOLDER` what it would judge, and is over; here the same test
//! judges it with `FT_RECORDED=FOLDER`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::{agent, assert_success};

/// Where to put a recording, on a machine that only records.
pub(super) fn to_record() -> Option<PathBuf> {
    env::var_os("FT_RECORD").map(PathBuf::from)
}

/// Where recordings of another machine are.
pub(super) fn recorded() -> Option<PathBuf> {
    env::var_os("FT_RECORDED").map(PathBuf::from)
}

/// The folder of a recording, and within it of the trace and of what the program has printed.
fn place(folder: &Path, options: &[&str], arguments: &[&str]) -> [PathBuf; 3] {
    let place = folder.join([options, arguments].concat().join(" "));
    [place.clone(), place.join("trace"), place.join("truth")]
}

/// Records, and ends the test.
pub(super) fn record(folder: &Path, options: &[&str], program: &Path, arguments: &[&str]) -> ! {
    let [place, trace, truth] = place(folder, options, arguments);
    fs::create_dir_all(place).expect("a folder");
    let mut record = agent();
    record.args(["record", "--no-convert", "-o"]).arg(trace).args(options);
    let output = record.arg("--").arg(program).args(arguments).output().expect("it starts");
    assert_success(&output);
    fs::write(truth, output.stdout).expect("the truth is written");
    std::process::exit(0);
}

/// What the program has printed, and the trace of a recording.
pub(super) fn received(folder: &Path, options: &[&str], arguments: &[&str]) -> (Vec<u8>, PathBuf) {
    let [place, trace, told] = place(folder, options, arguments);
    let told = fs::read(told).unwrap_or_else(|_| panic!("nothing was recorded in {place:?}"));
    // The second one analyses.
    for command in ["convert", "report"] {
        assert_success(&agent().arg(command).arg(&trace).output().expect("the agent starts"));
    }
    (told, trace)
}
