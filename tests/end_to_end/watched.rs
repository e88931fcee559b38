//! Calls about futexes beside strace and bpftrace, which watch the same run: none more, none less, and each with its result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ft_trace::store::Trace;
use ft_trace::tables::{FutexCall, FutexKind};
use serde_json::Value;

use crate::harness::{self, Stage, assert_success};
use crate::libraries::{compile, said};
use crate::peers;

/// Rounds of the program that is watched: a call of each of two threads in each, at least.
const ROUNDS: usize = 20;

/// Calls by thread, kind and result: a negated `errno`, or how many were woken.
type Calls = BTreeMap<(i64, &'static str, i64), usize>;

/// Those of a process.
fn ours(trace: &Trace, pid: i64) -> Calls {
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let mut calls = Calls::new();
    for call in trace.rows::<FutexCall>().map(|row| row.expect("a row")) {
        if i64::from(call.pid.0) == pid {
            *calls.entry((call.tid.0.into(), call.kind.word(), call.ret)).or_default() += 1;
        }
    }
    calls
}

/// The kind of an operation, without its flags, that the program's library asks for.
fn kind(operation: i64) -> &'static str {
    match operation as i32 {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => FutexKind::Wait.word(),
        libc::FUTEX_WAKE => FutexKind::Wake.word(),
        other => panic!("operation {other}"),
    }
}

/// Those in what strace has written: of a line for each call, or two where others came between.
fn straced(text: &str) -> Calls {
    let mut calls = Calls::new();
    let mut begun: BTreeMap<i64, &'static str> = BTreeMap::new();
    for line in text.lines() {
        let (tid, told) = line.split_once(' ').expect("a thread");
        let (tid, told) = (tid.parse().expect("a number"), told.trim_start());
        if let Some(call) = told.strip_prefix("futex(") {
            let operation = call.split(", ").nth(1).expect("an operation");
            let operation = operation.split(['|', ')', ' ']).next().unwrap_or_default();
            begun.insert(
                tid,
                match operation.trim_end_matches("_PRIVATE") {
                    "FUTEX_WAIT" | "FUTEX_WAIT_BITSET" => kind(libc::FUTEX_WAIT.into()),
                    "FUTEX_WAKE" => kind(libc::FUTEX_WAKE.into()),
                    other => panic!("{other}: {line}"),
                },
            );
        } else if !told.starts_with("<... futex resumed>") {
            // A signal, or the end of a thread.
            continue;
        }
        if let Some((_, result)) = told.rsplit_once(" = ") {
            let errors = [("EAGAIN", libc::EAGAIN), ("ETIMEDOUT", libc::ETIMEDOUT)];
            let error = errors.iter().find(|(name, _)| result.contains(name));
            let number = result.split(' ').next().unwrap_or_default();
            let result = match error {
                Some((_, errno)) => -i64::from(*errno),
                None => number.parse().unwrap_or_else(|_| panic!("{line}")),
            };
            let kind = begun.remove(&tid).expect("a call that had begun");
            *calls.entry((tid, kind, result)).or_default() += 1;
        }
    }
    calls
}

/// Records the program while another one watches it, which `watch` has before the program and its argument; returns the
/// program's process, what was printed, and the trace.
fn record(stage: &Stage, program: &Path, watch: &[&str], one: bool) -> (i64, String, Trace) {
    let dir = stage.path("trace");
    let _ = fs::remove_dir_all(&dir);
    let command = [program.to_str().expect("UTF-8"), &ROUNDS.to_string()].join(" ");
    let mut agent = harness::agent();
    agent.args(["record", "-k", "default,futex", "-o"]).arg(&dir).arg("--").args(watch);
    match one {
        true => agent.arg(command),
        false => agent.args(command.split(' ')),
    };
    let output = agent.output().expect("the agent starts");
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Its first thread, which holds the lock and wakes the other.
    let pid = said(&text)["waits"][0]["waker"].as_i64().expect("a number");
    (pid, text, harness::open(&dir))
}

#[test]
fn calls_about_futexes_are_those_of_strace_in_the_same_run() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let Some(program) = compile(&stage, "cc", &[], "mutex.c").filter(|_| peers::strace()) else {
        return;
    };
    for _ in 0..harness::rounds(2) {
        let file = stage.path("strace");
        let watch = ["strace", "-f", "-e", "trace=futex", "-o", file.to_str().expect("UTF-8")];
        let (pid, _, trace) = record(&stage, &program, &watch, false);
        let theirs = straced(&fs::read_to_string(&file).expect("what strace has written"));
        assert!(theirs.values().sum::<usize>() >= 2 * ROUNDS, "{theirs:?}");
        assert_eq!(ours(&trace, pid), theirs);
    }
}

const SCRIPT: &str = "
tracepoint:syscalls:sys_enter_futex /pid == cpid/ { @begun[tid] = args->op & 127; }
tracepoint:syscalls:sys_exit_futex /pid == cpid/ { @calls[tid, @begun[tid], args->ret] = count(); }
END { clear(@begun); }
";

#[test]
fn calls_about_futexes_are_those_of_bpftrace_in_the_same_run() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let Some(program) = compile(&stage, "cc", &[], "mutex.c").filter(|_| peers::bpftrace()) else {
        return;
    };
    for _ in 0..harness::rounds(2) {
        let watch = ["bpftrace", "-f", "json", "-e", SCRIPT, "-c"];
        let (pid, text, trace) = record(&stage, &program, &watch, true);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut maps = lines.filter_map(|line| line["data"]["@calls"].as_object().cloned());
        let counted = maps.next().unwrap_or_else(|| panic!("{text}"));
        let call = |(key, count): (&String, &Value)| {
            let numbers: Vec<i64> = key.split(',').map(|n| n.parse().expect("a number")).collect();
            let [tid, operation, result] = numbers[..] else { panic!("{key}") };
            ((tid, kind(operation), result), count.as_u64().expect("a count") as usize)
        };
        let mut theirs = Calls::new();
        for (key, count) in counted.iter().map(call) {
            *theirs.entry(key).or_default() += count;
        }
        assert!(theirs.values().sum::<usize>() >= 2 * ROUNDS, "{theirs:?}");
        assert_eq!(ours(&trace, pid), theirs);
    }
}

#[test]
fn what_strace_writes_is_read_with_its_results() {
    let text = "\
7 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>
8 futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1
7 <... futex resumed>)              = 0
8 futex(0x2, FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, 7, NULL, FUTEX_BITSET_MATCH_ANY) = -1 EAGAIN (Resource temporarily unavailable)
7 +++ exited with 0 +++
8 +++ exited with 0 +++
";
    let expected = [((7, "wait", 0), 1), ((8, "wait", -11), 1), ((8, "wake", 1), 1)];
    assert_eq!(straced(text), Calls::from(expected));
}
