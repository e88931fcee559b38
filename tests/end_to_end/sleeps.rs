//! The table of sleeps: in which call a thread left its CPU, for which descriptor, and who held the mutex.

use std::collections::BTreeSet;
use std::process::Command;

use ft_trace::tables::{FileKind, SchedSwitch, Sleep};

use crate::harness::{self, Stage};

/// Times that the program sleeps in each way.
const TIMES: usize = 20;

/// Some may find that what they wait for has come already.
const SURE: usize = TIMES - 3;

#[test]
fn a_thread_sleeps_in_the_call_that_it_has_made() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !harness::has_probes() {
        return;
    }
    let (program, dir) = (stage.path("sleeper"), stage.path("trace"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/sleeper.c");
    let built = Command::new("cc").args(["-O1", "-pthread", source, "-o"]).arg(&program).status();
    assert!(built.expect("a C compiler").success());
    let mut agent = harness::agent();
    agent.args(["record", "-k", "sched", "-o"]).arg(&dir).arg("--").arg(&program);
    let output = agent.arg(TIMES.to_string()).output().expect("the agent starts");
    harness::assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = |line: &str| {
        let mut numbers = line.split(' ').map(str::parse::<i32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    let (main, other) = text.lines().find_map(numbers).expect("the numbers of its threads");

    let trace = harness::open(&dir);
    let rows: Vec<Sleep> = trace.rows::<Sleep>().map(|row| row.expect("a row")).collect();
    let of_main = |is: &dyn Fn(&Sleep) -> bool| {
        rows.iter().filter(|row| row.tid.0 == main && is(row)).count()
    };
    let in_call = |name: &'static str| move |row: &Sleep| row.call.as_deref() == Some(name);
    assert!(of_main(&in_call("clock_nanosleep")) >= TIMES, "{rows:?}");
    let in_pipe = |row: &Sleep| {
        in_call("read")(row) && row.file == Some(FileKind::Pipe) && row.argument[2] == Some(1)
    };
    assert!(of_main(&in_pipe) >= SURE, "{rows:?}");
    let in_mutex =
        |row: &Sleep| in_call("futex")(row) && row.word == Some(2) && row.owner == Some(other);
    assert!(of_main(&in_mutex) >= SURE, "{rows:?}");

    // Each is what a switch of its thread says no more of than that it slept.
    let asleep = trace.rows::<SchedSwitch>().map(|row| row.expect("a row"));
    let asleep = asleep.filter(|row| row.prev_pid.0 == main && !row.prev_state.is_runnable());
    let asleep = asleep.filter(|row| !row.prev_state.is_dead());
    let of_program = rows.iter().filter(|row| row.pid.0 == main);
    let sleeps: BTreeSet<_> = of_program.map(|row| (row.ts, row.cpu, row.tid)).collect();
    // All switches are recorded; its process may have slept before it was observed, and before it executed the program.
    let first = sleeps.first().expect("a sleep").0;
    let asleep = asleep.filter(|row| row.ts >= first);
    let switches: BTreeSet<_> = asleep.map(|row| (row.ts, row.cpu, row.prev_tid)).collect();
    assert_eq!(sleeps, switches);
}
