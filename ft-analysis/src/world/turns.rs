//! How long threads ran each task: where the time of an interval went that belongs to a task.
//!
//! **Goal.** A task (an async one, or a fiber) has its thread by turns: from the begin of a poll to its end. Of an interval
//! that begins in a task, say what happened to the threads that ran the task meanwhile; all other time it was *parked*.
//!
//! **Rule.** Of each task, the sum of what its turns took of the accounts of their threads. Within a turn, the sum is what it was
//! before, and what the account of the thread has grown by since. The parts of an interval are the sum at its end minus
//! the sum at its begin, on whichever threads these were; what is missing in its length is parked. Turns of a task exclude each
//! other, so that no more than the length is ever found.
//!
//! **Situations.**
//! - *An interval that begins in no task* is its thread's, whatever that runs.
//! - *Polls within polls*: the outer task has its thread meanwhile, since it waits for the inner one to return.
//! - *Another thread begins to poll a task whose poll has no end yet*: that end was not recorded. What the task took there is not
//!   known; intervals that go on are unexplained, lower bounds.
//! - *A poll in a fiber that is left* goes on with the fiber, and nothing tells when: the same.
//! - *Events of the thread are lost in a turn*: the same.
//!
//! Memory: [`MAX_TASKS`] tasks of each process that lives.

use std::collections::{BTreeMap, HashMap};

use super::locks::Process;
use super::parts::Began;
use super::polls::TaskId;
use super::{Thread, World};
use ft_trace::tables::{Counts, Decomposition};

/// Tasks of one process whose turns are summed. Of more, those that are over are forgotten, and then the oldest.
///
/// Limit: those that were dropped are forgotten, then the one with the smallest number: what has begun in it and goes
/// on is *unexplained*, a `lower bound`.
/// Shown by: not shown.
const MAX_TASKS: usize = 1 << 16;

/// What the turns of a task took of the accounts of their threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub(super) parts: Decomposition,
    agent_ns: i64,
    counts: Counts,
}

impl Took {
    /// What it is when one turn more has lasted from a moment of its thread to another one.
    fn and(mut self, from: &Began, to: &Began) -> Took {
        self.parts += from.until(to);
        self.agent_ns += from.agent_until(to);
        let counts = from.counts_until(to);
        // Whether faults are known is asked when an interval ends.
        self.counts.faults.get_or_insert([0; 2]);
        self.counts += counts;
        self
    }

    /// What came since then; nothing if it went back, as only damaged data make it.
    fn since(&self, then: &Took) -> Option<Took> {
        let parts = self.parts - then.parts;
        let faults = |of: &Took| of.counts.faults.unwrap_or_default();
        let counts = Counts {
            sleeps: self.counts.sleeps - then.counts.sleeps,
            switches: self.counts.switches - then.counts.switches,
            moves: self.counts.moves - then.counts.moves,
            faults: Some([0, 1].map(|i| faults(self)[i] - faults(then)[i])),
        };
        let agent_ns = self.agent_ns - then.agent_ns;
        parts.to_array().iter().all(|ns| *ns >= 0).then_some(Took { parts, agent_ns, counts })
    }
}

/// A turn that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Number of the poll that it is.
    number: u64,
    /// That of the first turn of the task's sum.
    first: u64,
    began: Began,
    before: Took,
}

impl Turn {
    /// The sum of its task at a later moment of its thread.
    fn at(&self, now: &Began) -> Took {
        self.before.and(&self.began, now)
    }
}

/// One task.
#[derive(Debug)]
struct Sum {
    took: Took,
    first: u64,
    /// Number of the turn that goes on.
    now: Option<u64>,
    /// Up to when records may be missing of the turns that are over.
    doubtful: i64,
    dropped: bool,
}

/// All tasks.
#[derive(Debug, Default)]
pub(super) struct Turns(HashMap<Process, BTreeMap<TaskId, Sum>>);

impl Turns {
    /// A turn of a task begins: the poll of this number.
    pub(super) fn begins(
        &mut self,
        process: Process,
        task: TaskId,
        number: u64,
        began: Began,
    ) -> Turn {
        let tasks = self.0.entry(process).or_default();
        if tasks.get(&task).is_some_and(|sum| sum.now.is_some()) {
            tasks.remove(&task);
        }
        if tasks.len() >= MAX_TASKS && !tasks.contains_key(&task) {
            tasks.retain(|_, sum| !sum.dropped || sum.now.is_some());
            if tasks.len() >= MAX_TASKS {
                tasks.pop_first();
            }
        }
        let new = || {
            let took = Took::default();
            Sum { took, first: number, now: None, doubtful: i64::MIN, dropped: false }
        };
        let sum = tasks.entry(task).or_insert_with(new);
        (sum.now, sum.dropped) = (Some(number), false);
        Turn { number, first: sum.first, began, before: sum.took }
    }

    /// As far as is known, no other one of the task has begun since.
    pub(super) fn goes_on(&self, thread: &Thread, task: TaskId, turn: &Turn) -> bool {
        self.of(thread.process, task).is_some_and(|sum| sum.now == Some(turn.number))
    }

    /// A turn has ended, and the task goes on later.
    pub(super) fn ends(&mut self, thread: &Thread, task: TaskId, turn: &Turn, now: &Began) {
        let of = self.0.get_mut(&thread.process).and_then(|tasks| tasks.get_mut(&task));
        let Some(sum) = of.filter(|sum| sum.now == Some(turn.number)) else { return };
        (sum.took, sum.now) = (turn.at(now), None);
        // What is missing of the thread from before the turn is no matter of the task.
        if thread.doubtful_since(turn.began.ts) {
            sum.doubtful = sum.doubtful.max(thread.unseen).max(thread.unsure);
        }
    }

