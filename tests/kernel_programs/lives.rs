//! Threads and processes: how they begin, are renamed, and end.

use std::collections::{BTreeSet, HashMap};
use std::process::{Command, Stdio};

use ft_agent::collect::kernel::Group;
use ft_ebpf::{Switch, kind};

use crate::common::{Record, drain, kernel_or_skip};
use crate::options;

#[test]
fn a_child_joins_and_leaves_the_observed() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Task])) else { return };
    kernel.observe(std::process::id());
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    assert!(kernel.is_observed(pid));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!kernel.is_observed(pid), "it left with its last thread");
    assert!(kernel.is_observed(std::process::id()));

    let life: Vec<(u16, String)> = drain(&mut kernel)
        .iter()
        .filter_map(|record| match record {
            Record::Task(task) if task.tgid == pid => {
                let name = task.comm.split(|byte| *byte == 0).next().unwrap();
                Some((task.header.kind, String::from_utf8_lossy(name).into_owned()))
            }
            _ => None,
        })
        .collect();
    let kinds: Vec<u16> = life.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [kind::FORK, kind::RENAME, kind::EXEC, kind::EXIT], "{life:?}");
    assert_eq!(life[1].1, "cat", "the new name, not the old one");
    assert_eq!(life[3].1, "cat");
}

/// Threads that exit at once find all that none of them is left.
#[test]
fn every_thread_that_exits_has_its_record() {
    const CHILD: &str = "FT_EXITS_AT_ONCE";
    if std::env::var_os(CHILD).is_some() {
        let begun = std::sync::Barrier::new(9);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begun.wait();
                    loop {
                        std::thread::park();
                    }
                });
            }
            begun.wait();
            // SAFETY: ends all threads of the process.
            unsafe { libc::_exit(0) }
        });
    }
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Task])) else { return };
    kernel.observe(std::process::id());
    let own = std::env::current_exe().unwrap();
    // An emulated machine takes its time to begin a process.
    let rounds = if std::env::var_os("FT_GUEST").is_some() { 10 } else { 100 };
    for _ in 0..rounds {
        let mut child = Command::new(&own);
        child.args(["--exact", "lives::every_thread_that_exits_has_its_record"]).env(CHILD, "");
        let mut child = child.stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        assert!(child.wait().unwrap().success());
        let records = drain(&mut kernel);
        let of = |kind: u16| {
            let of_kind = records.iter().filter_map(|record| match record {
                Record::Task(task) if task.tgid == pid && task.header.kind == kind => {
                    Some(task.tid)
                }
                _ => None,
            });
            of_kind.collect::<BTreeSet<u32>>()
        };
        let begun = of(kind::FORK);
        assert!(begun.len() >= 9, "{begun:?}");
        assert_eq!(begun, of(kind::EXIT));
        assert!(!kernel.is_observed(pid));
    }
}

/// The first process of a PID namespace exits, kills the others, and sleeps until they are gone.
#[test]
fn who_sleeps_after_its_exit_is_seen_to_be_woken() {
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Sched, Group::Task])) else { return };
    kernel.observe(std::process::id());
    let interruptible =
        |s: &Switch| s.prev_state & (Switch::PREEMPTED | Switch::BEING_WOKEN | 1) == 1;
    for _ in 0..20 {
        let mut child = Command::new("unshare");
        child.args(["--pid", "--fork", "taskset", "--cpu-list", "0"]);
        child.args(["sh", "-c", "sleep 1000 & until [ -d /proc/$! ]; do :; done"]);
        assert!(child.status().unwrap().success());
        let records = drain(&mut kernel);
        let mut sleeping = HashMap::new();
        let (mut exited, mut slept) = (BTreeSet::new(), 0);
        for record in records {
            match record {
                Record::Task(task) if task.header.kind == kind::EXIT => {
                    exited.insert(task.tid);
                }
                Record::Switch(s) if exited.contains(&s.header.tid) && interruptible(&s) => {
                    sleeping.insert(s.header.tid, s);
                }
                Record::Waking(waking) => {
                    slept += u32::from(sleeping.remove(&waking.tid).is_some());
                }
                Record::Switch(s) => assert!(!sleeping.contains_key(&s.next_tid), "{s:?}"),
                _ => {}
            }
        }
        if slept > 0 {
            return;
        }
    }
    panic!("nobody slept after its exit");
}
