//! The breakdown, beside `strace -c`, the kernel's own counts of page faults, and the table of all time.

use std::collections::BTreeMap;
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::{
    Breakdown, FaultKind, FileKind, PageFault, Part, Place, ThreadTime, WakePair, WakerKind,
};

use crate::harness::{self, Stage, assert_success, gate};
use crate::peers;
use crate::recomputed::agrees;

const GROUPS: [&str; 2] = ["-k", "default,syscall,fault"];

/// What is traced by both.
const DD: [&str; 5] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=1000"];

fn record(stage: &Stage, name: &str, command: &[&str]) -> Trace {
    let dir = stage.path(name);
    let mut agent = harness::agent();
    agent.args(["record", "-o"]).arg(&dir).args(GROUPS).arg("--").args(command);
    assert_success(&agent.output().expect("the agent starts"));
    let trace = harness::open(&dir);
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    check(&trace);
    trace
}

/// The parts of each thread are those of `thread_time`: another way to the same sums.
fn check(trace: &Trace) {
    let mut sums: BTreeMap<_, i64> = BTreeMap::new();
    for r in trace.rows::<Breakdown>().map(|row| row.expect("a row")) {
        let parts = r.parts.expect("a kernel stream");
        for (part, ns) in Part::ALL.iter().zip(parts.to_array()) {
            assert!(ns >= 0, "{r:?}");
            *sums.entry((r.pid, r.tid, r.ts, *part)).or_default() += ns;
        }
        *sums.entry((r.pid, r.tid, r.ts, Part::Running)).or_default() += 0;
    }
    for r in trace.rows::<ThreadTime>().map(|row| row.expect("a row")) {
        *sums.entry((r.pid, r.tid, r.ts, r.part)).or_default() -= r.spent_ns;
    }
    let wrong: Vec<_> = sums.iter().filter(|(_, ns)| **ns != 0).collect();
    assert!(!sums.is_empty() && wrong.is_empty(), "{wrong:?}");
}

/// Calls of each name that have returned, as strace counts them.
fn counted(text: &str) -> BTreeMap<String, i64> {
    //  % time     seconds  usecs/call     calls    errors syscall
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, count) = (words.last()?, words.get(3)?.parse().ok()?);
        (words.len() >= 5 && *name != "total").then(|| ((*name).to_owned(), count))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn system_calls_are_those_that_strace_counts() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if peers::strace() {
        (0..harness::rounds(1)).for_each(|_| calls_are_those_of_strace(&stage));
    }
}

