//! When tasks were polled and who woke them, as far back as a path may need it.
//!
//! A request that begins and ends in polls follows the task from poll to poll, on whichever threads those were; see
//! [`path`](super::path). Of each task that lives, its newest poll is kept, and who has woken it since; of older ones those that
//! a request which goes on may need.

use std::collections::{HashMap, VecDeque};

use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::SiteKind;

use crate::world::{Poll, Process, Site, TaskId, Thread, World};

/// Tasks that are followed at once; a path that leads to another one ends in a piece that is unknown.
///
/// Limit: a path that leads to one that is not kept ends in a piece *unknown*, a `lower bound`.
/// Shown by: `tasks_that_are_not_followed_are_unknown`.
pub(super) const MAX_FOLLOWED: usize = 1 << 16;

/// Polls of all tasks that are kept at once; of more, only the newest of each task stays.
///
/// Limit: as `MAX_FOLLOWED`.
const MAX_TURNS: usize = 1 << 18;

/// How often at least what no request needs is forgotten, in polls and tasks.
const SWEEP: usize = 4096;

/// A task of any process.
pub(super) type TaskKey = (Process, TaskId);

/// Who made or woke a task: when, on which thread, and in the poll of which task.
#[derive(Clone, Copy, Debug)]
pub(super) struct By {
    pub(super) ts: i64,
    pub(super) thread: ThreadKey,
    pub(super) task: Option<TaskKey>,
}

/// A poll, and the wake-up that it answers.
#[derive(Debug)]
pub(super) struct Turn {
    /// The first wake-up since the poll before began.
    pub(super) woken: Option<By>,
    pub(super) from: i64,
    /// `i64::MAX` while it goes on.
    pub(super) to: i64,
    pub(super) thread: ThreadKey,
}

/// What one task did.
#[derive(Debug)]
pub(super) struct Life {
    /// Its name, or where it was made.
    pub(super) label: Name,
    /// While all of its polls are kept.
    pub(super) made: Option<By>,
    pub(super) turns: VecDeque<Turn>,
    woken: Option<By>,
    /// Since when it is over, but for a poll that goes on.
    over: Option<i64>,
}

/// What all tasks did.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    lives: HashMap<TaskKey, Life>,
    /// Of each thread, the tasks that it polled and when, while requests go on.
    polled: HashMap<ThreadKey, VecDeque<(i64, i64, Name)>>,
    /// How much there is, at most, and how much there may be before it is swept.
    kept: usize,
    until: usize,
    /// What was before is forgotten although a request may need it.
    pub(super) since: i64,
}

impl Life {
    /// Its newest poll goes on.
    fn is_polled(&self) -> bool {
        self.turns.back().is_some_and(|turn| turn.to == i64::MAX)
    }

    /// Its last poll that began before `t`, and the one after that.
    pub(super) fn around(&self, t: i64) -> (Option<&Turn>, Option<&Turn>) {
        let next = self.turns.partition_point(|turn| turn.from < t);
        let before = next.checked_sub(1).map(|i| &self.turns[i]);
        (before, self.turns.get(next))
    }
}

impl Tasks {
    pub(super) fn of(&self, task: TaskKey) -> Option<&Life> {
        self.lives.get(&task)
    }

    /// What the thread polled just before `t`: since when, and its label; else, since when it polled nothing.
    pub(super) fn behind(&self, thread: ThreadKey, t: i64) -> (i64, Option<&Name>) {
        let Some(polled) = self.polled.get(&thread) else { return (i64::MIN, None) };
        let after = polled.partition_point(|(from, ..)| *from < t);
        match after.checked_sub(1).map(|i| &polled[i]) {
            Some((from, to, label)) if *to >= t => (*from, Some(label)),
            Some((_, to, _)) => (*to, None),
            None => (i64::MIN, None),
        }
    }

    /// A thread tells something of a task, beside polls; `needed`: since when requests go on.
    pub(super) fn own(
        &mut self,
        thread: &Thread,
        event: &LeanUserEvent,
        site: &Site,
        needed: i64,
        world: &World,
    ) {
        let task = (thread.process, (site.source, event.arg[0]));
        let now = world.now();
        match site.kind {
            SiteKind::TaskNew => {
                let made = Some(by(thread, now));
                self.lives.remove(&task);
                if let Some(life) = self.life(task, event, world) {
                    life.made = made;
                    self.grew(needed, now);
                }
            }
            SiteKind::TaskWake => {
                let by = by(thread, now);
                if let Some(life) = self.lives.get_mut(&task).filter(|life| life.over.is_none()) {
                    life.woken.get_or_insert(by);
                }
            }
            SiteKind::TaskDrop => self.over(task, needed, now),
            _ => {}
        }
    }

