//! What a machine lacks stands wherever its figures do.

use std::fs;
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::{ClockRow, HostClockRow, HostClockState};
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
    let times = squeezed(&recorded.stderr).matches(told).count();
    assert_eq!(times, 2, "at the start and in the summary: {recorded:?}");
    let trace = Trace::open(&dir).expect("a whole trace");
    assert_eq!(trace.meta().start.tsc_lacks, ["nonstop_tsc"]);
    let is_it = |warning: &Warning| matches!(warning, Warning::TscFlags { .. });
    assert_eq!(trace.meta().warnings.iter().filter(|warning| is_it(warning)).count(), 1);
    let report = harness::agent().arg("report").arg(&dir).output().expect("the agent starts");
    assert!(squeezed(&report.stdout).contains(told), "in the report: {report:?}");
}

/// Records for a moment while adjtimex, which C libraries make of clock_adjtime(2), answers as strace is told; returns what
/// the summary says of UTC.
fn utc(stage: &Stage, name: &str, answer: &str) -> Option<(String, Trace)> {
    let dir = stage.path(name);
    let mut record = Command::new("strace");
    record.args(["-f", "-o", "/dev/null", "-e", "trace=clock_adjtime"]);
    record.args(["-e", &format!("inject=clock_adjtime:{answer}")]);
    record.arg(harness::agent().get_program()).args(["record", "-k", "none", "-o"]).arg(&dir);
    let recorded = match record.args(["--", "true"]).output() {
        Ok(recorded) => recorded,
        Err(_) => {
            gate::skipped("strace is not installed (Debian: strace)");
            return None;
        }
    };
    if !recorded.status.success() && !dir.exists() {
        gate::skipped("strace cannot trace here");
        return None;
    }
    harness::assert_success(&recorded);
    let summary = harness::agent().arg("summary").arg(&dir).output().expect("the agent starts");
    let summary = squeezed(&summary.stdout);
    let (_, said) = summary.split_once(" UTC ").expect("a line of the summary");
    Some((said.to_owned(), Trace::open(&dir).expect("a whole trace")))
}

#[test]
fn how_far_the_time_of_day_can_be_off_is_what_the_kernel_says() {
    let stage = Stage::enter();
    // `struct timex` of x86-64 as the kernel leaves it: 4 µs are still to be corrected, and the clock can be 312 µs off.
    let words: [i64; 6] = [0, -4000, -(3 << 16), 312, 20, 0x2001];
    let timex: String = words.iter().flat_map(|w| w.to_le_bytes()).map(hex).collect();
    let synchronised = format!("retval=0:poke_exit=@arg2={timex}");
    let Some((said, trace)) = utc(&stage, "synchronised", &synchronised) else { return };
    gate::ran();
    assert!(said.starts_with("the host's clock is synchronised, right within 316 µs by"), "{said}");
    let host = trace.meta().clock.host.expect("the kernel was asked");
    assert_eq!((host.state, host.bound_ns), (HostClockState::Synchronised, Some(316_000)));
    let rows: Vec<HostClockRow> = trace.rows().map(|row| row.expect("a row")).collect();
    assert!(rows.len() >= 2, "at the start and at the end: {rows:?}");
    assert_eq!(rows.len() as u64, host.samples);
    let samples: Vec<i64> = trace.rows::<ClockRow>().map(|row| row.expect("a row").ts.0).collect();
    assert!(rows.iter().all(|row| samples.contains(&row.ts.0)), "each is of a clock sample");
    assert_eq!([&rows[0], &rows[rows.len() - 1]].map(|r| r.bound_ns), [Some(316_000); 2]);

    let (said, trace) = utc(&stage, "refused", "error=EPERM").expect("as before");
    assert!(said.starts_with("how far the host's clock can be off is not known: "), "{said}");
    let host = trace.meta().clock.host.expect("the kernel was asked");
    assert_eq!((host.state, host.bound_ns), (HostClockState::Unknown, None));
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}")
}

/// A text whose lines are broken anywhere.
fn squeezed(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ") + " "
}
