//! What the hooks of tokio's runtimes tell, read back from the rings.
#![cfg(all(tokio_unstable, target_arch = "x86_64", target_os = "linux"))]

#[path = "../../ft-user/tests/common/mod.rs"]
mod common;

use std::future::{pending, ready};
use std::sync::Mutex;

use common::{Event, Memory};
use ft_user::Config;
use ft_user::layout::HOOKED_TASKS;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{Id, block_in_place, spawn_blocking, yield_now};

/// All tests look at one memfd, and switch the same sites: one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What `work` tells.
fn trace(work: impl FnOnce()) -> Vec<Event> {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    common::start(Config::default());
    assert!(ft_user::enable("async.*") > 0);
    let mut memory = Memory::own();
    memory.take();
    work();
    let events = memory.take();
    ft_user::disable("async.*");
    events
}

/// A runtime of this thread.
fn alone() -> Runtime {
    let mut builder = Builder::new_current_thread();
    ft_tokio::follow(&mut builder).build().unwrap()
}

/// `new 0`, `poll 0`, `polled 0 pending`, …; tasks are numbered in the order in which they come.
fn told(events: &[Event]) -> Vec<String> {
    let mut tasks = Vec::new();
    let text = |event: &Event| {
        let task = event.words[0];
        if !tasks.contains(&task) {
            tasks.push(task);
        }
        let task = tasks.iter().position(|known| *known == task).unwrap();
        match event.name.strip_prefix("async.").unwrap() {
            "polled" => {
                format!("polled {task} {}", ["pending", "ready", "panic"][event.words[1] as usize])
            }
            what => format!("{what} {task}"),
        }
    };
    events.iter().map(text).collect()
}

/// Tokio's number of a task, as it prints it.
fn printed(id: Id) -> u64 {
    id.to_string().parse().unwrap()
}

#[test]
fn a_task_tells_its_polls_by_tokios_number_and_where_it_was_spawned() {
    let (mut number, mut line) = (0, 0);
    let events = trace(|| {
        alone().block_on(async {
            line = line!() + 1;
            let spawned = tokio::spawn(yield_now());
            number = printed(spawned.id());
            spawned.await.unwrap();
        });
    });
    let expected = ["new 0", "poll 0", "polled 0 pending", "poll 0", "polled 0 ready"];
    assert_eq!(told(&events), expected);
    assert_eq!(events[0].words[0], HOOKED_TASKS + number);
    let memory = Memory::own();
    for event in [&events[0], &events[1], &events[3]] {
        let place = memory.place(event.words[1] as u32);
        assert_eq!(place, (file!().to_owned(), line), "{event:?}");
    }
}

#[test]
fn what_is_wrapped_is_a_task_within_tokios_and_tells_who_wakes_it() {
    let events = trace(|| {
        alone().block_on(async {
            tokio::spawn(ft_user::task::named("within", yield_now())).await.unwrap();
        });
    });
    let first = ["new 0", "new 1", "poll 1", "poll 0", "polled 0 pending", "polled 1 pending"];
    let second = ["wake 0", "poll 1", "poll 0", "polled 0 ready", "polled 1 ready"];
    assert_eq!(told(&events), [&first[..], &second].concat());
}

#[test]
fn whatever_ends_in_a_poll_is_ready_and_what_ends_with_its_runtime_is_dropped() {
    std::panic::set_hook(Box::new(|_| ()));
    let events = trace(|| {
        let runtime = alone();
        runtime.block_on(async {
            tokio::spawn(async { panic!("as it may") }).await.unwrap_err();
            let aborted = tokio::spawn(pending::<()>());
            yield_now().await;
            aborted.abort();
            aborted.await.unwrap_err();
            tokio::spawn(pending::<()>());
            yield_now().await;
        });
        drop(runtime);
    });
    let _ = std::panic::take_hook();
    let panics = ["new 0", "poll 0", "polled 0 ready"];
    let aborted = ["new 1", "poll 1", "polled 1 pending", "poll 1", "polled 1 ready"];
    let left = ["new 2", "poll 2", "polled 2 pending", "drop 2"];
    assert_eq!(told(&events), [&panics[..], &aborted, &left].concat());
}

#[test]
fn of_closures_that_block_the_end_alone_is_told() {
    let events = trace(|| {
        alone().block_on(async { spawn_blocking(|| ()).await.unwrap() });
    });
    assert_eq!(told(&events), ["drop 0"]);
}

#[test]
fn a_runtime_within_a_poll_of_another_one_leaves_that_as_it_was() {
    let events = trace(|| {
        let mut builder = Builder::new_multi_thread();
        let outer = ft_tokio::follow(builder.worker_threads(1)).build().unwrap();
        outer.block_on(async {
            let work = || alone().block_on(async { tokio::spawn(ready(())).await.unwrap() });
            tokio::spawn(async move { block_in_place(work) }).await.unwrap();
        });
    });
    let worker = events.iter().find(|event| event.name == "async.poll").unwrap().tid;
    // Tokio hands the rest of the worker on by a closure that blocks, whose end may be recorded here.
    let of_worker = events.into_iter().filter(|e| e.tid == worker && e.name != "async.drop");
    let of_worker: Vec<_> = of_worker.collect();
    let expected = ["poll 0", "new 1", "poll 1", "polled 1 ready", "polled 0 ready"];
    assert_eq!(told(&of_worker), expected);
}

/// Whoever nests polls deeper than is recorded gets all others right.
#[test]
fn polls_within_each_other_are_bounded() {
    use ft_user::task::hooks;
    let at = std::panic::Location::caller();
    let events = trace(|| {
        (1..=10).for_each(|task| hooks::polls(task, at));
        hooks::over(10);
        (1..=10).for_each(|_| hooks::polled());
        // One too many changes nothing.
        hooks::polled();
        hooks::polls(11, at);
        hooks::over(11);
        hooks::polled();
    });
    let polls = (0..8).map(|i| format!("poll {i}"));
    let ends = (0..8).rev().map(|i| format!("polled {i} pending"));
    let last = ["poll 9".to_owned(), "polled 9 ready".to_owned()];
    let expected: Vec<_> = polls.chain(["drop 8".to_owned()]).chain(ends).chain(last).collect();
    assert_eq!(told(&events), expected);
}
