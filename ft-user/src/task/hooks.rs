//! Tasks of an executor that calls back when it makes, polls and ends one: for crates that join its hooks to traces, as
//! `ft-tokio` does.
//!
//! The events are those of [the tasks that are wrapped](super), but for two facts that hooks do not report:
//!
//! - *Who wakes a task, and when.* Between two polls nobody knows whether it waits or is queued, and reports say so.
//! - *How it ends.* Where it ends in a poll it is ready, although a panic or its executor may have ended it, and elsewhere
//!   dropped.
//!
//! A task has the executor's number for it, with [`HOOKED_TASKS`] added. Numbers of several executors in one process must
//! differ.

use std::cell::Cell;

use crate::__event;
use crate::layout::HOOKED_TASKS;
use crate::sync::place::{self, Place};

/// Polls within each other on one thread that are recorded.
///
/// Limit: the innermost are not recorded; a task that ends in such a poll looks dropped.
/// Shown by: `polls_within_each_other_are_bounded` of `ft-tokio`.
const MAX_NESTED: usize = 8;

/// The polls in which a thread is.
struct Nested {
    depth: Cell<usize>,
    /// The task of each; 0: its end was recorded.
    tasks: [Cell<u64>; MAX_NESTED],
}

thread_local! {
    static POLLS: Nested = const {
        Nested { depth: Cell::new(0), tasks: [const { Cell::new(0) }; MAX_NESTED] }
    };
}

/// The executor makes a task, at this place of the program.
#[inline]
pub fn made(task: u64, at: Place) {
    __event!(
        kind = TaskNew,
        "async.new",
        task: u64 = number(task),
        place: u64 = place::word(at, None)
    );
}

/// This thread begins to poll a task, which was made at this place. [`polled`] is to follow on this thread.
///
/// Of more than 8 polls within each other the innermost are not recorded.
#[inline]
pub fn polls(task: u64, at: Place) {
    POLLS.with(|polls| {
        let depth = polls.depth.replace(polls.depth.get() + 1);
        let Some(slot) = polls.tasks.get(depth) else { return };
        let task = number(task);
        __event!(kind = TaskPoll, "async.poll", task: u64, place: u64 = place::word(at, None));
        slot.set(task);
    });
}

/// The poll that this thread began last is over, and its task pending, unless [`over`] was called for it.
#[inline]
pub fn polled() {
    POLLS.with(|polls| {
        let Some(depth) = polls.depth.get().checked_sub(1) else { return };
        polls.depth.set(depth);
        let Some(slot) = polls.tasks.get(depth) else { return };
        let task = slot.take();
        if task != 0 {
            __event!(kind = TaskPolled, "async.polled", task: u64, outcome: u32 = 0);
        }
    });
}

/// A task is over. In a poll of it on this thread, that is over, too.
#[inline]
pub fn over(task: u64) {
    let task = number(task);
    let innermost = POLLS.with(|polls| {
        let slot = polls.tasks.get(polls.depth.get().checked_sub(1)?)?;
        (slot.get() == task).then(|| slot.take())
    });
    match innermost {
        Some(task) => {
            __event!(kind = TaskPolled, "async.polled", task: u64, outcome: u32 = 1);
        }
        None => {
            __event!(kind = TaskDrop, "async.drop", task: u64);
        }
    }
}

fn number(task: u64) -> u64 {
    HOOKED_TASKS.wrapping_add(task)
}
