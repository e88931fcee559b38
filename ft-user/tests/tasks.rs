//! Traced tasks tell what happened to them, and are to their executor as they would be untraced.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;
#[path = "tasks/wakers.rs"]
mod wakers;

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use common::{Event, Memory, tid};
use ft_user::Config;
use ft_user::layout::SiteKind;
use ft_user::task::{named, spawn, traced};

/// All tests look at one memfd, and switch the same sites: one at a time.
fn alone<T>(test: impl FnOnce() -> T) -> T {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    test()
}

/// What `work` tells.
fn trace(work: impl FnOnce()) -> (Memory, Vec<Event>) {
    alone(|| {
        common::start(Config::default());
        assert!(ft_user::enable("async.*") > 0);
        let mut memory = Memory::own();
        memory.take();
        work();
        let events = memory.take();
        ft_user::disable("async.*");
        (memory, events)
    })
}

/// `new 0`, `poll 0`, `polled 0 pending`, …; tasks are numbered in the order in which they come.
fn told(events: &[Event]) -> Vec<String> {
    let mut tasks = Vec::new();
    let text = |event: &Event| {
        let task = event.words[0];
        assert_ne!(task, 0, "{event:?}");
        if !tasks.contains(&task) {
            tasks.push(task);
        }
        let task = tasks.iter().position(|known| *known == task).unwrap();
        let (what, kind) = match event.name.strip_prefix("async.").unwrap() {
            what @ "new" => (what, SiteKind::TaskNew),
            what @ "poll" => (what, SiteKind::TaskPoll),
            what @ "polled" => (what, SiteKind::TaskPolled),
            what @ "wake" => (what, SiteKind::TaskWake),
            what => (what, SiteKind::TaskDrop),
        };
        assert_eq!(event.kind, kind);
        match what {
            "polled" => {
                let outcome = ["pending", "ready", "panic"][event.words[1] as usize];
                format!("polled {task} {outcome}")
            }
            _ => format!("{what} {task}"),
        }
    };
    events.iter().map(text).collect()
}

