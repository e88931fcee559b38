//! What a machine lacks stands wherever its figures do.

use std::fs;
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::warning::Warning;

use crate::containers::namespaces;
use crate::harness::{self, Stage, gate};

#[test]
fn a_cpu_that_does_not_vouch_for_its_counter_is_named() {
    if !namespaces() {
        return;
    }
    gate::ran();
    let stage = Stage::enter();
    let (cpuinfo, dir) = (stage.path("cpuinfo"), stage.path("trace"));
    let real = fs::read_to_string("/proc/cpuinfo").expect("the machine's own");
    fs::write(&cpuinfo, real.replace(" nonstop_tsc", "")).expect("a file");
    let script = r#"mount --bind "$0" /proc/cpuinfo && exec "$@""#;
    let mut record = Command::new("unshare");
    record.args(["-m", "sh", "-ec", script]).arg(cpuinfo).arg(harness::agent().get_program());
    record.args(["record", "-k", "none", "-o"]).arg(&dir).args(["--", "true"]);
    let recorded = record.output().expect("unshare starts");
    harness::assert_success(&recorded);

    let told = "the CPU does not announce nonstop_tsc, ";
    assert!(squeezed(&recorded.stderr).contains(told), "at the start: {recorded:?}");
    assert!(squeezed(&recorded.stdout).contains(told), "in the summary: {recorded:?}");
    let trace = Trace::open(&dir).expect("a whole trace");
    assert_eq!(trace.meta().start.tsc_lacks, ["nonstop_tsc"]);
    let is_it = |warning: &Warning| matches!(warning, Warning::TscFlags { .. });
    assert_eq!(trace.meta().warnings.iter().filter(|warning| is_it(warning)).count(), 1);
    let report = harness::agent().arg("report").arg(&dir).output().expect("the agent starts");
    assert!(squeezed(&report.stdout).contains(told), "in the report: {report:?}");
}

/// A text whose lines are broken anywhere.
fn squeezed(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ") + " "
}
