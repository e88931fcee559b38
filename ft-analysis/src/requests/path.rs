//! The critical path of a request: what it waited for last, at each moment.
//!
//! **Goal.** Pieces that tile the request to the nanosecond. While its thread ran, was interrupted, or waited for a CPU,
//! that is a piece; while it slept, what whoever woke it did meanwhile, and so on, until something ran, a timer or a
//! device was waited for, or nobody knows.
//!
//! **Rule.** From the end of the request back in time, on one thread at a time. A thread that sleeps was woken by another
//! at the end of its sleep: the walk goes on there, and comes back when it has reached the begin of the sleep. Whoever sleeps
//! wakes nobody, so the threads between which the walk goes back and forth are different ones, at most as many as there
//! are; they lie on a list, not on the stack. Each moment is visited once, so the cost is that of the pieces, and of a
//! search in the waker's past for each wait.
//!
//! This is the backward walk over the graph of execution of Yang and Miller (*Critical path analysis for the execution of
//! parallel and distributed programs*, ICDCS 1988), on the kernel's wake-ups as in Giraldeau and Dagenais (*Wait analysis
//! of distributed systems using kernel tracing*, IEEE TPDS 27(8), 2016): of a wait, only what the waker did within it is
//! looked at.
//!
//! **Situations.**
//! - *A request that begins and ends in polls of tasks* is that of the task in whose poll it ends: the walk goes from poll to
//!   poll, through what the threads did that polled it. While it was pending, on in who woke it: the task that this thread
//!   polled then, else the thread. While it was queued, on in the thread that polls it next. A task that was not woken may have
//!   been polled for any reason: unknown. A wake-up of a thread leads to a thread, whatever that polls.
//! - *Woken by an interrupt*: the whole sleep is the timer's, or the device's.
//! - *Woken by a thread that is not observed*: of that one only its wake-ups of others are known. The whole sleep is its own.
//! - *A waker that was born within the wait*, or after a part of one that goes on: before that, the thread that made it.
//! - *No record*, *no waking*, *a waker that is not known*, or one that slept itself by its records: unknown.
//! - *The request's end lies in a sleep* (of an event, by the error of the clock): unknown; who ends it is not recorded yet.

use super::history::{History, Wake, Waker};
use super::tasks::{TaskKey, Tasks};
use crate::world::{Culprit, Stretch, Unknown};
use ft_trace::Mark;
use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::{Part, PathKind};

/// Waits through which a walk goes at once. As many threads sleep, each for the next; of more the last one is not
/// looked into.
///
/// Limit: as `MAX_PIECES`.
const MAX_DEPTH: usize = 256;

/// Pieces of one path; what lies before is one piece that is unknown.
///
/// Limit: what lies before, or the innermost wait, is one piece *unknown*, a `lower bound`.
/// Shown by: `what_a_path_has_no_room_for_is_told_of_the_requests_own_thread`,
/// `of_waits_for_each_other_the_innermost_is_not_looked_into`.
const MAX_PIECES: usize = 1 << 16;

/// A piece of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) depth: usize,
    pub(crate) thread: ThreadKey,
    /// Who waits for that thread; of several in turn, the last.
    pub(crate) by: Option<ThreadKey>,
    pub(crate) kind: PathKind,
    pub(crate) culprit: Option<Culprit>,
    /// What is waited for in the innermost wait that it is part of, and by whom.
    pub(crate) wait: Option<(Name, ThreadKey)>,
    pub(crate) mark: Mark,
}

/// What the walk goes through.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a> {
    pub(crate) history: &'a History,
    pub(crate) tasks: &'a Tasks,
    /// Of what follows from events of tasks: `lower bound` where some of their events may be missing.
    pub(crate) of_tasks: Mark,
}

/// A wait into which the walk has gone.
#[derive(Debug)]
struct Wait {
    /// Who waits; of a task, the thread that polls it next.
    thread: ThreadKey,
    /// The task whose request, or whose waking, the walk followed there; else the thread itself.
    task: Option<TaskKey>,
    /// The thread sleeps, so it wakes nobody meanwhile; of a task that waits, the thread may do anything.
    sleeps: bool,
    /// Since when, or since the begin of the wait around it.
    since: i64,
    what: Name,
    mark: Mark,
    /// It is a part of one that goes on: who ends it may be asleep meanwhile.
    again: bool,
}

/// The path that ends in `thread`, in the poll of `task` if that is followed, at `to` and goes back to `from`; the oldest
/// piece first.
pub(crate) fn walk(
    past: Past<'_>,
    thread: ThreadKey,
    task: Option<TaskKey>,
    from: i64,
    to: i64,
) -> Vec<Piece> {
    let mut walk = Walk { past, from, t: to, thread, task, waits: Vec::new(), pieces: Vec::new() };
    while walk.t > from {
        if walk.pieces.len() >= MAX_PIECES {
            // Whose it is inside of a wait is not known; all of it is of the thread that waits.
            if let Some(outermost) = walk.waits.drain(..).next() {
                walk.thread = outermost.thread;
            }
            walk.unknown(from, Unknown::TooManyPieces, None);
        } else {
            walk.step();
        }
    }
    walk.pieces.reverse();
    walk.pieces
}

