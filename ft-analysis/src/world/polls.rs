//! The polls of async tasks in which a thread is: which one an event begins or ends.

use super::threads::Slot;
use super::{Change, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::LeanUserEvent;
use ft_trace::tables::SiteKind;

/// Polls in which one thread can be at a time; more comes from damaged data, or from ends that were never recorded.
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

    /// The thread is in none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The thread is in none any longer, as far as is known.
    pub(super) fn clear(&mut self) {
        self.0.clear();
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
        let poll = Poll { task, number: self.polls, is_fiber };
        self.threads[slot].polls.0.push(poll);
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
        let thread = &self.threads[slot];
        to.tell(self, Change::TaskPolled { thread, event, task, poll, how });
    }
}
