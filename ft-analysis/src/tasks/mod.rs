//! Async tasks: where the time of their lives went, and of each of their polls.
//!
//! **Goal.** One row for each task: how long it was polled and what happened to its thread meanwhile, how long it was woken
//! and in the queue of its executor, and how long it waited to be woken. One row for each poll: its parts, what it was blocked
//! for, who woke the task for it, and what the thread that polled did since.
//!
//! **Rule.** A task is in one state at a time ([`life`]): unstarted, queued, polled, waiting, or unknown. Its events move it
//! from one to the next, so the states sum to its life. A poll is an interval of its thread ([`polls`]), so its parts are the
//! account at its end minus the account at its begin. A wake-up in a poll makes the task queued when that is over.
//!
//! **Situations.**
//! - *A task whose making was not recorded* begins with its first poll that was; a wake-up alone does not make one, since a
//!   waker may outlive its task.
//! - *Fibers* say only which one a thread runs from now on: such a stretch is a poll, pending where another one follows.
//!   A poll within a fiber that is left goes on when that is back: it has no row, and its task is in a state that is not known.
//! - *Tasks of an executor with hooks* ([`HOOKED_TASKS`](ft_user::layout::HOOKED_TASKS)) report no wake-up: between their polls the state is unknown.
//! - *Polls within polls* (tasks within tasks) are both tasks' own. What the thread polled before is recorded for outermost ones.
//! - *Events of a thread were lost*: the polls in which it was have no row, and their tasks are in a state that is not known, until
//!   their next event. So is a task that another thread polls although its poll had no end.
//! - *A thread, its process or the recording ends in a poll*: poll and task have rows, censored.
//! - *A number is made a task again*: the earlier task ends there, censored.
//!
//! Memory: 65,536 tasks of each process that lives, 256 polls in which a thread is, and 256 in which it was.

mod life;
mod polls;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::world::{
    self, Change, Left, Over, PerThread, Process, Site, State, TaskId, Thread, World,
};
use crate::{Rows, Tally, Unpaired};
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::tables::{PollEnd, SiteKind, TaskEnd};
use life::{Task, Woken};
use polls::{Poll, Polls};

/// Tasks of one process that are followed at once.
///
/// Limit: the one with the smallest number has no row, and is counted (`too_many`); from its next poll on it is a task
/// whose creation was not recorded.
/// Shown by: `tasks_of_a_process_are_bounded_and_counted`.
const MAX_TASKS: usize = 1 << 16;

/// Tasks and polls, with a row and without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    /// Tasks with a row.
    pub tasks: u64,
    /// Tasks without one: the oldest of more than 65,536 of one process.
    pub too_many: u64,
    /// Polls with a row.
    pub polls: u64,
    /// Polls without one.
    pub unpaired: Unpaired,
}

impl TaskCounts {
    /// No task was seen.
    pub fn is_none(&self) -> bool {
        *self == TaskCounts::default()
    }
}

/// Makes the tables `async_tasks` and `async_switches`.
#[derive(Debug, Default)]
pub struct Tasks {
    tasks: HashMap<Process, BTreeMap<TaskId, Task>>,
    threads: PerThread<Polls>,
    counts: TaskCounts,
}

impl Analysis for Tasks {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Own { thread, event, site } => match site.kind {
                SiteKind::TaskNew => self.made(thread, event, site, world, rows),
                SiteKind::TaskWake => self.woken(thread, event, site, world),
                SiteKind::TaskDrop => self.dropped(thread, event, site, world, rows),
                _ => {}
            },
            Change::TaskPoll { thread, event, poll } => self.poll(thread, event, poll, world),
            Change::TaskPolled { thread, event, task, poll, how } => {
                let poll = poll.and_then(|poll| self.threads.of(thread).end(poll, world));
                match (how, poll) {
                    (Left::Ended, poll) => {
                        self.polled(thread, (task, poll), event.arg[1], world, rows);
                    }
                    (Left::Switched, Some(poll)) => {
                        self.poll_over(thread, poll, PollEnd::Pending, world, rows);
                    }
                    (Left::Within, Some(poll)) => {
                        self.counts.unpaired.begin_only += 1;
                        self.lost(thread, &poll, world);
                    }
                    (Left::TooMany, Some(poll)) => {
                        self.counts.unpaired.too_many += 1;
                        self.lost(thread, &poll, world);
                    }
                    (_, None) => {}
                }
            }
            Change::Switched { prev: Some(thread), .. } => {
                if let Some(polls) = self.threads.get(thread) {
                    polls.leaves(thread, world);
                }
            }
            Change::Dispatched { thread, after, shares, wake, .. } => {
                let Some(polls) = self.threads.get(thread) else { return };
                match after {
                    State::Preempted => polls.preempted(shares),
                    _ => polls.returns(thread, wake.map(|wake| wake.ts), world),
                }
            }
            Change::Dropping { thread, why } => self.dropping(thread, why, world, rows),
            Change::Ended { thread, .. } if world.is_alone(thread) => {
                self.process_over(thread, world, rows);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.tasks = self.counts;
    }
}

impl Tasks {
    fn task(&mut self, thread: &Thread, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(&thread.process)?.get_mut(&id)
    }

    /// A task begins here, as far as is known.
    fn insert(&mut self, thread: &Thread, id: TaskId, task: Task) {
        let tasks = self.tasks.entry(thread.process).or_default();
        if tasks.len() >= MAX_TASKS && !tasks.contains_key(&id) {
            tasks.pop_first();
            self.counts.too_many += 1;
        }
        tasks.insert(id, task);
    }