struct Walk<'a> {
    past: Past<'a>,
    from: i64,
    /// All behind it has been walked.
    t: i64,
    /// Where it is.
    thread: ThreadKey,
    /// The task that is followed from poll to poll; `None`: the thread is, whatever it polls.
    task: Option<TaskKey>,
    waits: Vec<Wait>,
    pieces: Vec<Piece>,
}

impl Walk<'_> {
    /// Until when the walk may go on in this thread.
    fn floor(&self) -> i64 {
        self.waits.last().map_or(self.from, |wait| wait.since)
    }

    fn step(&mut self) {
        let floor = self.floor();
        if self.t <= floor
            && let Some(wait) = self.waits.pop()
        {
            (self.thread, self.task) = (wait.thread, wait.task);
            return;
        }
        let floor = match self.task {
            None => floor,
            Some(task) => match self.polled(task, floor) {
                Some(begin) => begin.max(floor),
                None => return,
            },
        };
        let past = self.past.history.of(self.thread);
        let step = past.map_or(Err(i64::MIN), |past| past.before(self.t));
        let wake = past.and_then(|past| past.wake(self.t));
        let step = match step {
            Ok(step) => step,
            Err(_) if let Some(birth) = past.and_then(|past| past.birth(self.t)) => {
                return self.follow(floor, "its birth".into(), Mark::Exact, Some(birth));
            }
            Err(before) => {
                let from = before.max(floor);
                let kept = from >= self.past.history.since;
                let why = if kept { Unknown::NoRecord } else { Unknown::NotKept };
                return self.unknown(from, why, None);
            }
        };
        let kind = match step.part {
            Part::Running => PathKind::Running,
            Part::Preempted => PathKind::Preempted,
            Part::Dispatch => PathKind::Dispatch,
            Part::Hardirq | Part::Softirq | Part::Vector => PathKind::Interrupt,
            Part::Unexplained => PathKind::Unknown,
            Part::Blocked => {
                let since = past.map_or(floor, |past| past.blocked_since(self.t, floor));
                let what = step.culprit.name().unwrap_or_default();
                // In the middle of a sleep: its end is another moment.
                let is_within = self.waits.last().is_some_and(|wait| wait.again);
                let after = || past.filter(|_| is_within).and_then(|past| past.wake_after(self.t));
                let wake = wake.filter(|_| step.to == self.t).or_else(after);
                return self.follow(since, what, step.mark, wake);
            }
        };
        let culprit = known(step);
        let mark = step.mark.max(Mark::lower_bound_if(kind == PathKind::Unknown));
        self.tell(step.from.max(floor), kind, culprit, None, mark);
    }

    /// The thread sleeps since then, until now, when `wake` ends it.
    fn follow(&mut self, since: i64, what: Name, mark: Mark, wake: Option<&Wake>) {
        let mark = mark.max(wake.map_or(Mark::Exact, |wake| wake.mark));
        let interrupt = |which: &Name| Some(Culprit::Interrupt(which.clone()));
        let why = match wake.map(|wake| &wake.waker) {
            Some(Waker::Timer(which)) => {
                return self.tell(since, PathKind::Timer, interrupt(which), Some(what), mark);
            }
            Some(Waker::Device(which)) => {
                return self.tell(since, PathKind::Device, interrupt(which), Some(what), mark);
            }
            Some(Waker::Outside(comm, tid)) => {
                let who = Culprit::outside(comm.clone(), *tid);
                return self.tell(since, PathKind::Outside, Some(who), Some(what), mark);
            }
            Some(Waker::Thread(waker) | Waker::Again(waker)) if self.waits.len() < MAX_DEPTH => {
                let asleep = |wait: &Wait| wait.sleeps && wait.thread == *waker;
                if *waker != self.thread && !self.waits.iter().any(asleep) {
                    let again = matches!(wake.map(|wake| &wake.waker), Some(Waker::Again(_)));
                    self.enter((since, what), true, mark, (*waker, None));
                    self.waits.last_mut().into_iter().for_each(|wait| wait.again |= again);
                    return;
                }
                Unknown::SleepingWaker
            }
            Some(Waker::Thread(_) | Waker::Again(_)) => Unknown::TooManyWaits,
            Some(Waker::Unknown(why)) => *why,
            None => Unknown::NoWaking,
        };
        self.unknown(since, why, Some(what));
    }

    /// Goes on in a thread, or a task that it polls, for which is waited since then until now.
    fn enter(
        &mut self,
        (since, what): (i64, Name),
        sleeps: bool,
        mark: Mark,
        (thread, task): (ThreadKey, Option<TaskKey>),
    ) {
        let around = self.waits.last();
        let mark = around.map_or(mark, |around| around.mark.max(mark));
        let again = around.is_some_and(|around| around.again);
        let wait = Wait { thread: self.thread, task: self.task, sleeps, since, what, mark, again };
        self.waits.push(wait);
        (self.thread, self.task) = (thread, task);
    }

    /// Since when the task is polled, if it is; otherwise goes on in who let it wait.
    fn polled(&mut self, task: TaskKey, floor: i64) -> Option<i64> {
        let tasks = self.past.tasks;
        if self.t <= tasks.since {
            self.unknown(floor, Unknown::NotKept, None);
            return None;
        }
        let floor = floor.max(tasks.since);
        let Some(life) = tasks.of(task) else {
            self.unknown(floor, Unknown::NoRecord, None);
            return None;
        };
        let (before, next) = life.around(self.t);
        if let Some(poll) = before.filter(|poll| self.t <= poll.to) {
            self.thread = poll.thread;
            return Some(poll.from);
        }
        self.thread = next.map_or(self.thread, |poll| poll.thread);
        // Before its first poll it waits since it was made.
        let made = life.made.as_ref().filter(|_| before.is_none());
        let since = before.map(|poll| poll.to).or(made.map(|made| made.ts));
        let since = since.filter(|since| *since < self.t).map_or(floor, |since| since.max(floor));
        let label = if life.label.is_empty() { "" } else { &format!(" {}", life.label) };
        let (wait, by) = match (made, next.and_then(|poll| poll.woken.as_ref())) {
            (Some(made), _) if made.ts >= self.t => {
                ((since, "its birth".into()), (made.thread, made.task))
            }
            (_, Some(woken)) if woken.ts >= self.t => {
                ((since, format!("task{label} pending").into()), (woken.thread, woken.task))
            }
            (None, None) => {
                let what = format!("task{label} pending").into();
                self.unknown(since, Unknown::NoWaking, Some(what));
                return None;
            }
            (_, woken) => {
                // Who polls it next, and what that did until then.
                let (from, behind) = tasks.behind(self.thread, self.t);
                let from = woken.map_or(from, |woken| from.max(woken.ts)).max(since);
                let behind = behind.map_or(String::new(), |other| format!(" behind {other}"));
                let state = if woken.is_some() { "queued" } else { "unstarted" };
                ((from, format!("task{label} {state}{behind}").into()), (self.thread, None))
            }
        };
        match self.waits.len() < MAX_DEPTH {
            true => self.enter(wait, false, self.past.of_tasks, by),
            false => self.unknown(wait.0, Unknown::TooManyWaits, Some(wait.1)),
        }
        None
    }

    fn unknown(&mut self, from: i64, why: Unknown, wait: Option<Name>) {
        let why = Some(Culprit::Unknown(why));
        self.tell(from, PathKind::Unknown, why, wait, Mark::LowerBound);
    }

    /// Tells a piece up to now; `wait`: what the thread itself waits for in it.
    fn tell(
        &mut self,
        from: i64,
        kind: PathKind,
        culprit: Option<Culprit>,
        wait: Option<Name>,
        mark: Mark,
    ) {
        let around = self.waits.last();
        let piece = Piece {
            from,
            to: self.t,
            depth: self.waits.len(),
            thread: self.thread,
            by: around.map(|wait| wait.thread),
            kind,
            culprit,
            mark: around.map_or(mark, |wait| wait.mark.max(mark)),
            wait: wait
                .map(|what| (what, self.thread))
                .or_else(|| around.map(|wait| (wait.what.clone(), wait.thread))),
        };
        self.t = from;
        match self.pieces.last_mut() {
            Some(later) if later.goes_on(&piece) => later.from = from,
            _ => self.pieces.push(piece),
        }
    }
}

impl Piece {
    pub(crate) fn len_ns(&self) -> i64 {
        self.to - self.from
    }

    /// The other one, which lies before it, is the same but for its time.
    fn goes_on(&self, before: &Piece) -> bool {
        self.from == before.to
            && (self.depth, self.thread, self.kind, self.mark)
                == (before.depth, before.thread, before.kind, before.mark)
            && self.culprit == before.culprit
            && self.wait == before.wait
    }
}

/// Who or what took a piece of a thread's time, where that is somebody.
fn known(step: &Stretch) -> Option<Culprit> {
    match &step.culprit {
        Culprit::Nobody | Culprit::Blocked(..) | Culprit::Unknown(Unknown::Occupant) => None,
        culprit => Some(culprit.clone()),
    }
}
