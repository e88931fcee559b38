//! Fork, whatever was going on: the child lives, and its half of an event that the fork has cut in two is whole, or counted.
//!
//! Forks are few here, and `FT_STRESS=N` times as many with that variable.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

#[path = "common/c.rs"]
mod c;
mod common;

use std::process::Command;
use std::sync::atomic::Ordering::*;

use c::{Link, build, compilers, run};
use common::Memory;
use common::agent::Agent;

/// How much of `short` to do.
fn scaled(short: u64) -> u64 {
    let factor = std::env::var("FT_STRESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    short.saturating_mul(factor)
}

/// What became of the event in the child of a fork within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    /// Not yet reserved: the child has written it, as its parent has.
    Whole,
    /// Counted as lost.
    Lost,
    /// The fork came behind it.
    Over,
}

fn half(child: &mut Memory, event: &str) -> Half {
    let of_ring = |ring: &ft_user::layout::RingControl| u64::from(ring.cut_by_fork.load(Relaxed));
    let lost = child.rings().map(of_ring).sum::<u64>() + child.shared().0.lost.load(Relaxed);
    // What is written late has its slots for itself.
    let is_kept = |ring: &ft_user::layout::RingControl| {
        ring.claimed_at.load(Relaxed) < ring.passed_at.load(Relaxed)
    };
    assert!(child.rings().all(|ring| (of_ring(ring) > 0) == is_kept(ring)));
    let names: Vec<_> = child.take_last().into_iter().map(|event| event.name).collect();
    match (lost, &names[..]) {
        (0, [whole, after]) if whole == event && after == "step.after" => Half::Whole,
        (1, [after]) if after == "step.after" => Half::Lost,
        (0, [after]) if after == "step.after" => Half::Over,
        _ => panic!("{lost} lost, {names:?}"),
    }
}

/// Steps through an event, with a fork in a handler every `stride` instructions.
fn step(kind: u32, event: &str, stride: u64, without_ring: bool) {
    let Some(compiler) = compilers(&["gcc"]).pop() else { return };
    let name = format!("fork-step-{kind}-{without_ring}");
    let sources = ["tests/c/fork_step.c"];
    let program = build(compiler, &["-std=gnu11", "-O2"], &sources, Link::Shared, &name);
    let agent = Agent::new(&name);
    let mut command = Command::new(program);
    command.args([kind.to_string(), stride.to_string(), u32::from(without_ring).to_string()]);
    command.env("FT_SOCKET", &agent.path).env("FT_RINGS", if without_ring { "1" } else { "8" });
    let forks: usize = run(&mut command).trim().parse().unwrap();
    let mut memories = agent.memories();
    assert_eq!(memories.len(), 1 + forks, "each child has a memfd of its own");
    let pids: Vec<u32> = memories.iter().map(|memory| memory.header().pid).collect();

    // The parent's events are whole, each once; the first was without a signal, and the last is the one that was stepped through.
    let parent = memories.remove(0).take_last();
    let rounds = parent.iter().filter(|event| event.words[0] > 0).map(|event| event.words[0]);
    let rounds: Vec<u64> = rounds.collect();
    assert!(rounds.iter().copied().eq(1..=rounds.len() as u64), "{rounds:?}");
    assert!((forks..=forks + 1).contains(&rounds.len()), "{} of {forks}", rounds.len());

    let halves: Vec<Half> = memories.iter_mut().map(|child| half(child, event)).collect();
    let count = |wanted| halves.iter().filter(|&&half| half == wanted).count();
    println!(
        "{event}: {forks} forks; {} whole, {} lost, {} behind it",
        count(Half::Whole),
        count(Half::Lost),
        count(Half::Over)
    );
    assert!(halves.is_sorted(), "{halves:?} of {pids:?}");
    assert!(count(Half::Whole) > 0 && count(Half::Over) > 0);
    // There the child writes it once more.
    assert_eq!(count(Half::Lost) > 0, !without_ring);
}

#[test]
fn at_each_instruction_of_a_short_event() {
    step(2, "step.two", 1, false);
}

#[test]
fn at_each_instruction_of_a_long_event() {
    step(5, "step.five", 1, false);
}

#[test]
fn at_each_instruction_of_an_event_with_text() {
    step(0, "step.text", 1, false);
}