/// The waker of an executor, which counts.
#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Waits until `done`, and hands its waker out meanwhile.
async fn until(done: &Cell<bool>, kept: &Mutex<Option<Waker>>) {
    poll_fn(|context| {
        *kept.lock().unwrap() = Some(context.waker().clone());
        if done.get() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn a_task_tells_its_polls_who_wakes_it_and_its_name_and_place() {
    let (done, kept) = (Cell::new(false), Mutex::new(None));
    let (wakes, mut waking) = (Arc::new(Wakes::default()), 0);
    let line = line!() + 2;
    let (memory, events) = trace(|| {
        let mut task = pin!(named("fetch", until(&done, &kept)));
        let waker = Waker::from(wakes.clone());
        assert!(poll(task.as_mut(), &waker).is_pending());
        thread::scope(|scope| {
            scope.spawn(|| {
                waking = tid();
                let waker = kept.lock().unwrap().take().unwrap();
                waker.wake_by_ref();
                waker.wake();
            });
        });
        done.set(true);
        assert!(poll(task.as_mut(), &waker).is_ready());
    });
    let expected =
        ["new 0", "poll 0", "polled 0 pending", "wake 0", "wake 0", "poll 0", "polled 0 ready"];
    assert_eq!(told(&events), expected);
    assert_eq!(wakes.0.load(SeqCst), 2, "the executor is woken as often");
    for (event, what) in events.iter().zip(expected) {
        assert_eq!(event.tid, if what == "wake 0" { waking } else { tid() });
        if what == "new 0" || what == "poll 0" {
            let (place, name) = (event.words[1] as u32, (event.words[1] >> 32) as u32);
            assert_eq!(memory.place(place), (file!().to_owned(), line));
            assert_eq!(memory.name(name), "fetch");
        }
    }
}

#[test]
fn what_is_spawned_has_its_name_and_the_place_of_the_caller_and_its_handle_comes_back() {
    let line = line!() + 2;
    let (memory, events) = trace(|| {
        let (mut task, handle) = spawn(|task| (Box::pin(task), 7), "fetch", ready(3));
        assert_eq!(handle, 7);
        assert_eq!(poll(task.as_mut(), Waker::noop()), Poll::Ready(3));
    });
    assert_eq!(told(&events), ["new 0", "poll 0", "polled 0 ready"]);
    let (place, name) = (events[0].words[1] as u32, (events[0].words[1] >> 32) as u32);
    assert_eq!(memory.place(place), (file!().to_owned(), line));
    assert_eq!(memory.name(name), "fetch");
}

#[test]
fn tasks_within_a_task_have_polls_of_their_own_and_a_wake_reaches_all_of_them() {
    let (done, kept) = (Cell::new(false), Mutex::new(None));
    let (_, events) = trace(|| {
        let mut task = pin!(traced(async { traced(until(&done, &kept)).await }));
        assert!(poll(task.as_mut(), Waker::noop()).is_pending());
        kept.lock().unwrap().take().unwrap().wake();
        done.set(true);
        assert!(poll(task.as_mut(), Waker::noop()).is_ready());
    });
    let expected = [
        "new 0",
        "poll 0",
        "new 1",
        "poll 1",
        "polled 1 pending",
        "polled 0 pending",
        "wake 1",
        "wake 0",
        "poll 0",
        "poll 1",
        "polled 1 ready",
        "polled 0 ready",
    ];
    assert_eq!(told(&events), expected);
}

#[test]
fn what_is_dropped_before_it_is_ready_tells_so_and_a_panic_ends_its_poll() {
    let (_, events) = trace(|| {
        drop(traced(ready(1)));
        {
            let mut task = pin!(traced(pending::<()>()));
            assert!(poll(task.as_mut(), Waker::noop()).is_pending());
        }
        let mut task = pin!(traced(poll_fn(|_| -> Poll<()> {
            std::panic::resume_unwind(Box::new(()));
        })));
        // What is polled after its end is another task.
        for _ in 0..2 {
            let panic = catch_unwind(AssertUnwindSafe(|| poll(task.as_mut(), Waker::noop())));
            assert!(panic.is_err());
        }
    });
    let expected = [
        "new 0",
        "drop 0",
        "new 1",
        "poll 1",
        "polled 1 pending",
        "drop 1",
        "new 2",
        "poll 2",
        "polled 2 panic",
        "poll 3",
        "polled 3 panic",
    ];
    assert_eq!(told(&events), expected);
}

#[test]
fn one_that_is_cancelled_while_it_is_queued_or_in_the_poll_of_another_one_is_dropped_once() {
    let (done, kept) = (Cell::new(false), Mutex::new(None));
    let (_, events) = trace(|| {
        {
            let mut task = pin!(traced(until(&done, &kept)));
            assert!(poll(task.as_mut(), Waker::noop()).is_pending());
            kept.lock().unwrap().as_ref().unwrap().wake_by_ref();
        }
        // Who wakes it later tells so: it knows nothing of the end.
        kept.lock().unwrap().take().unwrap().wake();
        // As `select!` does with what was not first.
        let mut task = pin!(traced(poll_fn(|context| {
            let mut inner = Box::pin(traced(pending::<()>()));
            assert!(inner.as_mut().poll(context).is_pending());
            drop(inner);
            Poll::Ready(())
        })));
        assert!(poll(task.as_mut(), Waker::noop()).is_ready());
        // A panic in its poll drops what it had made.
        let mut task = pin!(traced(async {
            let _inner = traced(pending::<()>());
            std::panic::resume_unwind(Box::new(()))
        }));
        let panic = catch_unwind(AssertUnwindSafe(|| {
            poll::<dyn Future<Output = ()>>(task.as_mut(), Waker::noop())
        }));
        assert!(panic.is_err());
    });
    let expected = [
        "new 0",
        "poll 0",
        "polled 0 pending",
        "wake 0",
        "drop 0",
        "wake 0",
        "new 1",
        "poll 1",
        "new 2",
        "poll 2",
        "polled 2 pending",
        "drop 2",
        "polled 1 ready",
        "new 3",
        "poll 3",
        "new 4",
        "drop 4",
        "polled 3 panic",
    ];
    assert_eq!(told(&events), expected);
}

#[ft_user::function]
fn answers() {
    let _scope = ft_user::scope!("signal.handled");
    ft_user::event!("signal.event");
}

/// Between any two instructions of a poll. It wakes its task, too, as a self-pipe of an executor would.
extern "C" fn handler(_: libc::c_int) {
    answers();
    WOKEN.with_borrow(|waker| waker.as_ref().unwrap().wake_by_ref());
}

thread_local! {
    static WOKEN: std::cell::RefCell<Option<Waker>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_signal_in_a_poll_lies_within_it() {
    alone(|| {
        common::start(Config::default());
        // SAFETY: the handler does what an event may do anywhere, and reads a thread's value that nobody changes then.
        unsafe { libc::signal(libc::SIGUSR2, handler as *const () as libc::sighandler_t) };
        for glob in ["async.*", "signal.*", "fn.*"] {
            assert!(ft_user::enable(glob) > 0);
        }
        let mut memory = Memory::own();
        memory.take();
        let mut task = pin!(traced(poll_fn(|context| {
            WOKEN.set(Some(context.waker().clone()));
            // SAFETY: no memory.
            unsafe { libc::raise(libc::SIGUSR2) };
            Poll::Ready(())
        })));
        assert!(poll(task.as_mut(), Waker::noop()).is_ready());
        let events = memory.take();
        WOKEN.set(None);
        for glob in ["async.*", "signal.*", "fn.*"] {
            ft_user::disable(glob);
        }
        assert!(events.iter().all(|event| event.tid == tid()));
        let kinds: Vec<SiteKind> = events.iter().map(|event| event.kind).collect();
        use SiteKind::*;
        let expected = [
            TaskNew,
            TaskPoll,
            FunctionEnter,
            ScopeBegin,
            Event,
            ScopeEnd,
            FunctionExit,
            TaskWake,
            TaskPolled,
        ];
        assert_eq!(kinds, expected, "{events:?}");
    });
}

#[test]
fn one_that_was_begun_while_it_was_off_is_told_of_from_its_next_poll_on() {
    alone(|| {
        common::start(Config::default());
        let mut memory = Memory::own();
        let (done, kept) = (Cell::new(false), Mutex::new(None));
        let mut task = pin!(traced(until(&done, &kept)));
        assert!(poll(task.as_mut(), Waker::noop()).is_pending());
        memory.take();
        assert!(ft_user::enable("async.*") > 0);
        assert!(poll(task.as_mut(), Waker::noop()).is_pending());
        assert!(ft_user::disable("async.*") > 0);
        // Its end is not recorded: its drop is none of a task that was not ready.
        done.set(true);
        assert!(poll(task.as_mut(), Waker::noop()).is_ready());
        assert!(ft_user::enable("async.*") > 0);
        task.set(traced(until(&done, &kept)));
        ft_user::disable("async.*");
        assert_eq!(told(&memory.take()), ["poll 0", "polled 0 pending", "new 1"]);
    });
}
