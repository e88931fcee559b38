//! Waits for locks of the kernel: each that the subject has made is in the table, with who ended it, from where it came and
//! what it delayed.

use std::collections::BTreeMap;
use std::process::Stdio;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{Contention, ContentionEnd, KernelLockWait, KernelWaitEnd};
use serde_json::Value;

use crate::harness::{self, Stage, gate};
use crate::holes::Holes;
use crate::peers;
use crate::recomputed::agrees;

/// Rounds of the subject, in the short form.
const ROUNDS: usize = 20;

#[test]
fn a_wait_for_a_lock_of_the_kernel_has_its_caller_its_waker_and_what_it_delayed() {
    let Some(stage) = Stage::enter_with_locks() else { return };
    let asked = harness::rounds(ROUNDS);
    let scenario = ["kernel-locks", &asked.to_string()];
    let mut exact = 0;
    let (_, dir) = stage.record_until(&["-k", "default,lock,stack"], &scenario, |truth, trace| {
        let holes = Holes::of(trace);
        let rows: Vec<KernelLockWait> = trace.rows().map(|row| row.expect("a row")).collect();
        let rounds = truth["rounds"].as_array().expect("rounds");
        assert_eq!(rounds.len(), asked);
        exact = rounds.iter().filter(|round| is_there(&rows, round, &holes)).count();
        2 * exact > asked
    });
    let report = harness::agent().arg("report").arg(&dir).arg("kernel-locks").output();
    let report = report.expect("the agent starts");
    harness::assert_success(&report);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    for expected in ["rwsem-write", "kernel.delayed", "held", "waiter", "By call chain"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    agrees("waits for a lock of the kernel", &dir);
    gate::measured(&format!("{exact} of {asked} waits for a lock of the kernel are exact"));
}

/// The wait of a round; whether all of it could be judged, which it can unless the raw tables have a hole there.
fn is_there(rows: &[KernelLockWait], round: &Value, holes: &Holes) -> bool {
    let time = |name: &str, i: usize| round[name][i].as_i64().expect("a time");
    let (from, to) = (time("around", 0), time("around", 1));
    let (waiter, holder) = (round["waiter"].as_i64(), round["holder"].as_i64());
    let in_call = |r: &&KernelLockWait| {
        Some(i64::from(r.tid.0)) == waiter
            && (from..to).contains(&r.ts.0)
            && &*r.kind == "rwsem-write"
    };
    let found: Vec<_> = rows.iter().filter(in_call).collect();
    let [r] = found[..] else { panic!("{round}\n{found:#?}\n{rows:#?}") };
    let parts = r.parts.expect("a kernel stream");
    assert_eq!(parts.total_ns(), r.dur, "{r:?}");
    assert!(r.ts.0 + r.dur <= to && r.ts.0 + r.dur >= time("brought", 0), "{round}\n{r:?}");
    assert_eq!((r.end, r.nested, r.depth), (KernelWaitEnd::Acquired, false, 1), "{r:?}");
    assert_eq!(r.hold_name.as_deref(), Some("held"), "{r:?}");
    assert!(
        r.hold_place.as_deref().is_some_and(|place| place.contains("kernel_locks.rs")),
        "{r:?}"
    );
    assert_eq!(r.request.as_deref(), Some("kernel.delayed"), "{r:?}");
    assert!(r.stack.is_some(), "{r:?}");
    assert!(r.caller.as_deref().is_some_and(|caller| caller.contains("write")), "{r:?}");
    if !holes.judged(r.mark, r.ts.0, r.dur) {
        return false;
    }
    // Asleep from when that was seen until the page was brought, at least.
    let asleep = time("brought", 0) - round["asleep"].as_i64().expect("a time");
    assert!(parts.blocked_ns >= asleep, "{round}\n{r:?}");
    assert_eq!(r.waker_tid.map(i64::from), holder, "{round}\n{r:?}");
    assert!(r.ts.0 + r.woken_ns.expect("a wake-up") >= time("brought", 0), "{round}\n{r:?}");
    true
}

/// A wait that goes on when the recording ends is in the tables, however long ago it began.
#[test]
fn a_wait_for_a_lock_that_goes_on_when_the_recording_ends_is_told() {
    let Some(stage) = Stage::enter_with_locks() else { return };
    let (subject, trace) = stage.record_left_behind(&["-k", "default,lock"], "in-kernel");
    let waits = trace.rows().map(|row| row.expect("a row"));
    let goes_on = |w: &Contention| w.pid.0 == subject && w.end == ContentionEnd::Unfinished;
    let open: Vec<Contention> = waits.filter(goes_on).collect();
    assert!(open.iter().any(|w| &*w.kind == "rwsem-write" && w.caller.is_some()), "{open:?}");
    let rows: Vec<KernelLockWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let goes_on = |r: &&KernelLockWait| r.pid.0 == subject && r.end == KernelWaitEnd::Trace;
    let row = rows.iter().find(goes_on);
    let row = row.unwrap_or_else(|| panic!("no wait goes on: {rows:?}"));
    assert_eq!((row.mark, row.waker_tid), (Mark::Censored, None), "{row:?}");
}

/// Waits for mutexes, and for semaphores of readers and writers: our own programs have other locks.
const SCRIPT: &str = r#"
tracepoint:lock:contention_begin /pid == cpid && @at[tid, args->lock_addr] == 0/ {
    @at[tid, args->lock_addr] = nsecs; @flags[tid, args->lock_addr] = args->flags;
}
tracepoint:lock:contention_end /pid == cpid && @at[tid, args->lock_addr] != 0/ {
    $flags = @flags[tid, args->lock_addr];
    if ($flags != 1) { @n[$flags] = count(); @ns[$flags] = sum(nsecs - @at[tid, args->lock_addr]); }
    delete(@at[tid, args->lock_addr]); delete(@flags[tid, args->lock_addr]);
}
END { clear(@at); clear(@flags); }
"#;

/// Per wait: what the programs of one of the two take between the time that it reads and that of the other.
const PROGRAM_NS: i64 = 20_000;

/// An interrupt between these times, or a host that takes the CPU, is in the sum of one of the two alone: in one of so many
/// recordings there is none.
const RECORDINGS: usize = 5;

#[test]
fn counts_of_waits_for_kernel_locks_are_those_of_bpftrace() {
    let Some(stage) = Stage::enter_with_locks() else { return };
    if peers::bpftrace() {
        for n in 0..harness::rounds(1) {
            times_agree(&stage, &format!("trace-{n}"));
        }
    }
}

#[test]
#[ignore = "needs a machine that does nothing else"]
fn times_of_waits_for_kernel_locks_are_those_of_bpftrace() {
    let Some(stage) = Stage::enter_with_locks() else { return };
    if peers::bpftrace() {
        let agree = (0..RECORDINGS).any(|n| times_agree(&stage, &format!("trace-{n}")));
        assert!(agree, "in none of {RECORDINGS} recordings the times are bpftrace's");
    }
}

/// The counts of a recording are those of bpftrace; whether the times are.
fn times_agree(stage: &Stage, name: &str) -> bool {
    let dir = stage.path(name);
    let subject = format!("{} kernel-locks {ROUNDS}", harness::subject().display());
    let mut agent = harness::agent();
    agent.args(["record", "-k", "default,lock", "-o"]).arg(&dir);
    agent.args(["--", "bpftrace", "-f", "json", "-c", &subject, "-e", SCRIPT]);
    let output = agent.stderr(Stdio::piped()).output().expect("the agent starts");
    harness::assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut waiter, mut theirs) = (None, Value::Object(serde_json::Map::new()));
    for line in lines {
        waiter = waiter.or(line["rounds"][0]["waiter"].as_i64());
        if let Some(maps) = line["data"].as_object().filter(|_| line["type"] == "map") {
            maps.iter().for_each(|(name, map)| theirs[name] = map.clone());
        }
    }
    let waiter = waiter.expect("the subject's truth");
    let trace = Trace::open(&dir).expect("a whole trace");
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let waits: Vec<Contention> = trace.rows().map(|row| row.expect("a row")).collect();
    let of_it = waits.iter().find(|wait| i64::from(wait.tid.0) == waiter);
    let pid = of_it.unwrap_or_else(|| panic!("it never waited: {text} {waits:?}")).pid;
    let mut ours: BTreeMap<i32, (i64, i64)> = BTreeMap::new();
    for wait in &waits {
        let is_whole = matches!(wait.end, ContentionEnd::Acquired | ContentionEnd::Failed);
        if wait.pid == pid && wait.flags != 1 && is_whole {
            let sums = ours.entry(wait.flags).or_default();
            *sums = (sums.0 + 1, sums.1 + wait.dur);
        }
    }
    let their = |what: &str| -> BTreeMap<i32, i64> {
        let map = theirs[what].as_object().unwrap_or_else(|| panic!("{text}"));
        let number = |(flags, n): (&String, &Value)| Some((flags.parse().ok()?, n.as_i64()?));
        map.iter().map(|entry| number(entry).expect("numbers")).collect()
    };
    let (their_n, their_ns) = (their("@n"), their("@ns"));
    // One in each round, at least, for which the kernel has told that its thread sleeps.
    assert!(their_n.values().sum::<i64>() >= ROUNDS as i64, "{theirs}");
    assert_eq!(
        ours.iter().map(|(flags, (n, _))| (*flags, *n)).collect::<BTreeMap<_, _>>(),
        their_n
    );
    let mut agree = true;
    for (flags, (n, ns)) in &ours {
        gate::measured(&format!(
            "{n} waits of flags {flags}, ours and bpftrace's: {ns} and {} ns",
            their_ns[flags]
        ));
        agree &= (ns - their_ns[flags]).abs() <= n * PROGRAM_NS;
    }
    agree
}
