//! Habits of programs: none is harmed by tracing, and none loses an event.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

#[path = "common/c.rs"]
mod c;
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;

use c::{Link, SOURCES, build, prefix, run};
use common::Memory;
use common::agent::Agent;

fn host() -> Command {
    let flags = ["-std=gnu11", "-O1", "-fno-builtin-malloc"];
    let program = build("cc", &flags, &["tests/c/habits.c"], Link::Shared, "habits");
    let mut command = Command::new(program);
    command.env("FT_SOCKET", "/nonexistent");
    command
}

fn has(habit: &str) {
    run(host().arg(habit));
}

#[test]
fn a_collector_stops_a_thread_that_forks() {
    has("collector");
}

#[test]
fn a_collector_stops_a_crowd_that_forks() {
    has("crowd");
}

#[test]
fn signals_that_are_blocked_wait_through_a_fork() {
    has("waits-for-signals");
}

#[test]
fn a_child_blocks_the_signals_that_its_parent_does() {
    has("masks");
}

/// Neither waits for the other without end.
#[test]
fn an_allocator_locks_its_heap_before_a_fork() {
    has("locks-its-heap");
}

#[test]
fn a_collector_sees_writes_by_their_faults() {
    has("protects-its-heap");
}

/// A key that the C library would allocate for, and no ring is lost for want of it.
#[test]
fn a_late_key_is_not_set_and_no_event_allocates() {
    let mut memories = memories("has-keys");
    let (names, lost) = names(&mut memories[0]);
    let events = names.iter().filter(|name| *name == "habit.other").count();
    assert_eq!((events, lost), (1000, 0));
}

/// All that have registered, the first of which is the parent.
fn memories(habit: &str) -> Vec<Memory> {
    let agent = Agent::new(habit);
    run(host().arg(habit).env("FT_SOCKET", &agent.path));
    agent.memories()
}

/// Of these, how many events of each name, and sites that are on.
fn recorded(habit: &str) -> Vec<(BTreeMap<String, usize>, u32)> {
    let of = |mut memory: Memory| {
        let mut names = BTreeMap::new();
        memory.take_last().into_iter().for_each(|it| *names.entry(it.name).or_default() += 1);
        (names, memory.header().sites_enabled.load(Relaxed))
    };
    memories(habit).into_iter().map(of).collect()
}

/// The names of its events, and how many others it has lost that would have gone to the shared ring.
fn names(memory: &mut Memory) -> (Vec<String>, u64) {
    let names = memory.take_last().into_iter().map(|event| event.name).collect();
    (names, memory.shared().0.lost.load(Relaxed))
}

/// Nothing of a child goes to its parent; what comes before the child can begin is counted.
fn one_is_lost_in_each_child(habit: &str) {
    const FORKS: usize = 20;
    let mut all = memories(habit);
    assert_eq!(all.len(), 1 + FORKS);
    assert_eq!(names(&mut all[0]), (vec!["habit.main".to_owned()], 0));
    for child in &mut all[1..] {
        assert_eq!(names(child), (vec!["habit.child".to_owned()], 1));
    }
}

#[test]
fn a_fork_handler_runs_a_program_in_the_child() {
    one_is_lost_in_each_child("vforks-in-child");
}

#[test]
fn a_fork_handler_makes_a_thread_in_the_child() {
    one_is_lost_in_each_child("works-in-child");
}

#[test]
fn tracing_starts_while_a_thread_forks() {
    let mut all = memories("starts-in-fork");
    assert_eq!(names(&mut all[0]), (vec!["habit.main".to_owned()], 0));
    for child in &mut all[1..] {
        assert_eq!(names(child), (vec!["habit.child".to_owned()], 0));
    }
    assert_eq!(all.len(), 3);
}

#[test]
fn a_thread_whose_fork_was_given_up_has_its_ring_again_after_the_next() {
    let events = memories("jumps").remove(0).take_last();
    let is_shared: Vec<_> = events.iter().map(|event| (&*event.name, event.shared)).collect();
    let expected = [("habit.main", false), ("habit.refused", true), ("habit.other", false)];
    assert_eq!(is_shared, expected);
}