    /// The task is over.
    fn over(&mut self, thread: &Thread, id: TaskId, end: TaskEnd, world: &World, rows: &mut Rows) {
        let task = self.tasks.get_mut(&thread.process).and_then(|tasks| tasks.remove(&id));
        if let Some(task) = task {
            self.counts.tasks += 1;
            rows.async_tasks.push(task.row(thread.key.pid, id.1, end, world));
        }
    }

    fn made(
        &mut self,
        thread: &Thread,
        event: &LeanUserEvent,
        site: &Site,
        world: &World,
        rows: &mut Rows,
    ) {
        let id = id(event, site);
        self.over(thread, id, TaskEnd::Unended, world, rows);
        let parent = innermost(thread);
        let task = Task::made(thread, parent, event, world);
        self.insert(thread, id, task);
    }

    fn poll(&mut self, thread: &Thread, event: &LeanUserEvent, poll: &world::Poll, world: &World) {
        let id = poll.task;
        if self.task(thread, id).is_none() {
            self.insert(thread, id, Task::found(event, world));
        }
        let Some(task) = self.task(thread, id) else { return };
        let asked = task.begins(poll.number, world);
        let (name, place) = (task.name.clone(), task.place.clone());
        let poll = Poll::new(poll, (name, place), asked, thread, world);
        self.threads.of(thread).begin(poll, world);
    }

    /// A poll has ended with `result`, as its event says.
    fn polled(
        &mut self,
        thread: &Thread,
        (id, poll): (TaskId, Option<Poll>),
        result: i64,
        world: &World,
        rows: &mut Rows,
    ) {
        let end = match result {
            1 => PollEnd::Ready,
            2 => PollEnd::Panic,
            _ => PollEnd::Pending,
        };
        match poll {
            Some(poll) => self.poll_over(thread, poll, end, world, rows),
            None => {
                self.counts.unpaired.end_only += 1;
                if let Some(task) = self.task(thread, id) {
                    task.ends_unseen(world);
                }
            }
        }
        match end {
            PollEnd::Ready => self.over(thread, id, TaskEnd::Ready, world, rows),
            PollEnd::Panic => self.over(thread, id, TaskEnd::Panic, world, rows),
            PollEnd::Pending | PollEnd::Unended => {}
        }
    }

    fn poll_over(
        &mut self,
        thread: &Thread,
        poll: Poll,
        end: PollEnd,
        world: &World,
        rows: &mut Rows,
    ) {
        let world::Poll { task: id, number, .. } = poll.poll;
        let row = poll.row(thread, end, world);
        match self.task(thread, id) {
            // Another thread has polled it meanwhile, so this poll had ended, and nobody knows when.
            Some(task) if !task.is_in(number) => {
                self.counts.unpaired.begin_only += 1;
                return;
            }
            Some(task) => task.ends(&row, world),
            None => {}
        }
        self.counts.polls += 1;
        rows.async_switches.push(row);
    }

    fn woken(&mut self, thread: &Thread, event: &LeanUserEvent, site: &Site, world: &World) {
        let by = innermost(thread);
        if let Some(task) = self.task(thread, id(event, site)) {
            let (tid, comm) = (thread.key.tid, thread.comm.clone());
            task.woken(Woken { ts: world.now(), tid, comm, task: by }, world);
        }
    }

    fn dropped(
        &mut self,
        thread: &Thread,
        event: &LeanUserEvent,
        site: &Site,
        world: &World,
        rows: &mut Rows,
    ) {
        self.over(thread, id(event, site), TaskEnd::Dropped, world, rows);
    }

    /// The polls in which a thread is have no end that will be recorded.
    fn dropping(&mut self, thread: &Thread, why: Over, world: &World, rows: &mut Rows) {
        let polls = self.threads.of(thread);
        polls.returns(thread, None, world);
        for poll in polls.take() {
            match why {
                Over::Loss => {
                    self.counts.unpaired.dropped(1, why);
                    self.lost(thread, &poll, world);
                }
                _ => self.poll_over(thread, poll, PollEnd::Unended, world, rows),
            }
        }
        if why == Over::Exec {
            self.process_over(thread, world, rows);
        }
    }

    /// What became of a poll is not known, nor what its task does.
    fn lost(&mut self, thread: &Thread, poll: &Poll, world: &World) {
        let poll = poll.poll;
        if let Some(task) = self.task(thread, poll.task).filter(|task| task.is_in(poll.number)) {
            task.is_lost(world);
        }
    }

    /// The memory of a process is gone.
    fn process_over(&mut self, thread: &Thread, world: &World, rows: &mut Rows) {
        for (id, task) in self.tasks.remove(&thread.process).unwrap_or_default() {
            self.counts.tasks += 1;
            rows.async_tasks.push(task.row(thread.key.pid, id.1, TaskEnd::Unended, world));
        }
    }
}

/// The task in whose poll the thread is.
fn innermost(thread: &Thread) -> Option<i64> {
    thread.polls.innermost().map(|poll| poll.task.1)
}

fn id(event: &LeanUserEvent, site: &Site) -> TaskId {
    (site.source, event.arg[0])
}

/// `censored` of what has no end.
fn mark(touched: bool, ended: bool) -> Mark {
    if ended { Mark::lower_bound_if(touched) } else { Mark::Censored }
}

#[cfg(test)]
mod tests;