    /// What a task does is not known any more, or it is over.
    pub(super) fn forget(&mut self, process: Process, task: TaskId) {
        if let Some(tasks) = self.0.get_mut(&process) {
            tasks.remove(&task);
        }
    }

    /// A task is dropped. What is in it ends after this.
    pub(super) fn dropped(&mut self, process: Process, task: TaskId) {
        let of = self.0.get_mut(&process).and_then(|tasks| tasks.get_mut(&task));
        of.into_iter().for_each(|sum| sum.dropped = true);
    }

    /// The memory of a process is gone.
    pub(super) fn process_over(&mut self, process: Process) {
        self.0.remove(&process);
    }

    fn of(&self, process: Process, task: TaskId) -> Option<&Sum> {
        self.0.get(&process)?.get(&task)
    }
}

/// An interval that goes on, of the task in which it began, or of its thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spell {
    /// When it began.
    pub(crate) ts: i64,
    pub(super) began: Began,
    pub(super) of: Option<Of>,
}

/// The task in which an interval began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of {
    task: TaskId,
    turn: u64,
    first: u64,
    then: Took,
}

impl Spell {
    /// It begins now.
    pub(crate) fn now(thread: &Thread, world: &World) -> Spell {
        Spell::of(thread, Began::now(thread, world))
    }

    /// It begins at this moment of a thread.
    pub(super) fn of(thread: &Thread, began: Began) -> Spell {
        let task = thread.polls.innermost().map(|poll| poll.task);
        let of = task.and_then(|task| {
            let turn = thread.polls.turn(task)?;
            Some(Of { task, turn: turn.number, first: turn.first, then: turn.at(&began) })
        });
        Spell { ts: began.ts, began, of }
    }

    /// The task in which it began.
    pub(crate) fn task(&self) -> Option<TaskId> {
        self.of.map(|of| of.task)
    }

    /// It began in a turn of its task that is over, or on another thread.
    fn task_elsewhere(&self, thread: &Thread) -> Option<&Of> {
        let turn = |of: &Of| thread.polls.turn(of.task).map(|turn| turn.number);
        self.of.as_ref().filter(|of| turn(of) != Some(of.turn))
    }

    /// What the turns of its task took since it began; not known where it is the sum of something else.
    fn took(&self, of: &Of, thread: &Thread, world: &World) -> Option<Took> {
        let sum = match thread.polls.turn(of.task) {
            Some(turn) => (turn.first == of.first).then(|| turn.at(&Began::now(thread, world)))?,
            None => {
                let sum = world.turns.of(thread.process, of.task)?;
                (sum.first == of.first && sum.now.is_none()).then_some(sum.took)?
            }
        };
        let took = sum.since(&of.then)?;
        (took.parts.total_ns() <= world.now() - self.ts).then_some(took)
    }

    /// Where its time went until now, which the thread ends; not known without a kernel stream.
    pub(crate) fn parts(&self, thread: &Thread, world: &World) -> Option<Decomposition> {
        let Some(of) = self.task_elsewhere(thread) else { return self.began.parts(thread, world) };
        let dur = world.now() - self.ts;
        world.context().has_kernel().then(|| match self.took(of, thread, world) {
            Some(took) => Decomposition { parked_ns: dur - took.parts.total_ns(), ..took.parts },
            None => Decomposition { unexplained_ns: dur, ..Decomposition::default() },
        })
    }

    /// How often something happened in it until now; not known without a kernel stream.
    pub(crate) fn counts(&self, thread: &Thread, world: &World) -> Option<Counts> {
        let Some(of) = self.task_elsewhere(thread) else {
            return self.began.counts(thread, world);
        };
        let took = world.context().has_kernel().then(|| self.took(of, thread, world))??;
        let faults = took.counts.faults.filter(|_| world.knows_faults_since(self.ts));
        Some(Counts { faults, ..took.counts })
    }

    /// What its thread's counters counted until now; not known where it had turns, as it is not read at all of them.
    pub(crate) fn counter(&self, thread: &Thread, world: &World) -> [Option<i64>; 2] {
        match self.task_elsewhere(thread) {
            Some(_) => [None; 2],
            None => self.began.counter(thread, world),
        }
    }

    /// Of *preempted* and *dispatch* until now, what the agent had the CPU, if it is known who that is.
    pub(crate) fn agent_ns(&self, thread: &Thread, world: &World) -> Option<i64> {
        let Some(of) = self.task_elsewhere(thread) else {
            return self.began.agent_ns(thread, world);
        };
        let took = self.took(of, thread, world)?;
        world.agent_part(took.agent_ns, &took.parts)
    }

    /// Switches may be missing of its thread since it began, or, of the turns of its task since then, any records.
    pub(crate) fn is_doubtful(&self, thread: &Thread, world: &World) -> bool {
        let Some(of) = self.task_elsewhere(thread) else { return thread.doubtful_since(self.ts) };
        let turn = thread.polls.turn(of.task);
        let doubtful = world.turns.of(thread.process, of.task).map(|sum| sum.doubtful);
        doubtful.is_none_or(|at| at >= self.ts)
            || turn.is_some_and(|turn| thread.doubtful_since(turn.began.ts))
            || self.took(of, thread, world).is_none()
            || world.losses().process_since(thread.key.pid, self.ts)
    }
}
