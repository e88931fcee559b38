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

#[test]
fn an_allocator_whose_events_need_a_key_that_allocates_is_called_once() {
    has("has-keys");
}

/// Of all that have registered, the first of which is the parent: how many events of each name, and sites that are on.
fn recorded(habit: &str) -> Vec<(BTreeMap<String, usize>, u32)> {
    let agent = Agent::new(habit);
    run(host().arg(habit).env("FT_SOCKET", &agent.path));
    let of = |mut memory: Memory| {
        let mut names = BTreeMap::new();
        memory.take_last().into_iter().for_each(|it| *names.entry(it.name).or_default() += 1);
        (names, memory.header().sites_enabled.load(Relaxed))
    };
    agent.memories().into_iter().map(of).collect()
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

#[test]
fn libraries_come_and_go_beside_a_thread_that_switches_sites() {
    let library: PathBuf = prefix().join("lib/come-and-go.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-DPLUGIN=first", "-I"]).arg(prefix().join("include"));
    compiler.arg(Path::new(SOURCES).join("tests/c/plugin.c")).arg("-o").arg(&library);
    run(compiler.arg("-L").arg(prefix().join("lib")).arg("-lfeather_trace"));
    run(host().arg("unloads").arg(library).env("LD_LIBRARY_PATH", prefix().join("lib")));
}
