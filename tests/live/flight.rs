//! The flight recorder: what is kept, when a snapshot is taken, and what is in it.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ft_agent::flight::complete;
use ft_trace::spool::Spool;
use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, UserEvent};
use ft_user::layout::MIN_RING_SLOTS;

use crate::program::{PATIENCE, Program, agent};
use crate::ticks;

const WINDOW: &str = "1s";

/// The snapshots of a recorder, once there are so many. Those of triggers are for sure complete only at the end of the
/// recording: nobody waits for them before.
fn snapshots(out: &Path, count: usize) -> Vec<PathBuf> {
    let began = Instant::now();
    loop {
        let found = complete(out).unwrap_or_default();
        if found.len() >= count {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{found:?} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Holds the lock for so long, until a trigger has taken the first snapshot: on a busy machine the window is over before it is looked
/// at.
fn hold_until_trigger(program: &mut Program, out: &Path, ms: u32) {
    let began = Instant::now();
    while !out.join("snapshot-0001").exists() {
        assert!(began.elapsed() < PATIENCE, "no snapshot after {PATIENCE:?}");
        program.ask(&format!("hold {ms}"), "held");
    }
}

/// Why the snapshot was taken.
fn reason(snapshot: &Path) -> String {
    Trace::open(snapshot).unwrap().meta().end.as_ref().unwrap().reason.clone()
}

/// How long the lock was held of which a trigger's reason speaks.
fn held_ms(reason: &str, trigger: &str) -> f64 {
    let text = reason.strip_prefix(&format!("snapshot: {trigger}: ")).expect("this trigger");
    let (ms, lock) = text.split_once(" ms of ").expect("a time");
    assert!(lock.starts_with("'live', "), "{reason}");
    ms.parse().expect("a number")
}

/// Begin of the window and times of all events.
fn times(snapshot: &Path) -> (i64, i64, Vec<i64>) {
    let trace = Trace::open(snapshot).unwrap();
    let meta = trace.meta();
    let times = trace.rows::<UserEvent>().map(|row| row.unwrap().ts.0).collect();
    (meta.start.window_from_ns.unwrap(), meta.end.as_ref().unwrap().ts, times)
}

/// CLOCK_MONOTONIC.
fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Has 1000 events written; within which time that was.
fn batch(program: &mut Program) -> Range<i64> {
    let begin = now_ns();
    program.tick(1000, 1000);
    begin..now_ns()
}

fn bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap().filter_map(|f| Some(f.ok()?.metadata().ok()?.len()));
    files.sum()
}

/// Asks for a snapshot, which is to be the one of this number; batches are written until it is taken.
fn snapshot_meanwhile(
    out: &Path,
    program: &mut Program,
    number: usize,
    batches: &mut Vec<Range<i64>>,
) -> PathBuf {
    let mut asked = agent();
    asked.arg("snapshot").arg(out).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut asked = asked.spawn().unwrap();
    // On a busy machine more than a window passes until it is taken.
    while asked.try_wait().unwrap().is_none() {
        batches.push(batch(program));
        std::thread::sleep(Duration::from_millis(5));
    }
    let asked = asked.wait_with_output().unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let snapshot = snapshots(out, number).remove(number - 1);
    assert!(String::from_utf8(asked.stdout).unwrap().starts_with(snapshot.to_str().unwrap()));
    snapshot
}

#[test]
fn the_recorder_keeps_its_window_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &["--flight-recorder", WINDOW]);
    // Four windows, or as many as a busy machine takes: what is kept must not grow with their number.
    let spool = Spool::of(&out);
    let began = Instant::now();
    let (mut most, mut written, mut batches) = (0, 0, Vec::new());
    let is_little = |most: u64, written: u64| most < written * 32 * 3 / 4;
    while began.elapsed() < Duration::from_secs(4)
        || !is_little(most, written) && began.elapsed() < PATIENCE
    {
        batches.push(batch(&mut program));
        written += 1000;
        most = most.max(bytes(spool.dir()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(spool.segments().unwrap().len() <= 11, "window, open segment, one being deleted");
    assert!(is_little(most, written), "{most} bytes kept of {written} events");

    // A busy machine may have let nothing be written for a whole window: then another one is judged.
    let mut taken = 0;
    loop {
        taken += 1;
        let snapshot = snapshot_meanwhile(&out, &mut program, taken, &mut batches);
        assert_eq!(reason(&snapshot), "snapshot: asked for");
        let (from, to, times) = times(&snapshot);
        assert_eq!(to - from, 1_000_000_000);
        // What was written in the window is there, and nothing else.
        assert!(times.is_sorted() && times.iter().all(|time| (from..=to).contains(time)));
        let is_inside = |batch: &&Range<i64>| from <= batch.start && batch.end <= to;
        let inside: Vec<_> = batches.iter().filter(is_inside).collect();
        assert!(inside.len() < batches.len(), "{from} to {to}");
        for batch in &inside {
            let [before, all] =
                [batch.start, batch.end].map(|end| times.partition_point(|t| *t < end));
            assert_eq!(all - before, 1000, "{batch:?}");
        }
        if !inside.is_empty() {
            break;
        }
        assert!(taken < 5, "{from} to {to}, last {:?}", batches.last());
    }

    // And the snapshot of the end.
    program.tick(10, 10);
    assert!(program.end().success());
    let all = snapshots(&out, taken + 1);
    assert_eq!(all.len(), taken + 1);
    assert_eq!(reason(&all[taken]), "snapshot: the recording ended (finished)");
    assert!(ticks(&all[taken]).ends_with(&(0..10).collect::<Vec<i64>>()));
    assert!(!spool.dir().exists());
}

/// The registry forgets the processes that no kept segment speaks of, and the triggers find their way in the
/// new one.
#[test]
fn processes_that_come_and_go_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let options = ["--flight-recorder", "200ms", "--when", "hold > 300ms", "--snapshots", "1"];
    let mut program = Program::recorded(&out, &options);
    let registry = Spool::of(&out).registry();
    let (mut most, mut written, mut last) = (0, 0, 0);
    for _ in 0..75 {
        program.ask("spawn 2", "spawned");
        let now = fs::metadata(&registry).unwrap().len();
        most = most.max(now);
        written += now.saturating_sub(last);
        last = now;
    }
    assert!(written > most * 3 / 2, "{most} bytes at once of {written} in all");
    hold_until_trigger(&mut program, &out, 400);
    assert!(program.end().success());
    let reason = reason(&snapshots(&out, 2)[0]);
    assert!(held_ms(&reason, "hold > 300ms") >= 400.0, "{reason}");
}

#[test]
fn a_long_hold_makes_a_snapshot_that_contains_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let options = ["--flight-recorder", "2s", "--when", "hold > 100ms", "--snapshots", "1"];
    let mut program = Program::recorded(&out, &options);
    program.ask("hold 1", "held");
    hold_until_trigger(&mut program, &out, 300);
    // One was all that was asked for; at the end there is another, whatever happened.
    program.ask("hold 200", "held");
    assert!(program.end().success());
    let all = snapshots(&out, 2);
    assert_eq!(all.len(), 2);
    let first = &all[0];
    let reason = reason(first);
    assert!(held_ms(&reason, "hold > 100ms") >= 300.0, "{reason}");
    let trace = Trace::open(first).unwrap();
    let holds: Vec<CriticalSection> = trace.rows::<CriticalSection>().map(Result::unwrap).collect();
    assert!(holds.iter().any(|hold| hold.dur >= 300_000_000 && &*hold.lock_name == "live"));
}

/// Of whatever is too long, only what has the name; and what it finds ends the recording, and stands in its trace.
#[test]
fn a_trigger_of_a_name_ends_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let when = ["--when", "hold other > 1ms", "--when", "hold li* > 100ms", "--stop-on-trigger"];
    let program = Program::recorded(&out, &[&["--flight-recorder", "2s"], &when[..]].concat());
    program.say_until_end("hold 300");
    let all = snapshots(&out, 1);
    assert_eq!(all.len(), 1);
    let reason = reason(&all[0]);
    assert!(reason.starts_with("snapshot: the recording ended (hold li* > 100ms: "), "{reason}");
    let trace = Trace::open(&all[0]).unwrap();
    let holds = trace.rows::<CriticalSection>().map(Result::unwrap);
    assert!(holds.filter(|hold| hold.dur >= 300_000_000).any(|hold| &*hold.lock_name == "live"));
}