/// Runs dd under strace, and again under us: it makes the same calls each time.
fn calls_are_those_of_strace(stage: &Stage) {
    let file = stage.path("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(&file).args(DD);
    assert_success(&strace.output().expect("strace starts"));
    let text = std::fs::read_to_string(&file).expect("what strace has counted");
    let mut expected = counted(&text);
    assert_eq!(expected.get("write").copied().unwrap_or(0) / 1000, 1, "{text}");

    let trace = record(stage, "dd", &DD);
    let rows: Vec<Breakdown> = trace.rows().map(|row| row.expect("a row")).collect();
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    for r in rows.iter().filter(|r| r.fault.is_none() && r.count > r.unfinished) {
        let call = r.call.as_ref().expect("what is counted is a call");
        *found.entry(call.to_string()).or_default() += r.count - r.unfinished;
    }
    // Before strace would begin to count, the agent's child reads from a pipe, where the recording was there first, that it may
    // go on, and looks for the program in each directory of PATH; dd itself has no pipe.
    let gate =
        rows.iter().filter(|r| r.call.as_deref() == Some("read") && r.file == Some(FileKind::Pipe));
    *found.entry("read".to_owned()).or_default() -=
        gate.map(|r| r.count - r.unfinished).sum::<i64>();
    assert!(found.remove("execve") >= expected.remove("execve"));
    assert_eq!(found, expected);
    let of = |call: &str, file| {
        rows.iter().find(|r| r.call.as_deref() == Some(call) && r.file == Some(file))
    };
    for (call, n) in [("read", 1000), ("write", 1000)] {
        assert_eq!(of(call, FileKind::Character).expect("a row").count, n, "{call}");
    }
    let exit = rows.iter().find(|r| r.call.as_deref() == Some("exit_group")).expect("a row");
    assert_eq!((exit.count, exit.unfinished), (1, 1), "a call that never returns");
    agrees("system calls of dd", trace.dir());
    std::fs::remove_dir_all(trace.dir()).expect("a folder");
}

#[test]
fn page_faults_are_those_that_the_kernel_counts() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&GROUPS, &["kernel-groups", "100"]);
    let trace = harness::open(&dir);
    check(&trace);
    let number = |name: &str| truth[name].as_i64().expect("a number");
    let (pages, tid, first) = (number("pages"), number("tid") as i32, number("first"));
    let [begin, end] = ["groups.begin", "groups.end"].map(|mark| harness::when(&trace, mark));
    let faults: Vec<PageFault> = trace
        .rows::<PageFault>()
        .map(|row| row.expect("a row"))
        .filter(|f| f.tid.0 == tid && begin <= f.ts && f.ts <= end)
        .collect();
    let served: Vec<&PageFault> = faults.iter().filter(|f| f.kind.is_some()).collect();
    let touched = |f: &PageFault| (first..first + pages * 4096).contains(&f.address);
    for fault in served.iter().filter(|f| touched(f)) {
        assert!(fault.dur.expect("an end") > 0 && !fault.in_kernel, "{fault:?}");
    }
    // The kernel is asked between the marks, around the pages; none that it counts is missing, and none is made up.
    let minor = || served.iter().filter(|f| f.kind == Some(FaultKind::Minor));
    let (of_pages, of_all) = (minor().filter(|f| touched(f)).count() as i64, minor().count());
    let counted = number("minor_faults");
    gate::measured(&format!(
        "minor faults: {of_pages} of {pages} fresh pages, {of_all} between the marks; the kernel counts {counted}"
    ));
    assert!(pages <= of_pages && of_pages <= counted && counted <= of_all as i64);
    let rows = trace.rows::<Breakdown>().map(|row| row.expect("a row"));
    let mut own = rows.filter(|r| r.tid.0 == tid && r.place == Place::User && r.fault.is_some());
    assert!(own.any(|r| r.fault == Some(FaultKind::Minor) && r.count >= pages));
    agrees("page faults", &dir);
}

#[test]
fn a_write_to_a_pipe_ends_a_read_and_a_timer_a_sleep() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let script = "(for i in 1 2 3 4 5; do sleep 0.05; echo $i; done) | cat >/dev/null";
    let trace = record(&stage, "pipe", &["sh", "-c", script]);
    let rows: Vec<Breakdown> = trace.rows().map(|row| row.expect("a row")).collect();
    let sleeps: Vec<_> = rows
        .iter()
        .filter(|r| r.call.as_deref().is_some_and(|c| c.contains("nanosleep")))
        .collect();
    assert_eq!(sleeps.iter().map(|r| r.count).sum::<i64>(), 5);
    assert!(sleeps.iter().all(|r| r.waits_for.as_deref() == Some("timer")), "{sleeps:?}");

    let pairs: Vec<WakePair> = trace.rows().map(|row| row.expect("a row")).collect();
    let woken_in = |call: &'static str| {
        pairs.iter().filter(move |p| p.call.as_deref().is_some_and(|c| c.contains(call)))
    };
    let timers = woken_in("nanosleep").filter(|p| p.waker == WakerKind::Timer);
    let slept: i64 = timers.map(|p| p.count).sum();
    assert!((1..=5).contains(&slept), "{pairs:?}");
    let writes = woken_in("read").filter(|p| {
        (p.waker_call.as_deref(), p.waker_file, p.file)
            == (Some("write"), Some(FileKind::Pipe), Some(FileKind::Pipe))
    });
    let written: Vec<_> = writes.filter(|p| &*p.name == "cat").collect();
    let times: i64 = written.iter().map(|p| p.count).sum();
    assert!((1..=5).contains(&times), "{pairs:?}");
    // Who is blocked until it is woken was blocked in that call.
    let blocked = |call: &str| -> i64 {
        let of = rows.iter().filter(|r| r.call.as_deref() == Some(call) && r.fault.is_none());
        of.map(|r| r.parts.expect("parts").blocked_ns).sum()
    };
    for call in ["read", "wait4"] {
        let ended: i64 =
            pairs.iter().filter(|p| p.call.as_deref() == Some(call)).map(|p| p.blocked_ns).sum();
        assert!(0 < ended && ended <= blocked(call), "{call}: {ended} of {}", blocked(call));
    }
    agrees("a pipe", trace.dir());
}
