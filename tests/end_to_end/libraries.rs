//! Waits at futexes that the locks of others make: of glibc, beside what the preload library knows of them; semaphores that
//! processes share; of C++20; of Java. `programs/waits` has programs that know of each wait who ended it and when.

use std::path::{Path, PathBuf};
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::{FutexEnd, FutexKind, FutexWait, LockWait};
use serde_json::Value;

use crate::futexes::judge_each;
use crate::harness::{self, Stage, assert_success, gate};
use crate::holes::Holes;
use crate::recomputed::agrees;

/// Rounds of each program, in the short form.
const ROUNDS: usize = 10;

/// Recordings, at most, until half of the waits of one could be judged whole.
const RECORDINGS: usize = 8;

/// What is recorded: with a chain of everybody who sleeps.
const OPTIONS: [&str; 4] = ["-k", "default,futex,stack", "--stack-min", "1us"];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/waits").join(name)
}

/// Compiles a program; `None` without a compiler that can, which has been reported.
pub(crate) fn compile(
    stage: &Stage,
    compiler: &str,
    options: &[&str],
    name: &str,
) -> Option<PathBuf> {
    let program = stage.path(&name.replace('.', "-"));
    let mut compile = Command::new(compiler);
    compile.args(options).args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source(name));
    match compile.output() {
        Err(_) => gate::skipped(&format!("{compiler} is not installed; run `cargo xtask setup`")),
        Ok(output) if compiler == "cc" || output.status.success() => {
            assert_success(&output);
            return Some(program);
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().next().unwrap_or_default();
            gate::skipped(&format!("{compiler} does not compile {name}: {first}"));
        }
    }
    None
}

/// What a program has said of its waits.
pub(crate) fn said(text: &str) -> Value {
    let line = text.lines().find(|line| line.starts_with("{\"wait")).expect("the program's truth");
    serde_json::from_str(line).expect("JSON")
}

/// Records a command; its truth and the trace.
fn record(stage: &Stage, options: &[&str], command: &[&str]) -> (Value, PathBuf) {
    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent.args(["record", "-o"]).arg(&dir).args(options).arg("--").args(command);
    let output = agent.env("FT_PRELOAD", harness::preload()).output().expect("the agent starts");
    assert_success(&output);
    (said(&String::from_utf8_lossy(&output.stdout)), dir)
}

fn rows(trace: &Trace) -> Vec<FutexWait> {
    trace.rows().map(|row| row.expect("a row")).collect()
}

/// Records a program until half of its waits could be judged whole: some machines hide switches from every tracer.
fn judged(stage: &Stage, what: &str, options: &[&str], program: &Path) -> (Vec<Value>, PathBuf) {
    let rounds = harness::rounds(ROUNDS).to_string();
    let program = program.to_str().expect("UTF-8");
    for _ in 0..RECORDINGS {
        let (truth, dir) = record(stage, options, &[program, &rounds]);
        let waits = truth["waits"].as_array().expect("waits").clone();
        let trace = harness::open(&dir);
        let exact = judge_each(&waits, &trace, &rows(&trace));
        if exact >= waits.len() / 2 {
            agrees(what, &dir);
            gate::measured(&format!("{what}: {exact} of {} waits are exact", waits.len()));
            return (waits, dir);
        }
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
    panic!("too little of {RECORDINGS} recordings of {what} could be judged");
}

/// The rows of a wait: within it, of its thread.
fn within<'r>(rows: &'r [FutexWait], wait: &Value) -> Vec<&'r FutexWait> {
    let [from, to] = [0, 1].map(|i| wait["around"][i].as_i64().expect("a time"));
    let of = |r: &&FutexWait| wait["tid"].as_i64() == Some(i64::from(r.tid.0));
    rows.iter().filter(of).filter(|r| from <= r.ts.0 && r.ts.0 + r.dur <= to).collect()
}

/// The values of a report.
fn report(dir: &Path, section: &str) -> Value {
    let mut agent = harness::agent();
    let output = agent.arg("report").arg(dir).args([section, "--json"]).output().expect("it runs");
    assert_success(&output);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["sections"][section]["values"].clone()
}

