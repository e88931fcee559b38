//! Waits at futexes and semaphores: each that the subject has made is in the table, with its end, its waker and its time.

use std::path::Path;
use std::process::Command;

use ft_report::code::Code;
use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{FutexEnd, FutexKind, FutexWait, Sleep};
use serde_json::Value;

use crate::errors;
use crate::harness::{self, Stage, assert_success, gate};
use crate::holes::Holes;
use crate::recomputed::agrees;

/// Rounds of the subject, in the short form.
const ROUNDS: usize = 10;

/// Waits of one round.
const WAITS: usize = 11;

/// Two times of a truth.
fn pair(truth: &Value, name: &str) -> [i64; 2] {
    [0, 1].map(|i| truth[name][i].as_i64().expect("a time"))
}

/// The row of a wait.
fn row<'r>(rows: &'r [FutexWait], truth: &Value) -> Option<&'r FutexWait> {
    let [from, to] = pair(truth, "around");
    let (tid, kind) = (truth["tid"].as_i64(), truth["kind"].as_str().expect("a kind"));
    let address = truth["address"].as_i64().expect("an address");
    let mut found = rows.iter().filter(|r| {
        Some(i64::from(r.tid.0)) == tid
            && r.kind == FutexKind::of(kind)
            && (address == 0 || r.address == address)
            && (from..to).contains(&r.ts.0)
    });
    // A lock may be found taken more than once: the last wait is the one that was ended.
    found.next_back()
}

#[test]
fn every_wait_at_a_futex_has_its_end_its_waker_and_its_time() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let waits = harness::rounds(ROUNDS) * WAITS;
    let rounds = harness::rounds(ROUNDS).to_string();
    let options = ["-k", "default,futex,stack", "--stack-min", "1us"];
    let mut exact = 0;
    let (_, dir) = stage.record_until(&options, &["futexes", &rounds], |truth, trace| {
        assert_eq!(truth["waits"].as_array().expect("waits").len(), waits);
        exact = judge(truth, trace);
        exact >= waits / 2
    });
    agrees("futexes", &dir);
    gate::measured(&format!("{exact} of {waits} waits at futexes are exact"));
}

/// Each wait of a program has its row; how many of them could be judged whole.
pub(crate) fn judge_each(waits: &[Value], trace: &Trace, rows: &[FutexWait]) -> usize {
    let holes = Holes::of(trace);
    let mut exact = 0;
    for wait in waits {
        let Some(r) = row(rows, wait) else { panic!("no row of {wait}\n{rows:#?}") };
        told(r, wait);
        if holes.judged(r.mark, r.ts.0, r.dur) {
            woken(r, wait);
            slept(r, wait);
            exact += 1;
        }
    }
    exact
}

/// How many of the waits could be judged whole.
fn judge(truth: &Value, trace: &Trace) -> usize {
    let rows: Vec<FutexWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let waits = truth["waits"].as_array().expect("waits");
    let exact = judge_each(waits, trace, &rows);
    no_others(&rows, waits, truth["named"].as_i64().expect("an address"));
    named(&rows, truth);
    killed(&rows, truth);
    exact
}

/// What is so whatever the machine does: the clock is the same.
fn told(r: &FutexWait, wait: &Value) {
    let [from, to] = pair(wait, "around");
    assert!(from <= r.ts.0 && r.ts.0 + r.dur <= to, "{wait}\n{r:?}");
    assert_eq!(r.end.word(), wait["end"].as_str().expect("an end"), "{wait}\n{r:?}");
    let timeout = wait["timeout_ns"].as_i64().filter(|ns| *ns != 0);
    match (timeout, r.timeout_ns) {
        (Some(asked), Some(found)) if r.end == FutexEnd::TimedOut => {
            assert_eq!(found, asked, "{r:?}");
            assert!(r.dur >= asked, "{r:?}");
        }
        // A deadline was made of it before.
        (Some(asked), Some(found)) => assert!((0..=asked).contains(&found), "{wait}\n{r:?}"),
        (None, None) => {}
        _ => panic!("{wait}\n{r:?}"),
    }
    let owner = wait["owner"].as_i64().filter(|tid| *tid != 0);
    assert_eq!(r.owner_tid.map(i64::from), owner, "{wait}\n{r:?}");
}

