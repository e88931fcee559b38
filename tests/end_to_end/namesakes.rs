//! Names and places of several programs in one process, or in two processes of one number, are told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, NameKind, NameRow, ThreadTime};

use crate::harness::{self, Stage, gate};
use crate::recomputed::agrees;

/// The programs in the order of time, and the files whose lines take their locks.
const HOLDERS: [(&str, &str); 3] =
    [("first", "namesakes.rs"), ("plugin", "plugin.rs"), ("last", "namesakes.rs")];

/// What is held when the last one is executed.
const KEPT: (&str, &str) = ("kept", "namesakes.rs");

/// Records them with these groups of the kernel's records, and checks what the trace says of them.
fn recorded(stage: &Stage, groups: &str) -> PathBuf {
    let plugin = harness::plugin().to_str().expect("a path in UTF-8");
    let (truth, dir) = stage.record(&["-k", groups], &["namesakes", plugin]);
    let locks = truth["locks"].as_u64().expect("a number");
    let of = |(holder, file)| (0..locks).map(move |i| (format!("{holder} {i}"), file));
    let expected: Vec<(String, &str)> = HOLDERS.into_iter().flat_map(of).collect();
    let mut acquired = expected.clone();
    acquired.insert(2 * locks as usize, (KEPT.0.into(), KEPT.1));

    let trace = Trace::open(&dir).expect("a whole trace");
    let rows = trace.rows::<NameRow>().map(|row| row.expect("a row"));
    let names: Vec<NameRow> = rows.filter(|row| row.kind == NameKind::Name).collect();
    let numbers: BTreeSet<_> = names.iter().map(|row| (row.pid, row.id)).collect();
    assert_eq!(names.len(), acquired.len());
    assert!(numbers.len() < names.len(), "nothing was to be told apart");

    let holds: Vec<CriticalSection> = trace.rows().map(|row| row.expect("a row")).collect();
    assert_eq!(holds.len(), expected.len());
    for (hold, (name, file)) in holds.iter().zip(&expected) {
        let place = hold.place.contains(&format!("/{file}:"));
        assert!(*hold.lock_name == **name && place, "{name} of {file}: {hold:?}");
        assert_eq!(Some(i64::from(hold.pid.0)), truth["pid"].as_i64());
        // What an earlier program holds ends with it.
        assert_eq!((hold.depth, hold.depth_mark), (0, Mark::Exact), "{hold:?}");
    }

    let mut agent = harness::agent();
    let output = agent.arg("events").arg(&dir).output().expect("the agent starts");
    harness::assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let listed: Vec<_> = text.lines().filter(|line| line.contains("_acquire")).collect();
    assert_eq!(listed.len(), acquired.len(), "{text}");
    for (line, (name, file)) in listed.iter().zip(&acquired) {
        assert!(line.contains(&format!(" {name} at ")) && line.contains(file), "{name}: {line}");
    }
    dir
}

#[test]
fn each_program_in_a_process_has_its_own_names() {
    recorded(&Stage::enter(), "none");
}

#[test]
fn the_oracle_tells_their_names_apart_too() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    agrees("namesakes", &recorded(&stage, "default"));
}

/// Two processes of one number, in which everything has the same address, one after the other.
fn reused(stage: &Stage, groups: &str) -> Option<PathBuf> {
    let (truth, dir) = stage.record(&["-k", groups], &["reused"]);
    let Some(pid) = truth.get("pid").expect("a number, or null").as_i64() else {
        gate::skipped("this process may not choose the number of another");
        return None;
    };
    let locks = truth["locks"].as_u64().expect("a number");
    let of = |holder| (0..locks).map(move |i| format!("{holder} {i}"));
    let expected: Vec<String> = ["first", "other"].into_iter().flat_map(of).collect();

    let trace = Trace::open(&dir).expect("a whole trace");
    let holds: Vec<CriticalSection> = trace.rows().map(|row| row.expect("a row")).collect();
    let found: Vec<_> = holds.iter().map(|hold| &*hold.lock_name).collect();
    assert_eq!(found, expected);
    let addresses: BTreeSet<_> = holds.iter().map(|hold| hold.lock).collect();
    assert_eq!(
        addresses.len() as u64,
        locks,
        "not the same addresses: nothing was to be told apart"
    );
    for hold in &holds {
        assert_eq!((i64::from(hold.pid.0), hold.depth), (pid, 0), "{hold:?}");
    }
    Some(dir)
}

#[test]
fn a_process_that_is_given_the_number_of_another_has_its_own_names() {
    reused(&Stage::enter(), "none");
}

#[test]
fn the_kernel_tells_them_apart_too() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    // The oracle takes a number for one thread.
    let Some(dir) = reused(&stage, "default") else { return };
    let trace = Trace::open(&dir).expect("a whole trace");
    let holds: Vec<CriticalSection> = trace.rows().map(|row| row.expect("a row")).collect();
    let (pid, other) = (holds[0].pid, holds.last().expect("a hold").ts);
    let rows = trace.rows::<ThreadTime>().map(|row| row.expect("a row"));
    let rows: Vec<ThreadTime> = rows.filter(|row| row.pid == pid && row.tid.0 == pid.0).collect();
    let mut spent: BTreeMap<_, i64> = BTreeMap::new();
    for row in &rows {
        *spent.entry((row.ts, row.wall_ns)).or_default() += row.spent_ns;
    }
    let lives: Vec<_> = spent.into_iter().collect();
    let [((first, first_ns), first_spent), ((then, then_ns), then_spent)] = lives[..] else {
        panic!("not two lives: {rows:?}")
    };
    assert_eq!((first_spent, then_spent), (first_ns, then_ns), "all time of each");
    assert!(first.0 + first_ns <= then.0 && then < other, "{rows:?}");
}