#[test]
fn the_last_event_of_a_program_that_crashed_is_in_the_last_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::recorded(&out, &["--flight-recorder", "1h"]);
    program.tick(777, 777);
    program.say("segv");
    assert_eq!(program.end().code(), Some(128 + 11));
    let all = snapshots(&out, 1);
    assert_eq!(all.len(), 1);
    assert_eq!(ticks(&all[0]), (0..777).collect::<Vec<i64>>());
}

/// Rings that overwrite are copied with each snapshot and at the end, also that of a crash.
#[test]
fn the_newest_events_of_an_overwriting_ring_survive_the_crash() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::overwriting(&out, MIN_RING_SLOTS, &["--flight-recorder", "1h"]);
    program.tick(10_000, 10_000);
    assert!(agent().arg("snapshot").arg(&out).status().unwrap().success());
    let newest = |count: i64| (count - i64::from(MIN_RING_SLOTS)..count).collect::<Vec<i64>>();
    assert_eq!(ticks(&snapshots(&out, 1)[0]), newest(10_000));
    program.tick(9_000, 9_000);
    program.say("segv");
    assert_eq!(program.end().code(), Some(128 + 11));
    // What was copied with the first snapshot, a gap, and the newest.
    assert_eq!(ticks(&snapshots(&out, 2)[1]), [newest(10_000), newest(9_000)].concat());
}

