//! The polls of a thread: what happens in those in which it is, and what it polled before.

use std::collections::VecDeque;

use super::{life::Asked, mark};
use crate::world::{self, Began, Culprit, Shares, TaskId, Thread, World};
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{AsyncSwitch, PollEnd};

/// Outermost polls of a thread that are remembered, to know behind which tasks one was queued.
///
/// Limit: `behind_ns` covers the newest 256, as `behind_polls` says.
/// Shown by: `of_what_a_thread_polled_before_the_newest_is_kept`.
const MAX_BEFORE: usize = 256;

/// Of one thread.
#[derive(Debug, Default)]
pub(super) struct Polls {
    open: Vec<Poll>,
    before: VecDeque<Before>,
    /// What it is blocked for in a poll, and its account of that then.
    blocked: Option<(Name, i64)>,
    /// When it was woken last, and when it then had a CPU.
    dispatch: Option<(i64, i64)>,
}

/// An outermost poll that is over.
#[derive(Debug)]
struct Before {
    id: TaskId,
    label: Name,
    from: i64,
    to: i64,
}

/// A poll that goes on.
#[derive(Debug)]
pub(super) struct Poll {
    pub(super) poll: world::Poll,
    /// Name of the task, and where it was made.
    name: Name,
    place: Name,
    began: Began,
    /// The newest hold of its thread then.
    held: Option<u64>,
    asked: Asked,
    depth: i32,
    queued: Option<Queued>,
    blocked: Option<Blocked>,
    /// Who ran while the thread was preempted.
    shares: Shares,
}

/// What the thread did while the task was queued.
#[derive(Debug)]
struct Queued {
    dispatch_ns: i64,
    behind: Option<Behind>,
}

/// What it polled.
#[derive(Debug, Default)]
struct Behind {
    ns: i64,
    polls: i32,
    /// The task that it polled longest.
    most: Option<(TaskId, Name, i64)>,
}

/// The longest time for which it was blocked at once.
#[derive(Debug)]
struct Blocked {
    cause: Name,
    ns: i64,
    stack: Option<i64>,
}

impl Poll {
    /// It begins.
    pub(super) fn new(
        poll: &world::Poll,
        (name, place): (Name, Name),
        asked: Asked,
        thread: &Thread,
        world: &World,
    ) -> Poll {
        let (began, shares) = (Began::now(thread, world), Shares::default());
        let held = thread.locks.last().map(|hold| hold.id);
        Poll {
            poll: *poll,
            name,
            place,
            began,
            held,
            asked,
            depth: 0,
            queued: None,
            blocked: None,
            shares,
        }
    }

    fn label(&self) -> &Name {
        if self.name.is_empty() { &self.place } else { &self.name }
    }

    /// Its row, if it ends now.
    pub(super) fn row(self, thread: &Thread, end: PollEnd, world: &World) -> AsyncSwitch {
        let (key, ts) = (thread.key, self.began.ts);
        let parts = self.began.parts(thread, world);
        let preempted = parts.is_some_and(|parts| parts.preempted_ns > 0);
        let preemptor = self.shares.longest().filter(|_| preempted);
        let most = parts.map_or(0, |parts| parts.blocked_ns);
        let blocked = self.blocked.filter(|_| most > 0);
        let (queued, woken) = (self.queued.as_ref(), self.asked.woken.as_ref());
        let behind = queued.and_then(|queued| queued.behind.as_ref());
        let longest = behind.and_then(|behind| behind.most.as_ref());
        let ended = end != PollEnd::Unended;
        let held = thread.locks.locks().filter(|hold| ended && Some(hold.id) > self.held);
        let (first, context) = (held.clone().next(), world.context());
        let lost = world.losses().process_since(key.pid, self.asked.since)
            || thread.doubtful_since(ts)
            || !self.shares.is_exact();
        AsyncSwitch {
            ts: Nanos(ts),
            dur: world.now() - ts,
            pid: key.pid,
            tid: key.tid,
            comm: thread.comm.clone(),
            task: self.poll.task.1,
            depth: self.depth,
            end,
            parts,
            counts: self.began.counts(thread, world),
            counter: self.began.counter(thread, world),
            // A user's time is right within the clock's bound, so a poll may begin in a wait that had just ended.
            blocked_for_ns: blocked.as_ref().map(|blocked| blocked.ns.min(most)),
            blocked_stack: blocked.as_ref().and_then(|blocked| blocked.stack),
            blocked_for: blocked.map(|blocked| blocked.cause),
            preemptor_tid: preemptor.map(|s| s.who.thread.tid.0),
            preemptor_comm: preemptor.map(|s| s.who.comm.clone()),
            preemptor_ns: preemptor.map(|s| s.ns),
            agent_ns: self.began.agent_ns(thread, world),
            held: held.count() as i32,
            held_lock: first
                .map(|hold| context.lock_name(key.pid, hold.lock, hold.site, hold.word)),
            held_place: first.map(|hold| context.place(key.pid, hold.site, hold.word)),
            queued_ns: woken.map(|woken| ts - woken.ts),
            waker_tid: woken.map(|woken| woken.tid.0),
            waker_comm: woken.map(|woken| woken.comm.clone()),
            waker_task: woken.and_then(|woken| woken.task),
            queued_dispatch_ns: queued
                .filter(|_| context.has_kernel())
                .map(|queued| queued.dispatch_ns),
            behind_ns: behind.map(|behind| behind.ns),
            behind_polls: behind.map(|behind| behind.polls),
            behind_task: longest.map(|(id, ..)| id.1),
            behind_name: longest.map(|(_, label, _)| label.clone()),
            behind_task_ns: longest.map(|(.., ns)| *ns),
            mark: mark(lost, ended).max(thread.disturbed.mark(ts)),
            name: self.name,
            place: self.place,
        }
    }
}