#[test]
fn a_child_starts_tracing_whoever_had_the_linkers_lock() {
    let all = recorded("starts-in-child");
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].0.get("habit.child"), Some(&1), "{all:?}");
}

#[test]
fn a_fork_handler_runs_a_program() {
    const FORKS: usize = 20;
    let all = recorded("vforks-in-handler");
    assert_eq!(all.len(), 1 + FORKS);
    for name in ["habit.handler", "habit.vforked"] {
        assert_eq!(all[0].0.get(name), Some(&FORKS), "{all:?}");
    }
    assert!(all[1..].iter().all(|(names, _)| names.keys().eq(["habit.child"])), "{all:?}");
}

#[test]
fn a_fork_handler_switches_sites_off() {
    let all = recorded("switches-in-child");
    assert_eq!(all[0].0.get("habit.main"), Some(&2));
    assert!(all[0].1 > 0 && all[1].1 == 0, "{all:?}");
}

/// A library with a site.
fn plugin(name: &str, flag: &str) -> PathBuf {
    let library: PathBuf = prefix().join(format!("lib/{name}.so"));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-DPLUGIN=first", flag, "-I"]).arg(prefix().join("include"));
    compiler.arg(Path::new(SOURCES).join("tests/c/plugin.c")).arg("-o").arg(&library);
    run(compiler.arg("-L").arg(prefix().join("lib")).arg("-lfeather_trace"));
    library
}

#[test]
fn a_library_that_comes_late_allocates_nothing_in_a_first_event() {
    // More than the room that the C library keeps (`DTV_SURPLUS` of glibc).
    let others: Vec<_> = (0..20)
        .map(|n| {
            let library = prefix().join(format!("lib/other-{n}.so"));
            let source = Path::new(SOURCES).join("tests/c/other.c");
            let flag = format!("-DNAME=other_{n}");
            run(Command::new("cc")
                .args(["-shared", "-fPIC", &flag])
                .arg(source)
                .arg("-o")
                .arg(&library));
            library
        })
        .collect();
    let host = prefix().join("late");
    run(Command::new("cc").arg(Path::new(SOURCES).join("tests/c/late.c")).arg("-o").arg(&host));
    let mut command = Command::new(host);
    command.args(others).arg(plugin("late", "-DSTARTS")).env("FT_SOCKET", "/nonexistent");
    assert_eq!(run(command.env("LD_LIBRARY_PATH", prefix().join("lib"))), "0\n");
}

#[test]
fn a_library_in_a_namespace_of_its_own_is_not_traced() {
    let host = prefix().join("namespace");
    let source = Path::new(SOURCES).join("tests/c/namespace.c");
    run(Command::new("cc").arg(source).arg("-o").arg(&host));
    let mut command = Command::new(host);
    command.arg(plugin("namespace", "-O1")).env("FT_SOCKET", "/nonexistent");
    let said = run(command.env("LD_LIBRARY_PATH", prefix().join("lib")));
    assert_eq!(said, format!("{} 0 1\n", libc::ENOTSUP));
}

/// A thread overflows its stack where it switches sites, and goes on elsewhere: it has not kept what others need.
#[test]
fn a_stack_ends_where_a_thread_switches_sites() {
    has("overflows");
}

/// Libraries come and go, whose constructors look for their sites.
fn beside_libraries(habit: &str) {
    let library = plugin(habit, "-O0");
    run(host().arg(habit).arg(library).env("LD_LIBRARY_PATH", prefix().join("lib")));
}

#[test]
fn libraries_come_and_go_beside_a_thread_that_switches_sites() {
    beside_libraries("unloads");
}

#[test]
fn an_allocator_asks_the_loader_while_libraries_come_and_go() {
    beside_libraries("asks-the-loader");
}
