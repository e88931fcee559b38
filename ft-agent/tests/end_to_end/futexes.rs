//! Waits at futexes and semaphores: each that the subject has made is in the table, with its end, its waker and its time.

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{FutexEnd, FutexKind, FutexWait};
use serde_json::Value;

use crate::harness::{self, Stage, gate};
use crate::recomputed::agrees;

/// Rounds of the subject.
const ROUNDS: usize = 10;

/// Waits of one round.
const WAITS: usize = 10;

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
    let rounds = ROUNDS.to_string();
    let (truth, dir) =
        stage.record(&["-k", "default,futex,stack", "--stack-min", "1us"], &["futexes", &rounds]);
    let trace = harness::open(&dir);
    let rows: Vec<FutexWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let waits = truth["waits"].as_array().expect("waits");
    assert_eq!(waits.len(), ROUNDS * WAITS);
    let mut exact = 0;
    for wait in waits {
        let Some(r) = row(&rows, wait) else { panic!("no row of {wait}\n{rows:#?}") };
        check(r, wait);
        exact += usize::from(r.mark == Mark::Exact && sleeps(r, wait));
    }
    assert!(2 * exact > waits.len(), "{exact} of {} are exact", waits.len());
    named(&rows, &truth);
    killed(&rows, &truth);
    agrees("futexes", &dir);
    drop(trace);
    gate::measured(&format!("{exact} of {} waits at futexes are exact", waits.len()));
}

/// What is so whatever the machine does: the clock is the same.
fn check(r: &FutexWait, wait: &Value) {
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
    let call = wait["call"].as_str().filter(|call| !call.is_empty());
    if r.mark != Mark::Exact {
        return;
    }
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
fn sleeps(r: &FutexWait, wait: &Value) -> bool {
    let parts = r.parts.expect("a kernel stream");
    assert_eq!(parts.total_ns(), r.dur, "{r:?}");
    let (asleep, [woke, _]) = (wait["asleep"].as_i64().expect("a time"), pair(wait, "wakes"));
    if asleep != 0 {
        assert!(parts.blocked_ns >= woke - asleep, "{wait}\n{r:?}");
        assert!(r.stack.is_some() && r.waker_stack.is_some(), "{wait}\n{r:?}");
    }
    true
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

/// Waits that go on when the recording ends are in the table, however long ago they began.
#[test]
fn a_wait_that_goes_on_when_the_recording_ends_is_told() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    // The agent ends with its command, and the process that the command leaves behind waits on.
    let script = "$0 waits-on > $1 2>&1 & until [ -s $1 ]; do sleep 0.1; done; echo $!";
    let mut agent = harness::agent();
    agent.args(["record", "-k", "default,futex", "-o"]).arg(&dir);
    agent.args(["--", "sh", "-c", script]).arg(harness::subject()).arg(stage.path("truth"));
    let output = agent.output().expect("the agent starts");
    harness::assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let subject: i32 = text.lines().find_map(|line| line.parse().ok()).expect("its number");
    // SAFETY: the process is a child of a shell that has ended.
    unsafe { libc::kill(subject, libc::SIGKILL) };
    let trace = Trace::open(&dir).expect("a whole trace");
    let rows: Vec<FutexWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let goes_on = |r: &&FutexWait| r.pid.0 == subject && r.end == FutexEnd::Trace;
    let row = rows.iter().find(goes_on);
    let row = row.unwrap_or_else(|| panic!("no wait goes on: {rows:?}"));
    assert_eq!((row.mark, row.waker_tid), (Mark::Censored, None), "{row:?}");
}
