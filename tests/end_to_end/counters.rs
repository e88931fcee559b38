//! `--counter`, what threads count in their holds and polls, and `--switch-counter`, what the kernel counts while they have a CPU, as far as
//! that can be shown on any machine: counters of the kernel, by threads read by a system call. A machine with counters of the processor's shows those, too; another one says that it has none.

use std::collections::{BTreeMap, BTreeSet};

use ft_trace::store::{Row, Trace};
use ft_trace::tables::{
    CpuCount, CriticalSection, LossRow, PageFault, SchedSwitch, SiteKind, UserEvent,
};
use ft_user::counters::{Open, open_on_cpu};
use ft_user::layout::Counter;

use crate::harness::{self, Stage, open};
use crate::recomputed::agrees;
use crate::tasks;

/// All in one line.
fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_hold_has_the_page_faults_and_the_time_that_its_thread_took_in_it() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let options = ["--counter", "page-faults,task-clock", "--counter-calls"];
    let (truth, dir) = stage.record(&options, &["counters", "50"]);
    let trace = open(&dir);
    let start = &trace.meta().start;
    assert_eq!(
        (&start.counters[..], start.counter_calls),
        (&["page-faults", "task-clock"].map(String::from)[..], true)
    );
    assert_eq!(start.event_cost_ns, None, "what was measured without counters");
    let tid = truth["tid"].as_i64().expect("a thread") as i32;
    // Those of user space are counted; the kernel has some more of its own.
    let [touched, faults] = [0, 1].map(|i| truth["faults"][i].as_i64().expect("a number"));
    let holds = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
    let holds: Vec<_> = holds.filter(|hold| hold.tid.0 == tid).collect();
    let hold = |name: &str| holds.iter().find(|h| &*h.lock_name == name).expect("it was held");
    let (inner, outer) = (hold("inner"), hold("outer"));
    let [Some(inner_faults), Some(inner_ns)] = inner.counter else { panic!("{inner:?}") };
    let [Some(outer_faults), Some(outer_ns)] = outer.counter else { panic!("{outer:?}") };
    assert!((touched..=faults).contains(&inner_faults), "{touched} {inner_faults} {faults}");
    assert!(inner_faults <= outer_faults && inner_ns <= outer_ns, "{inner:?} {outer:?}");
    // It spins in half of the time, and the time on a CPU is in no hold twice.
    assert!((1..=inner.dur).contains(&inner_ns), "{inner:?}");
    let readings = trace.rows::<UserEvent>().map(|row| row.expect("a row"));
    let readings = readings.filter(|event| event.kind == SiteKind::Counters).count();
    assert!(readings >= 4, "{readings}");

    let report = harness::agent().args(["report"]).arg(&dir).arg("locks").output().unwrap();
    harness::assert_success(&report);
    let text = said(&report.stdout);
    assert!(
        text.contains(
            "counters page-faults, task-clock in user space (task-clock: all time on a CPU), by"
        ),
        "{text}"
    );
    assert!(
        text.contains("What counters counted in each") && text.contains("page-faults"),
        "{text}"
    );
    agrees("counters", &dir);
}

#[test]
fn a_task_has_what_was_counted_in_its_polls() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (_, dir) = stage.record(&["--counter", "task-clock", "--counter-calls"], &["tasks", "5"]);
    let lives = tasks::lives(&open(&dir));
    for (task, polls) in lives.values().flatten() {
        let of_polls = polls.iter().map(|poll| poll.counter[0]).sum::<Option<i64>>();
        assert_eq!(task.counter, [of_polls.filter(|_| !polls.is_empty()), None], "{task:?}");
    }
    let busy: Vec<_> = lives["busy"].iter().map(|(task, _)| task.counter[0]).collect();
    assert!(busy.len() == 5 && busy.iter().all(|ns| *ns > Some(0)), "it runs: {busy:?}");
    agrees("counters of tasks", &dir);

    let report = harness::agent().args(["report"]).arg(&dir).arg("tasks").output().unwrap();
    harness::assert_success(&report);
    let text = said(&report.stdout);
    let said =
        "What counters counted in each, on a CPU in user space and in the kernel: task-clock";
    assert!(text.contains(said), "{text}");
}

#[test]
fn counters_of_the_processor_are_read_or_missed_before_anything_is_recorded() {
    let stage = Stage::enter();
    let (trace, subject) = (stage.path("trace"), harness::subject());
    let mut command = harness::agent();
    command
        .args(["record", "-k", "none", "--counter", "instructions,cache-misses", "-o"])
        .arg(&trace);
    let output =
        command.arg("--").arg(subject).args(["counters", "5"]).output().expect("the agent");
    let names = ["instructions", "cache-misses"];
    let opened = names
        .map(|name| Open::new(Counter::named(name).expect("it is one"), false).map(Open::close));
    let error = said(&output.stderr);
    if opened.iter().all(Result::is_ok) {
        harness::assert_success(&output);
        let trace = open(&trace);
        let mut holds = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
        assert!(holds.any(|hold| hold.counter[0].is_some_and(|n| n > 0)), "{error}");
    } else {
        assert_eq!(output.status.code(), Some(1), "{error}");
        let first = names.iter().zip(opened).find_map(|(name, opened)| opened.err().map(|_| *name));
        let expected = format!("counter '{}'", first.expect("one that failed"));
        assert!(error.contains(&expected) && error.contains("ft-agent doctor"), "{error}");
        assert!(!trace.exists(), "nothing was recorded");
    }
}