/// The child then has no ring, and what it writes goes nowhere: it lives all the same.
#[test]
fn at_each_instruction_of_an_event_of_a_child_that_gets_no_memfd() {
    let Some(compiler) = compilers(&["gcc"]).pop() else { return };
    let sources = ["tests/c/fork_step.c"];
    let options = ["-std=gnu11", "-O2"];
    let program = build(compiler, &options, &sources, Link::Shared, "fork-step-no-memfd");
    for kind in [0, 2] {
        let agent = Agent::new(&format!("fork-step-no-memfd-{kind}"));
        let mut command = Command::new(&program);
        command.args([&kind.to_string(), "1", "2"]).env("FT_SOCKET", &agent.path);
        let forks: usize = run(&mut command).trim().parse().unwrap();
        let mut memories = agent.memories();
        assert!(forks > 30 && memories.len() == 1, "{forks} forks, {} memfds", memories.len());
        let parent = memories.remove(0);
        assert_eq!(parent.shared().0.unknown_children.load(Relaxed) as usize, forks);
    }
}

/// The rare path is Rust, and has many more instructions.
#[test]
fn at_some_instructions_of_an_event_in_the_shared_ring() {
    step(2, "step.two", 13, true);
}

/// Forks while other threads do this; the children live.
fn beside(what: &str, forks: u64) {
    let Some(compiler) = compilers(&["gcc"]).pop() else { return };
    let name = format!("fork-beside-{what}");
    let sources = ["tests/c/fork_beside.c"];
    let program = build(compiler, &["-std=gnu11", "-O2"], &sources, Link::Shared, &name);
    let mut command = Command::new(program);
    command.args([what, &scaled(forks).to_string()]).env("FT_SOCKET", "/nonexistent");
    assert_eq!(run(&mut command), "0\n", "of {} children beside {what}", scaled(forks));
}

#[test]
fn beside_threads_that_load_libraries() {
    beside("dlopen", 100);
}

#[test]
fn beside_threads_that_allocate() {
    beside("malloc", 100);
}

#[test]
fn beside_threads_that_switch_sites() {
    beside("enable", 100);
}

#[test]
fn beside_threads_that_claim_rings_and_end() {
    beside("claims", 100);
}

#[test]
fn beside_a_thread_that_executes_a_program() {
    beside("exec", 10);
}

#[test]
fn in_handlers_that_strike_anywhere() {
    beside("handler", 100);
}

/// Their child borrows the parent's memory, or writes to what the parent writes to: it lives all the same.
#[test]
fn by_calls_without_handlers() {
    beside("vfork", 100);
    beside("clone", 100);
}

/// Forks in a program with fork handlers of its own, which run before and behind ours. What has registered, the parent first.
fn with_handlers(what: &str, forks: u64) -> Vec<Memory> {
    let name = format!("fork-handlers-{what}");
    let sources = ["tests/c/fork_handlers.c"];
    let program = build("cc", &["-std=gnu11", "-O2"], &sources, Link::Shared, &name);
    let agent = Agent::new(&name);
    let mut command = Command::new(program);
    command.args([what, &forks.to_string()]).env("FT_SOCKET", &agent.path);
    assert_eq!(run(&mut command), "0\n", "of {forks} children");
    agent.memories()
}

#[test]
fn what_handlers_of_others_write_is_the_parents_before_the_fork_and_the_childs_behind_it() {
    let forks = scaled(20) as usize;
    let mut memories = with_handlers("events", forks as u64).into_iter();
    let names = |mut memory: Memory| -> Vec<String> {
        memory.take_last().into_iter().map(|event| event.name).collect()
    };
    let parent = names(memories.next().unwrap());
    for (name, expected) in [("before", forks), ("parent", forks), ("main", forks + 1)] {
        let name = format!("handler.{name}");
        assert_eq!(parent.iter().filter(|found| **found == name).count(), expected, "{name}");
    }
    assert_eq!(parent.len(), 3 * forks + 1, "and nothing else");
    assert_eq!(memories.len(), forks);
    for child in memories {
        assert_eq!(names(child), ["handler.child", "handler.after"]);
    }
}

#[test]
fn handlers_of_others_may_fault() {
    with_handlers("faults", 20);
}

/// One handler waits for a mutex whose owner switches sites: neither waits for ever, and some children are not traced.
#[test]
fn handlers_of_others_may_wait_for_whoever_switches_sites() {
    with_handlers("mutex", 20);
}

/// The ring that the child looks at is the parent's, who writes on at once.
#[test]
fn what_the_parent_writes_meanwhile_is_no_loss_of_the_child() {
    common::start(ft_user::Config::default());
    ft_user::enable("fork.beside");
    let write = |n: u64| ft_user::event!("fork.beside", n: u64);
    write(0);
    for _ in 0..scaled(300) {
        // SAFETY: the child makes a system call, and waits for its end.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: stops this process, which is ended then.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG | libc::WUNTRACED) } == 0 {
            (0..1000).for_each(write);
            Memory::own().take();
        }
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        let memory = Memory::of(child as u32);
        let lost: Vec<u32> = memory.rings().map(|ring| ring.cut_by_fork.load(Relaxed)).collect();
        // SAFETY: ends our own child.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert_eq!(lost, [0], "what its parent was writing is not the child's");
    }
}
