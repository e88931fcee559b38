//! Every result against a second implementation: `tests/oracle`, in Python, written from the meaning of the columns,
//! recomputes the result tables from the raw ones. No row may differ.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{
    CriticalSection, DispatchLatency, LockWait, LossOrigin, LossRow, UnfinishedWait,
};

use crate::errors;
use crate::harness::{self, Stage, assert_success, gate};
use crate::recomputed::{agrees, agrees_in_spite_of_losses, oracle};

/// Records a command with these options into a folder of this name.
fn record(stage: &Stage, name: &str, options: &[&str], command: &[&str]) -> (PathBuf, Output) {
    let dir = stage.path(name);
    let mut agent = harness::agent();
    agent.args(["record", "-o"]).arg(&dir).args(options).arg("--").args(command);
    // For those that are recorded with it.
    agent.env("FT_PRELOAD", harness::preload());
    let output = agent.output().expect("the agent starts");
    (dir, output)
}

#[test]
fn all_tables_of_the_demo_are_recomputed_from_the_raw_ones() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let demo = harness::example("ft-user", "demo");
    let demo = demo.to_str().expect("UTF-8");
    let (dir, output) = record(&stage, "demo", &[], &[demo, "--seconds", "3"]);
    assert_success(&output);
    let losses = harness::open(&dir).rows::<LossRow>().map(|loss| loss.expect("a row").count);
    gate::measured(&format!("{} events and records of the demo lost", losses.sum::<i64>()));
    if !agrees("the demo", &dir) {
        return;
    }
    // It would notice: without its rows, every hold is missing.
    let emptied = dir.join("critical_sections");
    for part in std::fs::read_dir(&emptied).expect("parts") {
        std::fs::remove_file(part.expect("a part").path()).expect("removed");
    }
    let output = oracle(&dir).expect("a Python");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && text.contains(": missing: "), "{text}");
}

#[test]
fn a_lock_that_changes_hands_all_the_time_is_recomputed_and_has_its_known_counts() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    // On a machine that was late, the hold before the long turns may be the longest, or not be waited for.
    let as_planned = |&[_, _, inside, _, before]: &[i64; 5]| (1..inside).contains(&before);
    let (truth, dir) = stage.record_until(&[], &["convoy", "3"], |truth, _| {
        errors::rounds(truth).iter().any(as_planned)
    });
    let trace = harness::open(&dir);
    let bound = 2 * trace.meta().clock.bound_ns;
    let waits: Vec<LockWait> = trace.rows().map(|row| row.expect("a row")).collect();
    for [waiter, holder, inside, outside, _] in
        errors::rounds(&truth).into_iter().filter(as_planned)
    {
        let mut of_it = waits.iter().filter(|wait| i64::from(wait.tid.0) == waiter);
        let (Some(wait), None) = (of_it.next(), of_it.next()) else { panic!("{waits:?}") };
        // The long turns were the longest time, although they were long over when the wait ended.
        assert_eq!(i64::from(wait.holders), truth["holds"].as_i64().expect("a number"), "{wait:?}");
        assert_eq!(wait.holder_tid.map(i64::from), Some(holder), "{wait:?}");
        let turns = 100 * bound;
        let held = wait.holder_ns.expect("a holder");
        assert!((inside - turns..=outside + turns).contains(&held), "{wait:?}");
    }
    let condition = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
    let waited = condition.filter(|hold| &*hold.lock_name == "queue" && hold.condition).count();
    assert!(waited > 0, "nobody waited for the condition");
    let fatal: Vec<UnfinishedWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let tids = &truth["deadlock"].as_array().expect("two threads");
    assert_eq!(fatal.len(), 2, "{fatal:?}");
    assert!(fatal.iter().all(|wait| tids.contains(&wait.tid.0.into()) && wait.cycle.is_some()));
    agrees("convoys, readers, a condition and a deadlock", &dir);
}

#[test]
fn all_tables_of_the_whole_system_are_recomputed_from_the_raw_ones() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !Path::new("/usr/bin/hackbench").exists() {
        return gate::skipped("hackbench is not installed (Debian: rt-tests)");
    }
    let hackbench = ["hackbench", "-g", "4", "-l", "200"];
    let (dir, output) = record(&stage, "hackbench", &["-a"], &hackbench);
    assert_success(&output);
    let trace = Trace::open(&dir).expect("a whole trace");
    let wakes: Vec<DispatchLatency> = trace.rows().map(|row| row.expect("a row")).collect();
    let exact = wakes.iter().filter(|wake| wake.mark == Mark::Exact).count();
    // Each of the 160 has to be woken now and then; what a loss touches is left out, so it must not be most.
    assert!(exact >= 1000 && 2 * exact > wakes.len(), "{exact} of {} are exact", wakes.len());
    agrees("the whole system under hackbench", &dir);
}