#[test]
fn a_snapshot_of_a_thread_that_never_pauses_has_half_of_its_ring() {
    const SLOTS: u32 = 1 << 14;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut program = Program::overwriting(&out, SLOTS, &["--flight-recorder", "1h"]);
    program.ask("flood", "flooding");
    let mut copied = 0;
    for n in 1..=2 {
        assert!(agent().arg("snapshot").arg(&out).status().unwrap().success());
        let events = ticks(&snapshots(&out, n)[n - 1]);
        assert!(events.is_sorted_by(|a, b| a < b), "each once, in order");
        // An event takes a slot; a snapshot has what those before it have copied, too.
        assert!(events.len() - copied >= SLOTS as usize / 2, "{n}: {copied}, {}", events.len());
        copied = events.len();
    }
    program.end();
}

#[test]
fn a_killed_recorder_leaves_its_window() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    // Long enough that on a busy machine the last events are still in it when the recorder dies.
    let mut program = Program::recorded(&out, &["--flight-recorder", "2s"]);
    program.tick(10, 10);
    // They are in the newest segment or in the next: older than the window, it goes.
    let spool = Spool::of(&out);
    let oldest = || spool.segments().unwrap().first().copied();
    let newest = spool.segments().unwrap().last().copied();
    while oldest() <= newest.map(|number| number + 1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let held = bytes(Spool::of(&out).dir());
    program.tick(500, 500);
    // Most events have come, and no more come: they may be copied in two rounds.
    let mut before = 0;
    let mut now = held;
    while now < held + 300 * 32 || now != before {
        std::thread::sleep(Duration::from_millis(20));
        (before, now) = (now, bytes(Spool::of(&out).dir()));
    }
    program.child.kill().unwrap();
    program.end();
    assert!(!agent().arg("snapshot").arg(&out).status().unwrap().success());
    assert!(agent().arg("convert").arg(&out).status().unwrap().success());
    assert_eq!(ticks(&out), (0..500).collect::<Vec<i64>>());
}
