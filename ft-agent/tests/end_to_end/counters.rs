//! `--counter`: what threads count in their holds and polls, as far as that can be shown on any machine: counters of the kernel, read by a
//! system call. A machine with counters of the processor's shows those, too; another one says that it has none.

use ft_trace::tables::{CriticalSection, SiteKind, UserEvent};
use ft_user::counters::Open;
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