/// Who ended it, and when.
fn woken(r: &FutexWait, wait: &Value) {
    let call = wait["call"].as_str().filter(|call| !call.is_empty());
    let [woke, woken] = pair(wait, "wakes");
    if woke != 0 {
        assert_eq!(r.waker_tid.map(i64::from), wait["waker"].as_i64(), "{wait}\n{r:?}");
        let at = r.ts.0 + r.woken_ns.expect("a wake-up");
        assert!((woke..=woken).contains(&at), "{wait}\n{r:?}");
    } else {
        assert_eq!((r.waker_tid, r.woken_ns), (None, None), "{wait}\n{r:?}");
    }
    assert_eq!(r.waker_call.map(FutexKind::word), call, "{wait}\n{r:?}");
}

/// Of one that is known to have slept from some time to another: so do the parts say.
fn slept(r: &FutexWait, wait: &Value) {
    let parts = r.parts.expect("a kernel stream");
    assert_eq!(parts.total_ns(), r.dur, "{r:?}");
    let (asleep, [woke, _]) = (wait["asleep"].as_i64().expect("a time"), pair(wait, "wakes"));
    if asleep != 0 {
        assert!(parts.blocked_ns >= woke - asleep, "{wait}\n{r:?}");
        assert!(r.stack.is_some() && r.waker_stack.is_some(), "{wait}\n{r:?}");
    }
}

/// Of the waits at this address there are no more than the program has made.
fn no_others(rows: &[FutexWait], waits: &[Value], at: i64) {
    let made = waits.iter().filter(|wait| wait["address"].as_i64() == Some(at)).count();
    let mut rows: Vec<_> = rows.iter().filter(|r| r.address == at).collect();
    rows.sort_by_key(|r| (r.tid.0, r.ts));
    assert_eq!(rows.len(), made, "{rows:#?}");
}

/// The variable has its name.
fn named(rows: &[FutexWait], truth: &Value) {
    let at = truth["named"].as_i64().expect("an address");
    let names: Vec<&str> = rows.iter().filter(|r| r.address == at).map(|r| &*r.name).collect();
    assert!(!names.is_empty() && names.iter().all(|n| n.contains("NAMED_FUTEX")), "{names:?}");
    let mutex = |r: &&FutexWait| r.name.contains("STD_MUTEX");
    assert!(rows.iter().any(|r| mutex(&r)), "the standard library's mutex is a variable");
}

/// The thread that was killed in its wait, when the process ended.
fn killed(rows: &[FutexWait], truth: &Value) {
    let left = truth["left"].as_i64().expect("a thread");
    let last = rows.iter().filter(|r| i64::from(r.tid.0) == left).max_by_key(|r| r.ts);
    let last = last.expect("its wait");
    assert_eq!((last.end, last.waker_tid), (FutexEnd::Interrupted, Some(last.pid.0)), "{last:?}");
}

