//! What a process has started is recorded with it, also what it had started before; or neither.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use ft_trace::store::Trace;
use ft_trace::tables::ThreadRow;

use crate::gate;

/// A shell that does nothing, whose child starts others over and over.
const FAMILY: &str = "(while :; do sleep 0.02; done) & echo $!; wait";

fn record(trace: &Path, arguments: &[&str]) {
    let mut agent = Command::new(ft_tests::agent());
    agent.args(["record", "-k", "sched,task", "-o"]).arg(trace).args(arguments);
    let output = agent.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The processes that were recorded.
fn observed(trace: &Path) -> BTreeSet<i32> {
    let threads = Trace::open(trace).unwrap().rows::<ThreadRow>();
    threads.map(Result::unwrap).filter(|row| row.observed).map(|row| row.pid.0).collect()
}

#[test]
fn processes_that_were_started_before_are_recorded_unless_they_are_left_out() {
    if !gate::recordable_or_skip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [with, without] = ["with", "without"].map(|name| dir.path().join(name));
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", FAMILY]).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(shell.stdout.take().unwrap()),
        &mut child,
    )
    .unwrap();
    let (named, child) = (shell.id() as i32, child.trim().parse::<i32>().unwrap());
    record(&with, &["-d", "1s", "-p", &named.to_string()]);
    record(&without, &["-d", "1s", "--no-children", "-p", &named.to_string()]);
    // SAFETY: ends a child of a child of ours, which lives until its parent has waited for it.
    unsafe { libc::kill(child, libc::SIGKILL) };
    shell.wait().unwrap();

    let found = observed(&with);
    assert!(found.contains(&named) && found.contains(&child), "{found:?}");
    assert!(found.len() > 4, "and those that were started meanwhile: {found:?}");
    assert_eq!(observed(&without), BTreeSet::from([named]));
}

#[test]
fn a_command_is_recorded_without_its_children_if_they_are_left_out() {
    if !gate::recordable_or_skip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    for (options, expected) in [(&[][..], 3), (&["--no-children"][..], 1)] {
        let _ = std::fs::remove_dir_all(&trace);
        record(&trace, &[options, &["--", "sh", "-c", "sleep 0.1; sleep 0.1; :"]].concat());
        assert_eq!(observed(&trace).len(), expected, "{options:?}");
    }
}