impl Polls {
    /// A poll begins.
    pub(super) fn begin(&mut self, mut poll: Poll, world: &World) {
        poll.depth = self.open.len() as i32;
        poll.queued = poll.asked.woken.as_ref().map(|woken| self.queued(woken.ts, world.now()));
        self.open.push(poll);
    }

    /// What the thread did from `from` until a poll begins now.
    fn queued(&self, from: i64, now: i64) -> Queued {
        // After the last poll, or the begin of the one in which it is, the thread can only have waited for work.
        let idle = self.open.last().map(|poll| poll.began.ts);
        let idle = idle.or(self.before.back().map(|poll| poll.to)).map_or(from, |at| at.max(from));
        let dispatch = self.dispatch.filter(|(_, to)| *to <= now);
        let dispatch_ns = dispatch.map_or(0, |(woken, to)| (to - woken.max(idle)).max(0));
        let behind = self.open.is_empty().then(|| self.behind(from));
        Queued { dispatch_ns, behind }
    }

    fn behind(&self, from: i64) -> Behind {
        let (mut behind, mut tasks) = (Behind::default(), Vec::<(TaskId, &Name, i64)>::new());
        for poll in self.before.iter().rev().take_while(|poll| from < poll.to) {
            let ns = poll.to - poll.from.max(from);
            behind.ns += ns;
            behind.polls += 1;
            tasks.push((poll.id, &poll.label, ns));
        }
        // All polls of one task together, its newest first: to look for it each time takes far longer where they are many.
        tasks.sort_by_key(|(id, ..)| *id);
        tasks.dedup_by(|(id, _, ns), (same, _, sum)| {
            let is_same = id == same;
            *sum += if is_same { *ns } else { 0 };
            is_same
        });
        let most = tasks.into_iter().max_by_key(|(.., ns)| *ns);
        behind.most = most.map(|(id, label, ns)| (id, label.clone(), ns));
        behind
    }

    /// A poll is over.
    pub(super) fn end(&mut self, poll: &world::Poll, world: &World) -> Option<Poll> {
        let i = self.open.iter().rposition(|open| open.poll.number == poll.number)?;
        let poll = self.open.remove(i);
        if self.open.is_empty() {
            if self.before.len() == MAX_BEFORE {
                self.before.pop_front();
            }
            let (from, to) = (poll.began.ts, world.now());
            let (id, label) = (poll.poll.task, poll.label().clone());
            self.before.push_back(Before { id, label, from, to });
        }
        Some(poll)
    }

    /// The thread leaves its CPU.
    pub(super) fn leaves(&mut self, thread: &Thread, world: &World) {
        if !self.open.is_empty() && thread.is_blocked() {
            let ((on, name), _) = thread.spent.waits.cause(world.now());
            let cause = Culprit::Blocked(on, name.cloned()).name();
            self.blocked = cause.map(|cause| (cause, thread.account(world.now()).blocked_ns));
        }
    }

    /// It was preempted, and has a CPU again.
    pub(super) fn preempted(&mut self, shares: &Shares) {
        self.open.iter_mut().for_each(|poll| poll.shares.merge(shares));
    }

    /// It has slept, and has a CPU again; it was woken at `woken`.
    pub(super) fn returns(&mut self, thread: &Thread, woken: Option<i64>, world: &World) {
        let now = world.now();
        self.dispatch = woken.map(|woken| (woken, now));
        let Some((cause, before)) = self.blocked.take() else { return };
        let ns = thread.account(now).blocked_ns - before;
        for poll in &mut self.open {
            if ns > poll.blocked.as_ref().map_or(0, |blocked| blocked.ns) {
                poll.blocked = Some(Blocked { cause: cause.clone(), ns, stack: thread.left_at });
            }
        }
    }

    /// All in which the thread is, the innermost first.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Poll> + use<> {
        std::mem::take(&mut self.open).into_iter().rev()
    }
}