/// A recording without the group says how long threads were blocked and how to learn at what, and names no cause.
#[test]
fn without_the_group_the_summary_says_how_long_threads_were_blocked() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let mut blocked = 0;
    let (_, dir) = stage.record_until(&[], &["futexes", "1"], |truth, trace| {
        let report = |options: &[&str]| {
            let mut agent = harness::agent();
            agent.arg("report").arg(trace.dir()).arg("summary").args(options);
            let output = agent.output().expect("the agent starts");
            assert_success(&output);
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let values: Value = serde_json::from_str(&report(&["--json"])).expect("JSON");
        let values = &values["sections"]["summary"]["values"];
        blocked = values["time"]["blocked_ns"].as_i64().expect("a time");
        let text = report(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
        let told = text.split_once("no hold was recorded; threads were blocked for ");
        let (_, told) = told.unwrap_or_else(|| panic!("{text}"));
        let told = told.strip_prefix("at least ").unwrap_or(told);
        // Since Linux 5.15 the calls are known in which threads sleep.
        let known = match trace.rows::<Sleep>().next() {
            Some(_) => " of their time; `ft-agent findings` says at what:",
            None => " of their time; whether that was at locks was not recorded:",
        };
        assert!(told.contains(known), "{text}");
        let remedies = ["-k default,futex records waits at futexes and semaphores", "--preload"];
        assert!(remedies.iter().all(|remedy| told.contains(remedy)), "{text}");
        // One thread sleeps at a time, for sure from when that was seen until it is woken.
        let waits = truth["waits"].as_array().expect("waits").iter();
        let asleep = waits.filter_map(|wait| {
            let asleep = wait["asleep"].as_i64().filter(|ts| *ts != 0)?;
            Some(pair(wait, "wakes")[0] - asleep)
        });
        // What holes hide is not known to be blocked.
        blocked >= asleep.sum()
    });
    assert_eq!(harness::open(&dir).rows::<FutexWait>().count(), 0);
    gate::measured(&format!(
        "threads were blocked for {blocked} ns, in a recording without futexes"
    ));
}

/// Waits that go on when the recording ends are in the table, however long ago they began.
#[test]
fn a_wait_that_goes_on_when_the_recording_ends_is_told() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (subject, trace) = stage.record_left_behind(&["-k", "default,futex"], "waits-on");
    let rows: Vec<FutexWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let goes_on = |r: &&FutexWait| r.pid.0 == subject && r.end == FutexEnd::Trace;
    let row = rows.iter().find(goes_on);
    let row = row.unwrap_or_else(|| panic!("no wait goes on: {rows:?}"));
    assert_eq!((row.mark, row.waker_tid), (Mark::Censored, None), "{row:?}");
}

/// Go's locks and channels call nobody's library: its runtime's threads wait at futexes.
#[test]
fn each_wait_of_a_thread_of_go_is_seen() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if Command::new("go").arg("version").output().is_err() {
        return gate::skipped("go is not installed (Debian: golang-go)");
    }
    let program = stage.path("handover");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/handover.go");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(source);
    // Nothing of whoever runs the test, and nothing of the network.
    go.env("GOCACHE", stage.path("go")).env("GO111MODULE", "off").env("GOFLAGS", "");
    assert_success(&go.output().expect("go starts"));
    let rounds = harness::rounds(ROUNDS);
    let mut record = harness::agent();
    record.args(["record", "-k", "default,futex,stack", "--stack-min", "1us", "-o"]);
    record.arg(stage.path("go-trace")).arg("--").arg(&program).arg(rounds.to_string());
    let output = record.output().expect("the agent starts");
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with('{')).expect("the program's truth");
    let truth: Value = serde_json::from_str(line).expect("JSON");

    let trace = harness::open(&stage.path("go-trace"));
    let code = Code::read(&trace).expect("tables");
    let first = errors::tid(&truth, "first");
    let waits: Vec<FutexWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let (mut seen, mut named) = (0, 0);
    for [given, back] in errors::rounds(&truth) {
        let inside = |w: &&FutexWait| {
            w.tid.0 == first
                && given <= w.ts.0
                && w.ts.0 + w.dur <= back
                && w.end == FutexEnd::Woken
        };
        let Some(wait) = waits.iter().rfind(inside) else { continue };
        seen += 1;
        // Whichever thread of the runtime finds that it can go on.
        assert_eq!(wait.waker_pid.map(i64::from), truth["pid"].as_i64(), "{wait:?}");
        let chain = code.chain(wait.stack);
        let has = |name: &str| chain.iter().any(|frame| &*frame.label == name);
        named +=
            usize::from(has("runtime.futex") && has("runtime.stoplockedm") && has("main.main"));
    }
    // The token can be back before a thread has got to its wait, but hardly ever, since it is away for a millisecond.
    assert!(2 * seen >= rounds && 2 * named >= seen, "{seen} waits, {named} with their names");
    agrees("Go", &stage.path("go-trace"));
    gate::measured(&format!(
        "{seen} of {rounds} waits of a thread of Go, {named} with its runtime's names"
    ));
}