/// The preload library tells that a thread waits for a mutex, and the kernel that it waits at a futex: one wait in each table,
/// and each names the other's.
#[test]
fn a_mutex_that_the_preload_library_and_the_kernel_see_has_each_wait_once() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let Some(program) = compile(&stage, "cc", &[], "mutex.c") else { return };
    let options = [&["--preload"][..], &OPTIONS].concat();
    let (waits, dir) = judged(&stage, "a mutex with the preload library", &options, &program);
    let trace = harness::open(&dir);
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let (tid, holder) = (waits[0]["tid"].as_i64(), waits[0]["waker"].as_i64());
    let address = waits[0]["address"].as_i64().expect("an address");

    let locks = trace.rows::<LockWait>().map(|row| row.expect("a row"));
    let locks: Vec<LockWait> = locks.filter(|r| r.lock == address).collect();
    let futexes = rows(&trace);
    let futexes: Vec<&FutexWait> = futexes.iter().filter(|r| r.address == address).collect();
    assert_eq!((locks.len(), futexes.len()), (waits.len(), waits.len()), "{locks:#?} {futexes:#?}");
    let bound = trace.meta().clock.bound_ns;
    for (lock, futex) in locks.iter().zip(futexes) {
        assert_eq!([lock.tid.0, futex.tid.0].map(i64::from).map(Some), [tid, tid]);
        // What the program tells of is around the call, by a clock that can be off by its bound.
        assert!(lock.ts.0 - bound <= futex.ts.0, "{lock:?} {futex:?}");
        assert!(futex.ts.0 + futex.dur <= lock.ts.0 + lock.dur + bound, "{lock:?} {futex:?}");
        let own = (futex.own_kind.as_deref(), futex.own_name.as_deref());
        assert_eq!((own, &*lock.lock_name), ((Some("lock"), Some("lock")), "lock"), "{futex:?}");
        assert_eq!((lock.holders, lock.holder_tid.map(i64::from)), (1, holder), "{lock:?}");
    }
    // Nor does a report count any of them twice.
    let of = |rows: &Value, name: &str, is: &str| -> Vec<Value> {
        let rows = rows.as_array().expect("rows").iter();
        rows.filter(|row| row[name] == is).cloned().collect()
    };
    let (by_lock, by_futex) = (report(&dir, "waits"), report(&dir, "futexes"));
    let [lock, futex] =
        [of(&by_lock["locks"], "lock", "lock"), of(&by_futex["futexes"], "own", "lock lock")];
    assert_eq!((lock.len(), futex.len()), (1, 1), "{by_lock} {by_futex}");
    let n = Some(waits.len() as u64);
    assert_eq!((lock[0]["waits"].as_u64(), futex[0]["waits"].as_u64()), (n, n));
}

/// As the processes of postgres wait for each other's light-weight locks.
#[test]
fn a_semaphore_that_processes_share_has_who_posted_as_who_was_waited_for() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let Some(program) = compile(&stage, "cc", &[], "semaphores.c") else { return };
    let (waits, dir) = judged(&stage, "semaphores of two processes", &OPTIONS, &program);
    let trace = harness::open(&dir);
    let all = rows(&trace);
    for wait in &waits {
        let [row] = within(&all, wait)[..] else { panic!("{wait} {all:#?}") };
        // Each process has one thread.
        assert_ne!(row.waker_pid, Some(row.pid.0), "{row:?}");
        assert_eq!(row.waker_pid.map(i64::from), wait["waker"].as_i64(), "{row:?}");
    }
}

#[test]
fn what_cpp_20_has_to_wait_for_is_seen() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let Some(program) = compile(&stage, "c++", &["-std=c++20"], "cpp20.cpp") else { return };
    let (waits, dir) = judged(&stage, "C++20", &OPTIONS, &program);
    let trace = harness::open(&dir);
    let all = rows(&trace);
    for wait in &waits {
        // Nobody else wants it, and nothing changes before its thread sleeps: it sleeps once.
        let found = within(&all, wait);
        assert_eq!(found.len(), 1, "{wait} {found:#?}");
    }
}