#[test]
fn what_is_said_of_the_whole_system_in_spite_of_losses_is_recomputed() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !Path::new("/usr/bin/hackbench").exists() {
        return gate::skipped("hackbench is not installed (Debian: rt-tests)");
    }
    // A page for all CPUs is full whenever the agent does not come at once.
    let options = ["-a", "--kernel-buffer", "4K"];
    let dir = lossy(|| {
        let hackbench = ["hackbench", "-g", "4", "-l", "100"];
        let (dir, output) = record(&stage, "lossy", &options, &hackbench);
        assert_success(&output);
        dir
    });
    agrees_in_spite_of_losses("the whole system with losses", &dir);
}

#[test]
fn what_is_said_of_locks_and_tasks_in_spite_of_losses_is_recomputed() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    for scenario in [&["convoy", "3"][..], &["tasks"]] {
        let dir = lossy(|| stage.record(&["-k", "all", "--kernel-buffer", "4K"], scenario).1);
        agrees_in_spite_of_losses(&format!("{scenario:?} with losses"), &dir);
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
}

/// A recording that has lost records of the kernel: the first of eight.
fn lossy(record: impl Fn() -> PathBuf) -> PathBuf {
    for _ in 0..8 {
        let dir = record();
        if lost_by_the_kernel(&Trace::open(&dir).expect("a whole trace")) > 0 {
            return dir;
        }
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
    panic!("nothing was lost");
}

/// How many of the kernel's records a trace says are missing.
fn lost_by_the_kernel(trace: &Trace) -> i64 {
    let losses = trace.rows::<LossRow>().map(|row| row.expect("a row"));
    losses.filter(|loss| loss.origin.is_kernel()).map(|loss| loss.count).sum()
}

#[test]
fn all_tables_of_a_program_that_knows_nothing_of_tracing_are_recomputed() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let program = stage.path("locks");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu17", "-g", "-O1", "-pthread", "-o"]).arg(&program);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/locks.c");
    assert_success(&compiler.arg(source).output().expect("a C compiler, cc"));
    // With its call chains and samples, and the locks of each.
    let options = ["--preload", "-k", "default,stack,profile", "--stack-min", "1us"];
    let (dir, output) = record(&stage, "preload", &options, &[program.to_str().expect("UTF-8")]);
    assert_success(&output);
    let holds = harness::open(&dir).rows::<CriticalSection>().map(|row| row.expect("a row"));
    let mut kinds: Vec<String> = holds.map(|hold| hold.kind.to_string()).collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, ["mutex", "rwlock-read", "rwlock-write", "spin"]);
    agrees("pthread locks, semaphores, recursion and an exec", &dir);
}

#[test]
fn all_tables_with_waits_inside_the_kernel_are_recomputed() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (_, dir) = stage.record(&["-k", "all"], &["kernel-groups", "20"]);
    harness::open(&dir);
    agrees("waits inside the kernel", &dir);
}

/// Where records are missing, rows that are marked hold as far as they promise, and those that are not as all do.
#[test]
fn all_tables_of_a_trace_with_losses_are_recomputed() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let subject = harness::subject().to_str().expect("UTF-8");
    // The agent stands still again and again, and rings that are small are full; in the end for so long that one is for certain.
    let script = "(while sleep 0.01; do kill -STOP $PPID; sleep 0.01; kill -CONT $PPID; done) & \
                  $0 variety 4000; kill $!; wait $!; kill -CONT $PPID; exec $0 variety-unread 4000";
    let command = ["sh", "-c", script, subject];
    let (dir, output) = record(&stage, "lossy", &["--ring-size", "128K"], &command);
    assert_success(&output);
    let losses = Trace::open(&dir).expect("a whole trace").rows::<LossRow>();
    let of_rings = |loss: &LossRow| loss.origin == LossOrigin::Ring;
    let losses = losses.map(|loss| loss.expect("a row")).filter(of_rings).count();
    assert!(losses > 0, "no ring was full");
    gate::measured(&format!("{losses} places where events were lost, on purpose"));
    agrees("a trace with losses", &dir);
}
