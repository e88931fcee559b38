//! Samples that the kernel does not take because another tracer's program has the CPU are known to be missing.

use ft_report::analyze;
use ft_trace::store::Trace;
use ft_trace::tables::{Part, Sample, ThreadTime};

use crate::harness::{self, Stage, gate};
use crate::peers;

/// It is called at each system call of the machine.
const SCRIPT: &str = "tracepoint:raw_syscalls:sys_enter { @[comm, args->id] = count(); }";

/// Does little else than system calls.
const PROGRAM: &str = "/bin/dd if=/dev/zero of=/dev/null bs=1 count=600000 status=none";

#[test]
fn samples_that_another_tracer_has_taken_away_are_missing() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !peers::bpftrace() {
        return;
    }
    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent.args(["record", "-k", "sched,profile", "--sample-rate", "997", "-o"]).arg(&dir);
    agent.args(["--", "bpftrace", "-e", SCRIPT, "-c", PROGRAM]);
    harness::assert_success(&agent.output().expect("the agent starts"));

    let trace = Trace::open(&dir).expect("a whole trace");
    let period = 1_000_000_000 / 997;
    let times = trace.rows::<ThreadTime>().map(|row| row.expect("a row"));
    let on_cpu = [Part::Running, Part::Hardirq, Part::Softirq, Part::Vector];
    let ran: i64 = times.filter(|row| on_cpu.contains(&row.part)).map(|row| row.spent_ns).sum();
    let taken = trace.rows::<Sample>().count() as u64;
    let samples = analyze::tally(&dir).expect("readable").expect("analysed").samples;
    gate::measured(&format!(
        "{ran} ns on CPUs, {taken} samples of 997 a second: {} missing of {}",
        samples.missing, samples.expected
    ));
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let expected = (ran / period) as u64;
    assert!(samples.expected.abs_diff(expected) <= expected / 10, "{expected} by the account");
    // How much of the time bpftrace's program takes depends on the machine.
    assert!(samples.missing > 0, "bpftrace was in nobody's way: {taken} of {expected}");
    // What is missing is what was not taken.
    assert!((samples.missing + taken).abs_diff(expected) <= expected / 10, "{taken} of {expected}");
}
