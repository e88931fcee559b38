//! Async tasks: which thread polled a task when, who woke it, and how it ended.
//!
//! A thread is no unit that the author of an async program thinks in: its work moves between threads, and one thread does
//! the work of thousands. Wrap what is to be followed:
//!
//! ```
//! use ft_user::task;
//!
//! # fn spawn(_: impl Future + Send) {}
//! # async fn accept() {}
//! # async fn serve() {}
//! spawn(task::named("accept", accept())); // with tokio: tokio::spawn(task::named("accept", accept()))
//! spawn(task::traced(async {
//!     // A part of a task can be followed like a task.
//!     task::named("serve", serve()).await
//! }));
//! task::spawn(spawn, "accept", accept()); // the same as the first: task::spawn(tokio::spawn, "accept", accept())
//! ```
//!
//! Any executor does: a [`Traced`] is a future like another one.
//!
//! # Events
//!
//! | event | when | arguments |
//! |---|---|---|
//! | `async.new` | the future is wrapped | task, place |
//! | `async.poll` | a poll begins | task, place |
//! | `async.polled` | it is over | task, outcome: 0 pending, 1 ready, 2 a panic |
//! | `async.wake` | the task is woken, by the thread that records it | task |
//! | `async.drop` | the task is dropped before it was ready | task |
//!
//! `task` is a number that no two tasks of a process have, never 0. `place` holds the numbers of the task's name and of
//! the source place where it was wrapped, as that of a lock does. Switch all of them together, `ft_user::enable("async.*")`:
//! without `async.wake`, a task that is queued seems to wait.
//!
//! A poll is traced from its begin on or not at all. A task that was begun before its events were on is recorded from its
//! next poll on; one that is polled again after it was over is another task.
//!
//! # Costs
//!
//! While `async.poll` is off, a poll is that of the future, a trigger, and a test of a register: its waker is handed on as
//! it is, and nothing is allocated. While it is on, the waker is wrapped: one allocation of five words for a poll, unless
//! somebody still holds the wrapped waker of the poll before and the executor's is the same
//! ([`Waker::will_wake`]). The task itself does not keep the waker, which may own the task.
//!
//! # Limits
//!
//! - What the executor does with a task between polls is its own. How long a woken task waited to be polled is known, not
//!   why its executor chose another.
//! - An executor that takes wakers apart, as embassy's does, finds one that is not its own while `async.poll` is on.
//! - A wake through a waker that was made while `async.poll` was off is not recorded.
//!
//! An executor with hooks, as tokio's are where it is built for unstable ones, reports all tasks, wrapped or not, but less of each:
//! [`hooks`].

pub mod hooks;
mod numbers;

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use self::numbers::Numbers;
use crate::__event;
use crate::atomic::AtomicU64;
use crate::sync::place::{self, Place};

/// A task whose polls, wakes and end are recorded. See the [module](self).
#[must_use = "a future does nothing unless it is polled"]
pub struct Traced<F> {
    future: F,
    /// 0 until an event carries it, and again when the task is over.
    task: u64,
    name: Option<&'static str>,
    at: Place,
    /// Lives as long as whoever may wake the task: an `Arc` could keep the task itself alive, by its waker.
    waker: Weak<TaskWaker>,
}

/// Follows `future`, without a name; reports show where this was called.
#[track_caller]
pub fn traced<F: Future>(future: F) -> Traced<F> {
    Traced::new(None, Location::caller(), future)
}

/// Follows `future`, with a name for reports. Many may share one name.
#[track_caller]
pub fn named<F: Future>(name: &'static str, future: F) -> Traced<F> {
    Traced::new(Some(name), Location::caller(), future)
}

/// Follows `future`, with a name for reports, and hands it to an executor: `tokio::spawn`, or
/// `|task| pool.spawn(task)`. Returns what that returns; reports show where this was called.
#[track_caller]
pub fn spawn<F: Future, R>(
    executor: impl FnOnce(Traced<F>) -> R,
    name: &'static str,
    future: F,
) -> R {
    executor(named(name, future))
}

impl<F> Traced<F> {
    #[inline]
    fn new(name: Option<&'static str>, at: Place, future: F) -> Self {
        let mut task = 0;
        __event!(
            kind = TaskNew,
            "async.new",
            task: u64 = {
                task = number();
                task
            },
            place: u64 = place::word(at, name)
        );
        Traced { future, task, name, at, waker: Weak::new() }
    }

    /// What wakes the task by `waker`, and tells of it.
    fn wrapped(&mut self, waker: &Waker) -> Waker {
        let known = self.waker.upgrade().filter(|known| known.inner.will_wake(waker));
        let wrapped = known.unwrap_or_else(|| {
            let new = Arc::new(TaskWaker { task: self.task, inner: waker.clone() });
            self.waker = Arc::downgrade(&new);
            new
        });
        wrapped.into()
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is pinned with `self`: it is moved nowhere, and `drop` does not touch it. No other field is.
        let this = unsafe { self.get_unchecked_mut() };
        let mut begun = false;
        __event!(
            kind = TaskPoll,
            "async.poll",
            task: u64 = {
                begun = true;
                if this.task == 0 {
                    this.task = number();
                }
                this.task
            },
            place: u64 = place::word(this.at, this.name)
        );
        let waker = begun.then(|| this.wrapped(context.waker()));
        let mut polled = Polled { task: &mut this.task, begun, outcome: Outcome::Panic };
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let result = match &waker {
            Some(waker) => future.poll(&mut Context::from_waker(waker)),
            None => future.poll(context),
        };
        polled.outcome = if result.is_ready() { Outcome::Ready } else { Outcome::Pending };
        result
    }
}

impl<F> Drop for Traced<F> {
    #[inline]
    fn drop(&mut self) {
        if self.task != 0 {
            __event!(kind = TaskDrop, "async.drop", task: u64 = self.task);
        }
    }
}

impl<F> fmt::Debug for Traced<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced")
            .field("name", &self.name)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// How a poll ended, as its event says.
#[derive(Clone, Copy)]
enum Outcome {
    Pending,
    Ready,
    Panic,
}

/// A poll that goes on; its end is recorded when this is dropped, in a panic, too.
struct Polled<'a> {
    task: &'a mut u64,
    begun: bool,
    outcome: Outcome,
}

impl Drop for Polled<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.begun {
            let (task, outcome) = (*self.task, self.outcome);
            __event!(kind = TaskPolled, "async.polled", task: u64, outcome: u32 = outcome as u32);
        }
        if !matches!(self.outcome, Outcome::Pending) {
            *self.task = 0;
        }
    }
}

/// The executor's waker of a task, which tells who uses it. Nothing of it changes, and its [`Arc`] counts its users, so threads share it
/// without more: what else they share of tasks, their numbers and those of their names and places, is modelled in `tests/loom/tasks.rs`.
#[derive(Clone)]
struct TaskWaker {
    task: u64,
    inner: Waker,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.tell();
        Arc::unwrap_or_clone(self).inner.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.tell();
        self.inner.wake_by_ref();
    }
}

impl TaskWaker {
    /// Before the executor hears of it: it may poll the task at once.
    fn tell(&self) {
        __event!(kind = TaskWake, "async.wake", task: u64 = self.task);
    }
}

/// A number for a task, never 0.
fn number() -> u64 {
    static TASKS: Numbers = Numbers(AtomicU64::new(1));
    TASKS.next()
}