/// Java without a compiler of its own at work, a collector of garbage with threads, or stops from time to time: what its
/// threads wait for are the program's locks.
const JAVA: [&str; 4] = [
    "-Xint",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=0",
];

/// Java's monitors and locks call nobody's library: its threads are parked at futexes.
#[test]
fn waits_for_monitors_and_locks_of_java_are_seen() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    // Without a compiler Java runs no source.
    if Command::new("javac").arg("--version").output().is_err() {
        return gate::skipped("javac is not installed; run `cargo xtask setup`");
    }
    let rounds = harness::rounds(ROUNDS);
    let (program, number) = (source("Locks.java"), rounds.to_string());
    let command = [&["java"], &JAVA[..], &[program.to_str().expect("UTF-8"), &number]].concat();
    for _ in 0..RECORDINGS {
        let (truth, dir) = record(&stage, &OPTIONS, &command);
        let trace = harness::open(&dir);
        assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
        let (all, holes) = (rows(&trace), Holes::of(&trace));
        let mut woken = Vec::new();
        for what in ["monitor", "lock"] {
            let waits = truth["waits"].as_array().expect("waits").iter();
            let waits: Vec<&Value> = waits.filter(|wait| wait["what"] == what).collect();
            assert_eq!(waits.len(), rounds, "{truth}");
            woken.push(waits.iter().filter(|wait| released(&truth, wait, &all, &holes)).count());
        }
        if woken.iter().all(|woken| 2 * woken >= rounds) {
            agrees("Java", &dir);
            let [monitor, lock] = woken[..] else { unreachable!("two kinds") };
            return gate::measured(&format!(
                "Java: of {rounds} waits each {monitor} for a monitor and {lock} for a lock are exact, woken by the holder"
            ));
        }
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
    panic!("too little of {RECORDINGS} recordings of Java could be judged");
}

/// Whether the holder's release is what ended a wait of Java, by its row. Two things else can be, and a third fails the test:
/// a row that is marked where there is a hole, and a time that was over as the lock became free, after which the waiter
/// looked for itself, or found itself woken, too, when it had a CPU.
fn released(truth: &Value, wait: &Value, all: &[FutexWait], holes: &Holes) -> bool {
    let mut of_waiter = wait.clone();
    of_waiter["tid"] = truth["waiter"].clone();
    let found = within(all, &of_waiter);
    let times = |name: &str| [0, 1].map(|i| wait[name][i].as_i64().expect("a time"));
    let ends = |r: &FutexWait| r.ts.0 + r.dur;
    let [from, to] = times("seen");
    assert!(
        found.iter().any(|r| r.ts.0 <= to && from <= ends(r)),
        "no row of when it was seen to sleep: {wait} {found:#?}"
    );
    let [woke, woken] = times("wakes");
    // It slept as the lock was still held, or had looked after it just before.
    let Some(row) = found.iter().rfind(|r| r.ts.0 <= woke) else {
        panic!("it was seen to sleep before: {wait} {found:#?}")
    };
    if !holes.judged(row.mark, row.ts.0, row.dur) {
        return false;
    }
    if row.end == FutexEnd::TimedOut {
        let timeout = row.timeout_ns.expect("what is over");
        assert!(row.ts.0 + timeout <= woken, "it was woken before: {wait} {row:?}");
        return false;
    }
    let Some(woken_ns) = row.woken_ns else {
        // Its time was over, and the lock was released before it had a CPU: the call says that it was woken.
        let over = row.timeout_ns.map(|timeout| row.ts.0 + timeout);
        assert!(over.is_some_and(|over| over <= woken), "{wait} {row:?}");
        assert_eq!((row.end, row.waker_tid), (FutexEnd::Woken, None), "{wait} {row:?}");
        return false;
    };
    let by = (row.end, row.waker_tid.map(i64::from), row.waker_call);
    let holder = truth["holder"].as_i64();
    assert_eq!(by, (FutexEnd::Woken, holder, Some(FutexKind::Wake)), "{wait} {row:?}");
    let at = row.ts.0 + woken_ns;
    assert!((woke..=woken).contains(&at), "{wait} {row:?}");
    true
}