/// All rows of a table.
fn rows<R: Row>(trace: &Trace) -> Vec<R> {
    trace.rows().map(|row| row.expect("a row")).collect()
}

#[test]
fn each_stretch_on_a_cpu_has_the_page_faults_that_were_recorded_in_it() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let options = ["-k", "default,fault", "--switch-counter", "page-faults,major-faults"];
    let (truth, dir) = stage.record(&options, &["counters", "50"]);
    let trace = open(&dir);
    assert_eq!(trace.meta().start.switch_counters, ["page-faults", "major-faults"]);
    assert_eq!(rows::<LossRow>(&trace), []);
    let counts: Vec<CpuCount> = rows(&trace);

    // By the faults of the kernel's group: each is recorded, and then counted (`do_user_addr_fault`, arch/x86/mm/fault.c). An
    // interrupt between the two may take the CPU; then it is counted in the thread's next stretch.
    let mut faults = BTreeMap::<i32, Vec<i64>>::new();
    for fault in rows::<PageFault>(&trace).into_iter().filter(|fault| !fault.in_kernel) {
        faults.entry(fault.tid.0).or_default().push(fault.ts.0);
    }
    // The command may have faulted in its first stretch before it was observed; the others are observed from their fork on.
    let first = counts.iter().min_by_key(|row| row.ts).expect("a stretch");
    let mut recorded_before = BTreeMap::<i32, i64>::new();
    for row in counts.iter().filter(|row| *row != first) {
        let within = row.ts.0..row.ts.0 + row.dur;
        let of_thread = faults.get(&row.tid.0).map_or(&[][..], Vec::as_slice);
        let recorded = of_thread.iter().filter(|ts| within.contains(ts)).count() as i64;
        let [Some(counted), Some(_)] = row.counter else { panic!("{row:?}") };
        let not_yet = recorded_before.entry(row.tid.0).or_default();
        *not_yet += recorded - counted;
        let lowest = if row.tid == first.tid { -1 } else { 0 };
        assert!((lowest..=1).contains(not_yet), "{recorded} recorded, {not_yet} not yet: {row:?}");
    }
    let major: i64 = counts.iter().filter_map(|row| row.counter[1]).sum();
    assert!(major <= faults.values().map(|of_thread| of_thread.len() as i64).sum(), "{major}");

    // Of each process all stretches since it was observed, and no others.
    let mut observed = BTreeMap::<i32, i64>::new();
    for row in &counts {
        let first = observed.entry(row.pid.0).or_insert(row.ts.0);
        *first = row.ts.0.min(*first);
    }
    let mut came = BTreeMap::new();
    let mut stretches = BTreeSet::new();
    for switch in rows::<SchedSwitch>(&trace) {
        if let Some((ts, tid)) = came.insert(switch.cpu.0, (switch.ts.0, switch.next_tid.0))
            && tid == switch.prev_tid.0
            && observed.get(&switch.prev_pid.0).is_some_and(|first| ts >= *first)
        {
            stretches.insert((switch.cpu.0, ts, switch.ts.0 - ts, tid));
        }
    }
    let counted: BTreeSet<_> =
        counts.iter().map(|row| (row.cpu.0, row.ts.0, row.dur, row.tid.0)).collect();
    assert_eq!(counted.len(), counts.len());
    let others: Vec<_> = counted.symmetric_difference(&stretches).collect();
    assert!(others.is_empty(), "{others:?}");

    let tid = truth["tid"].as_i64().expect("a thread") as i32;
    let [touched, faults] = [0, 1].map(|i| truth["faults"][i].as_i64().expect("a number"));
    let of_thread: i64 =
        counts.iter().filter(|row| row.tid.0 == tid).filter_map(|row| row.counter[0]).sum();
    // The thread faults before and after what it tells of, too.
    assert!(of_thread >= touched, "{of_thread} of {touched} to {faults}");

    let report = harness::agent().args(["report"]).arg(&dir).arg("time").output().unwrap();
    harness::assert_success(&report);
    let text = said(&report.stdout);
    let title = "What counters counted while threads had a CPU, in user space: page-faults";
    assert!(text.contains(title), "{text}");
    agrees("counters at switches", &dir);
}

#[test]
fn a_counter_that_no_cpu_has_is_missed_before_anything_is_recorded() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let trace = stage.path("trace");
    let mut command = harness::agent();
    command.args(["record", "--switch-counter", "instructions", "-o"]).arg(&trace);
    let output = command.args(["--", "true"]).output().expect("the agent");
    let error = said(&output.stderr);
    let counter = Counter::named("instructions").expect("it is one");
    if open_on_cpu(counter, 0).is_ok() {
        harness::assert_success(&output);
        assert!(rows::<CpuCount>(&open(&trace)).iter().any(|row| row.counter[0] > Some(0)));
    } else {
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("no counter 'instructions'"), "{error}");
        assert!(!trace.exists(), "nothing was recorded");
    }
}
