//! The polls of async tasks in which a thread is: which one an event begins or ends.

use super::parts::Began;
use super::threads::Slot;
use super::turns::Turn;
use super::{Change, Thread, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::LeanUserEvent;
use ft_trace::tables::SiteKind;

/// Polls in which one thread can be at a time; more comes from damaged data, or from ends that were never recorded.
///
/// Limit: the outermost has no row and is counted (`too_many`), and what its task does is not known until its next
/// event.
/// Shown by: `polls_within_each_other_are_bounded_and_counted`.
const MAX_POLLS: usize = 256;

/// A task of a process: the registration that numbered it, and its number.
pub type TaskId = (i32, i64);

/// A poll in which a thread is.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// Of which task.
    pub task: TaskId,
    /// No two polls of a trace have the same.
    pub number: u64,
    /// It ends with the thread's next fiber.
    is_fiber: bool,
    /// Of those of one task, the outermost: the thread runs the task since then.
    turn: Option<Turn>,
}

/// How a thread has left a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The poll has ended.
    Ended,
    /// The thread runs another fiber, or none.
    Switched,
    /// It lies in a fiber that the thread runs no longer: it goes on when that is back, and nothing tells its end.
    Within,
    /// It was the outermost of too many.
    TooMany,
}

/// The polls in which a thread is, the outermost first. At most one of them is a fiber.
#[derive(Debug, Default)]
pub(crate) struct Polls(Vec<Poll>);

impl Polls {
    /// The innermost.
    pub(crate) fn innermost(&self) -> Option<&Poll> {
        self.0.last()
    }

    /// All of them, the innermost first.
    pub(crate) fn innermost_first(&self) -> impl Iterator<Item = &Poll> {
        self.0.iter().rev()
    }

    /// The turn of a task that goes on.
    pub(super) fn turn(&self, task: TaskId) -> Option<&Turn> {
        self.0.iter().rev().filter(|poll| poll.task == task).find_map(|poll| poll.turn.as_ref())
    }

    /// The thread runs the task.
    pub(crate) fn is_in(&self, task: TaskId) -> bool {
        self.0.iter().any(|poll| poll.task == task)
    }

    /// The fiber that the thread runs.
    pub(crate) fn fiber(&self) -> Option<TaskId> {
        self.0.iter().find(|poll| poll.is_fiber).map(|poll| poll.task)
    }

    /// The thread is in none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The thread is in none any longer, as far as is known; in which it was.
    pub(super) fn clear(&mut self) -> Vec<Poll> {
        std::mem::take(&mut self.0)
    }

    /// Takes away the outermost, if there is no room for another one.
    fn make_room(&mut self) -> Option<Poll> {
        (self.0.len() == MAX_POLLS).then(|| self.0.remove(0))
    }

    /// Takes away the newest poll of a task.
    fn end(&mut self, task: TaskId) -> Option<Poll> {
        let newest = self.0.iter().rposition(|poll| poll.task == task)?;
        Some(self.0.remove(newest))
    }

    /// Takes away the innermost, while the thread runs a fiber.
    fn pop_in_fiber(&mut self) -> Option<Poll> {
        self.0.iter().any(|poll| poll.is_fiber).then(|| self.0.pop()).flatten()
    }
}

impl Poll {
    /// Under which task is kept what was begun in it, now that the thread is in it no longer; `None`: it stays with the thread.
    pub(crate) fn parks_as(&self, thread: &Thread, how: Left) -> Option<TaskId> {
        match how {
            // What the thread goes on with when the fiber is back.
            Left::Within => thread.polls.fiber(),
            Left::Ended | Left::Switched => self.turn.map(|_| self.task),
            Left::TooMany => None,
        }
    }

    /// What a task has begun goes along when the thread has left this poll.
    pub(crate) fn takes(&self, thread: &Thread, how: Left, began_in: TaskId) -> bool {
        let goes = match how {
            // With a fiber, what polls in it have begun that was left before.
            Left::Switched => !thread.polls.is_in(began_in),
            _ => began_in == self.task,
        };
        goes && self.parks_as(thread, how).is_some()
    }
}

impl World {
    /// A thread tells something of a task, which that registration numbered.
    pub(super) fn task_event<A: Analysis>(
        &mut self,
        slot: Slot,
        e: &LeanUserEvent,
        (kind, source): (SiteKind, i32),
        to: &mut Audience<'_, A>,
    ) {
        let task = (source, e.arg[0]);
        match kind {
            SiteKind::TaskPoll => self.poll_begins(slot, e, task, false, to),
            SiteKind::TaskPolled => {
                let poll = self.threads[slot].polls.end(task);
                self.poll_left(slot, e, (task, poll.as_ref()), Left::Ended, to);
            }
            SiteKind::TaskSwitch => {
                while let Some(poll) = self.threads[slot].polls.pop_in_fiber() {
                    let how = if poll.is_fiber { Left::Switched } else { Left::Within };
                    self.poll_left(slot, e, (poll.task, Some(&poll)), how, to);
                }
                if e.arg[0] != 0 {
                    self.poll_begins(slot, e, task, true, to);
                }
            }
            SiteKind::TaskNew => {
                self.turns.forget(self.threads[slot].process, task);
            }
            SiteKind::TaskDrop => {
                self.turns.dropped(self.threads[slot].process, task);
                // What is in it ends on this thread.
                self.brings(slot, task, to);
            }
            _ => {}
        }
    }

    fn poll_begins<A: Analysis>(
        &mut self,
        slot: Slot,
        event: &LeanUserEvent,
        task: TaskId,
        is_fiber: bool,
        to: &mut Audience<'_, A>,
    ) {
        if let Some(oldest) = self.threads[slot].polls.make_room() {
            self.poll_left(slot, event, (oldest.task, Some(&oldest)), Left::TooMany, to);
        }
        self.polls += 1;
        let thread = &self.threads[slot];
        let around = thread.polls.turn(task);
        let is_within = around.is_some_and(|turn| self.turns.goes_on(thread, task, turn));
        let began = Began::now(thread, self);
        let process = thread.process;
        let turn = (!is_within).then(|| self.turns.begins(process, task, self.polls, began));
        let poll = Poll { task, number: self.polls, is_fiber, turn };
        self.threads[slot].polls.0.push(poll);
        self.brings(slot, task, to);
        to.tell(self, Change::TaskPoll { thread: &self.threads[slot], event, poll: &poll });
    }

    fn poll_left<A: Analysis>(
        &mut self,
        slot: Slot,
        event: &LeanUserEvent,
        (task, poll): (TaskId, Option<&Poll>),
        how: Left,
        to: &mut Audience<'_, A>,
    ) {
        if let Some((poll, turn)) = poll.and_then(|poll| Some((poll, poll.turn.as_ref()?))) {
            let thread = &self.threads[slot];
            let now = Began::now(thread, self);
            match how {
                Left::Ended | Left::Switched => self.turns.ends(thread, poll.task, turn, &now),
                Left::Within | Left::TooMany => self.turns.forget(thread.process, poll.task),
            }
        }
        let thread = &self.threads[slot];
        to.tell(self, Change::TaskPolled { thread, event, task, poll, how });
        if let Some(poll) = poll {
            self.parks(slot, poll, how, to);
        }
        if how == Left::Ended && event.arg[1] != 0 {
            self.turns.forget(self.threads[slot].process, task);
        }
    }
}