    /// The polls in which a thread was are over, as far as is known.
    pub(super) fn dropped(&mut self, thread: &Thread, needed: i64, now: i64) {
        let mut polls = thread.polls.innermost_first().peekable();
        while let Some(poll) = polls.next() {
            self.ends(thread, poll, polls.peek().is_none(), needed, now);
        }
    }

    /// The memory of a process is gone.
    pub(super) fn process_over(&mut self, process: Process, needed: i64, now: i64) {
        let own = self.lives.keys().filter(|(of, _)| *of == process);
        let own: Vec<TaskKey> = own.copied().collect();
        for task in own {
            if let Some(turn) = self.lives.get_mut(&task).and_then(|life| life.turns.back_mut()) {
                turn.to = turn.to.min(now);
            }
            self.over(task, needed, now);
        }
    }

    /// Forgets what was over before.
    fn forget(&mut self, before: i64) {
        self.lives.retain(|_, life| {
            while life.turns.len() > 1 && life.turns[0].to <= before {
                life.turns.pop_front();
                life.made = None;
            }
            life.is_polled() || life.over.is_none_or(|over| over > before)
        });
        self.polled.retain(|_, polled| {
            while polled.pop_front_if(|(_, to, _)| *to <= before).is_some() {}
            !polled.is_empty()
        });
        let turns: usize = self.lives.values().map(|life| life.turns.len()).sum();
        self.kept = turns + self.polled.values().map(VecDeque::len).sum::<usize>();
    }

    fn life(&mut self, task: TaskKey, event: &LeanUserEvent, world: &World) -> Option<&mut Life> {
        if self.lives.len() >= MAX_FOLLOWED && !self.lives.contains_key(&task) {
            return None;
        }
        Some(self.lives.entry(task).or_insert_with(|| {
            let (context, word) = (world.context(), event.arg[1]);
            let name = context.task_name(event.site, word);
            let place = || context.place(event.pid, event.site, word);
            let label = if name.is_empty() { place() } else { name };
            Life { label, made: None, turns: VecDeque::new(), woken: None, over: None }
        }))
    }

    /// A poll begins.
    pub(super) fn begins(
        &mut self,
        thread: &Thread,
        event: &LeanUserEvent,
        poll: &Poll,
        needed: i64,
        world: &World,
    ) {
        let (from, task, thread) = (world.now(), (thread.process, poll.task), thread.key);
        let Some(life) = self.life(task, event, world) else { return };
        if life.over.take().is_some() {
            // Another one of its number.
            (life.made, life.woken) = (None, None);
        }
        let woken = life.woken.take();
        if let Some(last) = life.turns.back_mut() {
            // Without an end that was recorded.
            last.to = last.to.min(from);
        }
        if needed == i64::MAX && !life.turns.is_empty() {
            life.turns.clear();
            life.made = None;
        }
        life.turns.push_back(Turn { woken, from, to: i64::MAX, thread });
        self.grew(needed, from);
    }

    /// A poll is over, which was the outermost of its thread or not.
    pub(super) fn ends(
        &mut self,
        thread: &Thread,
        poll: &Poll,
        outermost: bool,
        needed: i64,
        now: i64,
    ) {
        let Some(life) = self.lives.get_mut(&(thread.process, poll.task)) else { return };
        let goes_on = |turn: &&mut Turn| turn.thread == thread.key && turn.to == i64::MAX;
        let Some(turn) = life.turns.back_mut().filter(goes_on) else { return };
        turn.to = now;
        if let Some(over) = &mut life.over {
            *over = now;
            if needed == i64::MAX {
                self.lives.remove(&(thread.process, poll.task));
                return;
            }
        }
        if outermost && needed < i64::MAX {
            let polled = self.polled.entry(thread.key).or_default();
            polled.push_back((turn.from, now, life.label.clone()));
            self.grew(needed, now);
        }
    }

    /// A task is over: at once, or when the poll has ended in which it was dropped, where a request may still begin and end.
    pub(super) fn over(&mut self, task: TaskKey, needed: i64, now: i64) {
        let Some(life) = self.lives.get_mut(&task) else { return };
        if needed == i64::MAX && !life.is_polled() {
            self.lives.remove(&task);
        } else {
            life.over = Some(now);
        }
    }

    fn grew(&mut self, needed: i64, now: i64) {
        self.kept += 1;
        if self.kept < self.until {
            return;
        }
        self.forget(needed);
        if self.kept > MAX_TURNS / 2 {
            self.since = now;
            self.forget(now);
        }
        self.until = (2 * self.kept).max(SWEEP);
    }
}

/// The task in whose poll the thread is, the innermost.
pub(super) fn innermost(thread: &Thread) -> Option<TaskKey> {
    thread.polls.innermost().map(|poll| (thread.process, poll.task))
}

fn by(thread: &Thread, ts: i64) -> By {
    By { ts, thread: thread.key, task: innermost(thread) }
}
